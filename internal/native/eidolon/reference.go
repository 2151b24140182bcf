package eidolon

import (
	"path/filepath"
	"regexp"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
)

// The prefixes of words in a message that refer to something.
const (
	AgentWord = event.AgentWord // adds the prompt of an agent
	FileWord  = "@file:"        // adds a file
	ShellWord = "@!"            // at the beginning: runs the rest as a command
)

// AgentNamed returns the name of the agent to which a message refers, or "". If there are several, it returns the last.
func AgentNamed(message string) string {
	at := strings.LastIndex(message, AgentWord)
	for ; at >= 0; at = strings.LastIndex(message[:at], AgentWord) {
		if name := word(message[at+len(AgentWord):]); name != "" {
			return name
		}
	}
	return ""
}

// word returns the characters before the first blank.
func word(s string) string {
	if end := strings.IndexAny(s, " \t\r\n\v\f"); end >= 0 {
		return s[:end]
	}
	return s
}

// File is a file to which a message refers.
type File struct {
	Written string // as the person wrote it
	Path    string // absolute
	Inside  string // its path in the workspace, if it was written relative to that; it must not lead out through links
	Outside bool   // it was written relative to the workspace, but lies outside
}

// Punctuation has the characters that may follow a name in a sentence.
const Punctuation = ".,;:!?)]}'\"`"

// FilesNamed returns the message with absolute paths, and the files to which it refers. A name with blanks has double
// quotes; one that begins with ~/ is in home. exists reports whether a file exists: punctuation after a name belongs to
// it only if there is such a file. If exists is nil, it always belongs to it.
func FilesNamed(message, workspace, home string, exists func(path string) bool) (absolute string, files []File) {
	namedFile := regexp.MustCompile(`@file:(?:"([^"\n]+)"|(\S+))`)
	fileAt := func(written string) File { return fileAt(written, workspace, home) }
	absolute = namedFile.ReplaceAllStringFunc(message, func(found string) string {
		parts := namedFile.FindStringSubmatch(found)
		if quoted := parts[1]; quoted != "" {
			files = append(files, fileAt(quoted))
			return FileWord + Quoted(files[len(files)-1].Path)
		}
		written := parts[2]
		f, cut := fileAt(written), len(written)
		for exists != nil && !exists(f.Path) {
			if cut--; cut == 0 || !strings.ContainsRune(Punctuation, rune(written[cut])) {
				f, cut = fileAt(written), len(written) // report the whole name as missing
				break
			}
			f = fileAt(written[:cut])
		}
		files = append(files, f)
		return FileWord + Quoted(f.Path) + written[cut:]
	})
	return absolute, files
}

// Quoted returns a path as it is written after FileWord.
func Quoted(path string) string {
	if word(path) == path {
		return path
	}
	return `"` + path + `"`
}

// FileBegun returns the path that is being typed after the last FileWord of a text, and its offset. ok is false if
// there is none.
func FileBegun(before string) (typed string, from int, ok bool) {
	at := strings.LastIndex(before, FileWord)
	if at < 0 {
		return "", 0, false
	}
	from = at + len(FileWord)
	typed = before[from:]
	if inside, quoted := strings.CutPrefix(typed, `"`); quoted {
		return inside, from, !strings.ContainsAny(inside, "\"\n")
	}
	return typed, from, word(typed) == typed
}

func fileAt(written, workspace, home string) File {
	f := File{Written: written, Path: filepath.FromSlash(pathname.Typed(home, written))}
	if !filepath.IsAbs(f.Path) {
		f.Inside = filepath.Clean(f.Path)
		f.Path = filepath.Join(workspace, f.Path)
		f.Outside = !filepath.IsLocal(f.Inside)
	}
	return f
}

// RemindAt returns the text that reminds a model of its list of tasks, or "". It is due before the first two messages,
// and before every tenth. earlier is the number of messages before.
func RemindAt(earlier int) string {
	if earlier > 1 && earlier%10 != 0 {
		return ""
	}
	return "If this takes two or more steps, keep a list of tasks with the tool for it: write the list before you " +
		"begin, " +
		"have one task in progress at a time, and mark each as completed when it is. Do not mention this reminder."
}
