package review

import (
	"strconv"
	"strings"
)

// Diff is a parsed diff in git's format.
type Diff struct {
	Text  string
	Files map[string]*File // by their names after the change, or before it for deleted files
}

// File is one file of a diff.
type File struct {
	// Lines are the lines in the diff, with their signs, by their numbers after the change, or before it for deleted
	// files.
	Lines map[int]string
}

// ParseDiff parses a diff. It ignores lines that are not in git's format, so the Diff of another text has no files.
func ParseDiff(text string) Diff {
	d := Diff{Text: text, Files: map[string]*File{}}
	var old string
	var file *File
	var before, after int // numbers of the next line on each side
	var left, right int   // lines of the hunk that are still to come
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if left > 0 || right > 0 {
			switch {
			case strings.HasPrefix(line, "-"):
				if right == 0 && after == 0 { // the file goes
					file.Lines[before] = line
				}
				before, left = before+1, left-1
			case strings.HasPrefix(line, "+"):
				file.Lines[after] = line
				after, right = after+1, right-1
			case strings.HasPrefix(line, `\`): // no line feed at the end
			default:
				file.Lines[after] = line
				before, after, left, right = before+1, after+1, left-1, right-1
			}
			continue
		}
		switch {
		case strings.HasPrefix(line, "diff --git "):
			old, file = "", nil
		case strings.HasPrefix(line, "--- "):
			old = name(line[len("--- "):], "a/")
		case strings.HasPrefix(line, "+++ "):
			file = d.file(first(name(line[len("+++ "):], "b/"), old))
		case strings.HasPrefix(line, "rename to "):
			d.file(unquote(line[len("rename to "):]))
		case strings.HasPrefix(line, "@@ ") && file != nil:
			before, left, after, right = hunk(line)
		}
	}
	return d
}

func (d Diff) file(name string) *File {
	if d.Files[name] == nil {
		d.Files[name] = &File{Lines: map[int]string{}}
	}
	return d.Files[name]
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// name returns a path without the prefix of its side, or "" for /dev/null.
func name(path, side string) string {
	path, _, _ = strings.Cut(path, "\t")
	if path = unquote(path); path == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(path, side)
}

// unquote returns a name without git's quotes, which it writes around names with special characters.
func unquote(path string) string {
	if text, err := strconv.Unquote(path); err == nil && strings.HasPrefix(path, `"`) {
		return text
	}
	return path
}

// hunk parses @@ -1,2 +3,4 @@: the first line and the number of lines on each side.
func hunk(line string) (before, left, after, right int) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, 0, 0, 0
	}
	before, left = span(fields[1], "-")
	after, right = span(fields[2], "+")
	return before, left, after, right
}

func span(field, sign string) (from, count int) {
	start, length, has := strings.Cut(strings.TrimPrefix(field, sign), ",")
	from, err := strconv.Atoi(start)
	if count = 1; has && err == nil {
		count, err = strconv.Atoi(length)
	}
	if err != nil || count < 0 || count > 1<<30 {
		return 0, 0
	}
	return from, count
}

// Has reports whether the diff shows the line of a file.
func (d Diff) Has(file string, line int) bool {
	_, shown := d.Line(file, line)
	return shown
}

// Line returns a line of a file in the diff, with its sign.
func (d Diff) Line(file string, line int) (words string, shown bool) {
	if f := d.Files[strings.TrimPrefix(file, "./")]; f != nil {
		words, shown = f.Lines[line]
	}
	return words, shown
}
