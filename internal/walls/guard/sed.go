package guard

import (
	"regexp"
	"slices"
	"strings"
)

// sedRuns reports whether sed may run a program. It does not if its script only prints, deletes, replaces in the
// plainest form, or inserts one line.
func sedRuns(argv []word) bool {
	scripts, _, _ := sedWords(argv[1:])
	return slices.ContainsFunc(argv[1:], func(a word) bool { return !a.known }) ||
		slices.ContainsFunc(scripts, func(script string) bool {
			if rest := sedCommand(script); rest != "" && strings.Contains("aic", rest[:1]) {
				return strings.Contains(script, "\n")
			}
			return slices.ContainsFunc(strings.FieldsFunc(script, func(c rune) bool { return c == ';' || c == '\n' }),
				func(one string) bool { return !sedEdits(sedCommand(one)) })
		})
}

// sedCommand drops plain addresses.
func sedCommand(script string) string {
	const address = `(\d+|\$|/[^/\\[]*/)`
	addresses := regexp.MustCompile(`^(` + address + `(,(\+\d+|` + address + `))?)?\s*!?`)
	return strings.TrimSpace(addresses.ReplaceAllString(strings.TrimSpace(script), ""))
}

// sedEdits reports whether a sed command is known to run nothing.
func sedEdits(command string) bool {
	if command == "" || len(command) == 1 && strings.Contains("=dDgGhHnNpPqx", command) {
		return true
	}
	if len(command) < 2 || command[0] != 's' || !strings.Contains("/|,#@:", command[1:2]) {
		return false
	}
	parts := strings.Split(command[2:], command[1:2])
	return len(parts) == 3 && strings.Trim(parts[2], "gpIi0123456789 ") == ""
}

// sedWords returns the scripts and the files among the words of sed, and whether a script is in a file.
func sedWords(argv []word) (scripts []string, files []word, inFile bool) {
	args := texts(argv)
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		flag := ""
		switch {
		case args[i] == "--":
			files = append(files, argv[i+1:]...)
			i = len(args)
		case !strings.HasPrefix(name, "-"), name == "-":
			files = append(files, argv[i])
		case !strings.HasPrefix(name, "--"): // the rest behind e, f, l and i is a value
			if at := strings.IndexAny(args[i], "efil"); at > 0 {
				flag, value = args[i][at:at+1], args[i][at+1:]
				joined = flag == "i" || value != ""
			}
		case long(args[i:i+1], "--expression", "--file", "--line-length"):
			flag = name[2:3]
		}
		if flag != "" && !joined {
			if i++; i < len(args) {
				value = args[i]
			}
		}
		switch flag {
		case "e":
			scripts = append(scripts, value)
		case "f":
			inFile = true
		}
	}
	if len(scripts) == 0 && !inFile && len(files) > 0 {
		if files[0].text == "" && len(files) > 1 { // macOS takes the word behind -i for the ending of the copy
			files = files[1:]
		}
		scripts, files = []string{files[0].text}, files[1:]
	}
	return scripts, files, inFile
}
