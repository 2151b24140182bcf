package eidolon

import (
	"path/filepath"
	"regexp"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
)

// The words of a message that refer to something.
const (
	AgentWord = event.AgentWord // brings the prompt of an agent
	FileWord  = "@file:"        // brings a file
	ShellWord = "@!"            // at the beginning: runs the rest as a command
)

// Reminder is the name of a text that a person does not see, and that reminds the model of its list of tasks.
const Reminder = "@reminder"

// AgentNamed returns the name of the agent that a message brings, or "". If there are several, the last counts.
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
	Inside  string // its name in the workspace, if it was written relative to that; it must not lead out by links
	Outside bool   // it was written relative to the workspace, and leads out of it
}

// Punctuation may follow a name in a sentence.
const Punctuation = ".,;:!?)]}'\"`"

// FilesNamed returns the message with absolute paths, and the files to which it refers. A name with blanks stands in
// double quotes; one that begins with ~/ lies in home. exists reports whether there is a file: punctuation behind a
// name belongs to it only if there is such a file. nil: it always belongs to it.
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
				f, cut = fileAt(written), len(written) // say under its whole name that it is missing
				break
			}
			f = fileAt(written[:cut])
		}
		files = append(files, f)
		return FileWord + Quoted(f.Path) + written[cut:]
	})
	return absolute, files
}

// Quoted returns a path as it is written behind FileWord.
func Quoted(path string) string {
	if word(path) == path {
		return path
	}
	return `"` + path + `"`
}

// FileBegun returns the path that is being typed behind the last FileWord of a text, and where what was typed begins.
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

// RemindAt returns the text that reminds a model of its list of tasks, if it is due before a message: before the first
// two, and before every tenth. earlier is how many there were.
func RemindAt(earlier int) string {
	if earlier > 1 && earlier%10 != 0 {
		return ""
	}
	return "If this takes two or more steps, keep a list of tasks with the tool for it: write the list before you " +
		"begin, " +
		"have one task in progress at a time, and mark each as completed when it is. Do not mention this reminder."
}
