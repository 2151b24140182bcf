package fsapi

import (
	"errors"
	"path"
	"strings"
	"unicode"
)

// CheckCommand returns a command without the blanks around it. It refuses an empty one, and what seed 2 blocks, by the
// text alone: sudo, shutdown and reboot wherever they stand, and rm with a flag to remove directories, in quotes too.
// Package guard reads commands as the shell would, and the engine asks it as well.
func CheckCommand(command string) (string, error) {
	line := strings.TrimSpace(command)
	if line == "" {
		return "", &Error{Code: InvalidPath, Message: "Empty command rejected"}
	}
	if why := blocked(line); why != "" {
		return "", &Error{Code: CommandBlocked, Message: "Command blocked for safety", Cause: errors.New(why)}
	}
	return line, nil
}

// blocked returns why a command is blocked, or "".
func blocked(line string) string {
	line = strings.ToLower(line)
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if word == "sudo" || word == "shutdown" || word == "reboot" {
			return "it has the word " + word
		}
	}
	for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(";|&\n()`", r) }) {
		if removes(strings.FieldsFunc(part, func(r rune) bool {
			return unicode.IsSpace(r) || r == '"' || r == '\'' || r == '{' || r == '}'
		})) {
			return "rm would remove directories"
		}
	}
	return ""
}

// removes reports whether the words of a command have rm, not git's, with a flag to remove directories.
func removes(words []string) bool {
	rm := false
	for i, word := range words {
		switch {
		case path.Base(word) == "rm" && (i == 0 || words[i-1] != "git"):
			rm = true
		case !rm:
		case word == "--":
			return false
		case strings.HasPrefix(word, "--"):
			if len(word) > len("--") && strings.HasPrefix("--recursive", word) {
				return true
			}
		case strings.HasPrefix(word, "-") && strings.ContainsRune(word, 'r'):
			return true
		}
	}
	return false
}
