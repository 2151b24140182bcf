package git

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/sys/workspace"
)

// Conversions say which files of a working tree git may convert, so that they differ from their blobs.
type Conversions struct {
	lines    bool     // line ends and names of versions: a file that is converted has another size than its blob
	all      bool     // any file may have gone through a program or another encoding, which may keep the size
	programs []string // patterns of the names, in lower case, of files that may have
}

// Possible reports whether any file may differ from its blob.
func (c *Conversions) Possible() bool { return c.lines || c.all || len(c.programs) > 0 }

// KeepSize reports whether a file of this name may differ from a blob of the same size.
func (c *Conversions) KeepSize(name string) bool {
	name = strings.ToLower(name)
	return c.all || slices.ContainsFunc(c.programs, func(pattern string) bool {
		fits, err := path.Match(pattern, name)
		return fits || err != nil
	})
}

// Conversions returns what the configuration and the attributes files outside the working tree ask for: those of the
// repository, of the user and of the system. Note adds the attributes of the working tree. It does not see the settings
// of a git that was built with other paths, or settings that were removed after the files were written.
func (r *Repository) Conversions() *Conversions {
	c := &Conversions{lines: runtime.GOOS == "windows"}
	home, _ := os.UserHomeDir()
	user := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	for _, dir := range []string{"/etc", "/usr/local/etc", "/opt/homebrew/etc", "/opt/local/etc"} {
		c.readConfig(filepath.Join(dir, "gitconfig"), home, mostIncludes)
		c.readAttributes(filepath.Join(dir, "gitattributes"))
	}
	for _, path := range []string{
		os.Getenv("GIT_CONFIG_SYSTEM"), os.Getenv("GIT_CONFIG_GLOBAL"), filepath.Join(user, "git", "config"),
		filepath.Join(home, ".gitconfig"), filepath.Join(r.common, "config"), filepath.Join(r.dir, "config.worktree"),
	} {
		c.readConfig(path, home, mostIncludes)
	}
	for _, variable := range os.Environ() { // as git -c sets them
		for _, name := range []string{"GIT_CONFIG_KEY_", "GIT_CONFIG_PARAMETERS=", "GIT_ATTR_SOURCE="} {
			c.all = c.all || strings.HasPrefix(variable, name) && mayConvert(strings.ToLower(variable))
		}
	}
	c.readAttributes(filepath.Join(user, "git", "attributes"))
	c.readAttributes(filepath.Join(r.common, "info", "attributes"))
	return c
}

// mayConvert reports whether a text names settings that matter here.
func mayConvert(text string) bool {
	return slices.ContainsFunc([]string{"autocrlf", "core.eol", "attr", "include"}, func(key string) bool {
		return strings.Contains(text, key)
	})
}

// byteOrder is a mark at the beginning of a file that git skips.
const byteOrder = "\uFEFF"

// mostIncludes is how deep files of configuration may include others. It is git's limit.
const mostIncludes = 10

// readConfig notes what a file of configuration, and those that it may include, ask for.
func (c *Conversions) readConfig(file, home string, depth int) {
	text, ok := c.read(file)
	if !ok {
		return
	}
	section := ""
	for line := range strings.Lines(strings.TrimPrefix(string(text), byteOrder)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			section, _, _ = strings.Cut(strings.ToLower(head), " ")
			line = strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		switch key = strings.ToLower(strings.TrimSpace(key)); {
		case section == "core" && (key == "autocrlf" || key == "eol"):
			c.lines = true
		case section == "attr":
			c.all = true // attributes of a tree that is named
		case section == "core" && key == "attributesfile":
			if path := c.pathIn(value, home, ""); path != "" {
				c.readAttributes(path)
			}
		case (section == "include" || section == "includeif") && key == "path":
			if path := c.pathIn(value, home, filepath.Dir(file)); path != "" && depth > 0 {
				c.readConfig(path, home, depth-1)
			}
		}
	}
}

// pathIn returns the path that a value of the configuration names. If that cannot be told it returns "", and anything
// may be converted.
func (c *Conversions) pathIn(value, home, base string) string {
	value = strings.TrimSpace(value)
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		value, _, _ = strings.Cut(quoted, `"`)
	}
	if rest, ok := strings.CutPrefix(value, "~/"); ok && home != "" {
		value = filepath.Join(home, rest)
	}
	if strings.ContainsAny(value, "\\\"#;%~") || value == "" || !filepath.IsAbs(value) && base == "" {
		c.all = true
		return ""
	}
	return absolute(base, value)
}

// read returns a file, if there is one. If it cannot be read, anything may be converted.
func (c *Conversions) read(file string) (text []byte, ok bool) {
	if !filepath.IsAbs(file) {
		return nil, false
	}
	text, err := workspace.ReadFile(file, SmallFile)
	if err == nil {
		return text, true
	}
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
		c.all = true
	}
	return nil, false
}

func (c *Conversions) readAttributes(file string) {
	text, _ := c.read(file)
	c.Note(text)
}

// NoteAll records that any file may differ from its blob.
func (c *Conversions) NoteAll() { c.all = true }

// Note adds what an attributes file asks for. An unknown attribute may convert, because it may be defined as a macro.
func (c *Conversions) Note(attributes []byte) {
	for line := range strings.Lines(strings.TrimPrefix(string(attributes), byteOrder)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if name, ok := strings.CutPrefix(words[0], "[attr]"); ok { // what uses it is not known below, unless it is
			c.all = c.all || converting(name) != byProgram
			continue
		}
		for _, word := range words[1:] {
			switch converting(word) {
			case byLines:
				c.lines = true
			case byProgram:
				c.note(words[0])
			}
		}
	}
}

// note adds the pattern of a line. Its last element has to fit the name of a file.
func (c *Conversions) note(pattern string) {
	pattern = strings.ToLower(pattern[strings.LastIndexByte(pattern, '/')+1:])
	if strings.ContainsAny(pattern, `"\[`) || len(c.programs) == mostPatterns {
		c.all = true
	} else if !slices.Contains(c.programs, pattern) {
		c.programs = append(c.programs, pattern)
	}
}

// mostPatterns bounds the work for a file.
const mostPatterns = 1000

// conversion is how an attribute converts.
type conversion int

const (
	notAtAll conversion = iota
	byLines
	byProgram
)

// converting returns how an attribute, as a line of attributes has it, converts.
func converting(word string) conversion {
	if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "!") {
		return notAtAll
	}
	name, _, _ := strings.Cut(word, "=")
	switch name {
	case "text", "eol", "crlf", "ident":
		return byLines
	case "binary", "diff", "merge", "whitespace", "delta", "encoding", "export-ignore", "export-subst",
		"conflict-marker-size":
		return notAtAll
	}
	if strings.HasPrefix(name, "linguist-") {
		return notAtAll
	}
	return byProgram
}
