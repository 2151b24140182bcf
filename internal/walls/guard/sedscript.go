package guard

import (
	"slices"
	"strings"
)

// sedRuns reports whether sed may run a program: it does not if its script has only commands that are known to edit.
func sedRuns(argv []word) bool {
	scripts, _, _, ok := sedWords(argv[1:])
	return !ok || !edits(strings.Join(scripts, "\n")) ||
		slices.ContainsFunc(argv[1:], func(a word) bool { return !a.known && !a.data })
}

// sedWords returns the scripts and the files among the words of sed, and whether a script is in a file. For a flag that
// is not known it returns false, and any word may be either.
func sedWords(argv []word) (scripts []string, files []word, inFile, ok bool) {
	args := texts(argv)
	for i := 0; i < len(args); i++ {
		a := args[i]
		next := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		name, value, joined := strings.Cut(a, "=")
		switch {
		case a == "--":
			files, i = append(files, argv[i+1:]...), len(args)
			continue
		case a == "--expression" || a == "--file" || a == "--line-length":
			value = next()
		case strings.HasPrefix(a, "--") && (joined || slices.Contains([]string{
			"--quiet", "--silent", "--regexp-extended", "--in-place", "--separate", "--unbuffered", "--null-data",
			"--posix", "--debug", "--sandbox", "--follow-symlinks", "--help", "--version",
		}, a)):
		case strings.HasPrefix(a, "--"):
			return args, argv, false, false
		case !strings.HasPrefix(a, "-") || a == "-":
			files = append(files, argv[i])
			continue
		default:
			letters := strings.TrimLeft(a[1:], "nrEsuza")
			switch {
			case letters == "", letters[0] == 'i':
				continue
			case strings.IndexByte("efl", letters[0]) < 0:
				return args, argv, false, false
			}
			name = map[byte]string{'e': "--expression", 'f': "--file", 'l': "--line-length"}[letters[0]]
			if value = letters[1:]; value == "" {
				value = next()
			}
		}
		switch name {
		case "--expression":
			scripts = append(scripts, value)
		case "--file":
			inFile = true
		case "--line-length", "--in-place":
		default:
			if joined {
				return args, argv, false, false
			}
		}
	}
	if len(scripts) == 0 && !inFile && len(files) > 0 {
		if files[0].text == "" && len(files) > 1 { // macOS takes the word behind -i for the ending of the copy
			files = files[1:]
		}
		scripts, files = []string{files[0].text}, files[1:]
	}
	return scripts, files, inFile, true
}

// edits reports whether a script of sed has only addresses and commands that are known: they edit, print, branch, and
// read and write files.
func edits(s string) bool {
	for {
		if s = strings.TrimLeft(s, " \t\n;"); s == "" {
			return true
		}
		var ok bool
		if s, ok = sedAddresses(s); !ok || s == "" {
			return false
		}
		command := s[0]
		s = s[1:]
		switch command {
		case '{', '}':
			continue
		case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F', 'l', 'q', 'Q':
			s = strings.TrimLeft(s, " \t0123456789")
		case 's', 'y':
			if s, ok = sedParts(s); !ok {
				return false
			}
			if command == 's' {
				s = strings.TrimLeft(s, "gpIimM0123456789")
				if strings.HasPrefix(s, "w") {
					_, s, _ = strings.Cut(s, "\n")
					continue
				}
			}
			s = strings.TrimLeft(s, " \t")
		case 'a', 'i', 'c':
			for { // a backslash continues the text
				line, rest, _ := strings.Cut(s, "\n")
				if s = rest; (len(line)-len(strings.TrimRight(line, `\`)))%2 == 0 {
					break
				}
			}
			continue
		case 'r', 'R', 'w', 'W', '#':
			_, s, _ = strings.Cut(s, "\n")
			continue
		case 'b', 't', 'T', ':':
			s = strings.TrimLeft(s, " \t")
			s = s[strings.IndexAny(s+";", " \t\n;}"):]
			s = strings.TrimLeft(s, " \t")
		default:
			return false
		}
		if s != "" && strings.IndexByte(";\n}#", s[0]) < 0 {
			return false
		}
	}
}

// sedAddresses drops the addresses of a command of sed, and !.
func sedAddresses(s string) (rest string, ok bool) {
	for range 2 {
		switch {
		case strings.HasPrefix(s, "/") || strings.HasPrefix(s, `\`) && len(s) > 1:
			s = strings.TrimPrefix(s, `\`)
			if s, ok = sedPart(s[1:], s[0]); !ok {
				return "", false
			}
			s = strings.TrimLeft(s, "IM")
		case strings.HasPrefix(s, "$"):
			s = s[1:]
		default:
			s = strings.TrimLeft(s, "0123456789+~")
		}
		s = strings.TrimLeft(s, " \t")
		after, more := strings.CutPrefix(s, ",")
		if !more {
			break
		}
		s = strings.TrimLeft(after, " \t")
	}
	return strings.TrimLeft(s, " \t!"), true
}

// sedParts drops both parts of s or y, with any delimiter.
func sedParts(s string) (rest string, ok bool) {
	if s == "" || s[0] == '\n' || s[0] == '\\' || s[0] > '~' {
		return "", false
	}
	delimiter := s[0]
	if rest, ok = sedPart(s[1:], delimiter); !ok {
		return "", false
	}
	return sedPart(rest, delimiter)
}

// sedPart drops a part up to its delimiter, which a backslash makes a part of it.
func sedPart(s string, delimiter byte) (rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case delimiter:
			return s[i+1:], true
		}
	}
	return "", false
}
