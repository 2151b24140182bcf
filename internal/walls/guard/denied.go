package guard

import (
	"cmp"
	_ "embed" // what is denied
	"slices"
	"strings"
)

// forbids returns why a simple command is denied, or "". Like some systems it ignores the case of names and flags: a
// model that writes RM -RF means rm -rf.
func (w *walker) forbids(name string, argv []word) string {
	s := w.set
	args := texts(argv[1:])
	switch name {
	case "sudo", "su", "doas", "pkexec", "runuser", "sudoedit", "visudo", "gsudo", "runas":
		if s == Tools || name == "sudo" {
			return name + " takes the rights of another user"
		}
	case "shutdown", "reboot":
		return name + " stops the machine"
	case "rm":
		return s.removes(args)
	}
	if s == SysBuiltIn {
		return ""
	}
	if name == "eval" && slices.ContainsFunc(argv[1:], func(a word) bool { return !a.known }) {
		return "eval runs a text that is not known before it runs"
	}
	return cmp.Or(listed(name, args), harms(name, args), w.setsForbidden(name, argv))
}

// setsForbidden returns why the arguments of a command set a variable that decides what other programs run, or "".
func (w *walker) setsForbidden(name string, argv []word) string {
	switch {
	case name == "env" || name == "sudo" || name == "doas":
		env := wrapperOf(name)
		for i := 1; i < len(argv); i++ {
			set, _, found := strings.Cut(argv[i].text, "=")
			switch {
			case strings.HasPrefix(argv[i].text, "-"):
				if one, _ := env.steps(argv[i].text); !one {
					i++
				}
			case !found:
				return "" // this is the program; the rest are its arguments
			case w.mayNotSet(set):
				return set + decidesPrograms
			}
		}
	case does(ofSetting, name, nil) && name != "unset" && name != "export" && name != "readonly":
		for i, a := range argv[1:] {
			set, _, _ := strings.Cut(a.text, "=")
			if name == "printf" && argv[i].text != "-v" {
				set = strings.TrimPrefix(a.text, "-v") // the name may follow without a blank
				if set == a.text {
					continue
				}
			}
			if set, _, _ = strings.Cut(set, "["); w.mayNotSet(set) {
				return set + decidesPrograms
			}
		}
	}
	return ""
}

// short reports whether one of the letters is among the short flags.
func short(args []string, letters ...string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if len(a) > 1 && a[0] == '-' && a[1] != '-' {
			for _, l := range letters {
				if strings.Contains(a[1:], l) {
					return true
				}
			}
		}
	}
	return false
}

// long reports whether one of the long flags is given, possibly abbreviated or with a value.
func long(args []string, names ...string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		a, _, _ = strings.Cut(strings.ToLower(a), "=")
		for _, n := range names {
			if len(a) > 2 && strings.HasPrefix(a, "--") && strings.HasPrefix(n, a) {
				return true
			}
		}
	}
	return false
}

func (s Set) removes(args []string) string {
	recursive := short(args, "r", "R") || long(args, "--recursive")
	force := short(args, "f", "F") || long(args, "--force")
	if recursive || force && s == Tools {
		return "rm with -r or -f removes more than can be brought back"
	}
	return ""
}

//go:embed denied.txt
var denials string

// listed returns why the table denies a program with these arguments, or "".
func listed(name string, args []string) string {
	for line := range strings.Lines(denials) {
		why, list, _ := strings.Cut(line, ":")
		for entry := range strings.FieldsSeq(list) {
			program, word, some := strings.Cut(entry, "/")
			if globElement(program, name) && (!some || slices.ContainsFunc(args,
				func(a string) bool { return strings.EqualFold(a, word) })) {
				return name + " " + why
			}
		}
	}
	return ""
}

// harms returns why an otherwise harmless program is denied with these arguments, or "".
//
// Long because it is one table.
func harms(name string, args []string) string {
	has := func(words ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(words, strings.ToLower(a)) })
	}
	switch name {
	case "xargs", "gxargs", "parallel":
		if slices.ContainsFunc(args, func(a string) bool { return program(a) == "rm" }) {
			return name + " rm removes what it is told by a pipe"
		}
	case "nc", "ncat", "netcat":
		if short(args, "e", "c") || long(args, "--exec", "--sh-exec", "--lua-exec") {
			return name + " gives a shell to the network"
		}
	case "format":
		if slices.ContainsFunc(args, func(a string) bool { return len(a) == 2 && a[1] == ':' }) {
			return "format destroys what is on a disk"
		}
	case "powershell", "pwsh":
		for _, a := range args {
			a = strings.ToLower(a)
			if len(a) > 1 && (strings.HasPrefix("-encodedcommand", a) || a == "-enc" || a == "-ec" ||
				strings.HasPrefix("/encodedcommand", a)) {
				return "the command is encoded, so that nobody can read it"
			}
		}
	case "git":
		return forbidsGit(args)
	case "pkill":
		if has("-9", "-kill", "-sigkill") || has("--signal") && has("9", "kill", "sigkill") ||
			has("--signal=9", "--signal=kill", "--signal=sigkill") {
			return "pkill -9 ends processes that others may need, without warning"
		}
	case "crontab":
		if short(args, "e", "r") {
			return "crontab changes what runs without you"
		}
	case "chmod":
		for _, a := range args {
			if setsID(a) {
				return "chmod gives a program the rights of its owner"
			}
		}
	case "chown", "chgrp":
		for _, a := range args {
			owner, group, _ := strings.Cut(strings.ReplaceAll(a, ".", ":"), ":")
			if owner == "root" || owner == "0" || group == "root" || group == "0" || group == "wheel" {
				return name + " gives a file to root"
			}
		}
	}
	return ""
}

// setsID reports whether a mode has the set-user-id or set-group-id bit.
func setsID(mode string) bool {
	digits := strings.TrimLeft(strings.TrimPrefix(mode, "="), "0")
	if len(mode) >= 4 && len(digits) == 4 && strings.Trim(digits, "01234567") == "" {
		return digits[0]&6 != 0
	}
	if strings.HasPrefix(mode, "-") && len(mode) > 1 || strings.Contains(mode, "/") {
		return false
	}
	for clause := range strings.SplitSeq(mode, ",") {
		if i := strings.IndexAny(clause, "+="); i >= 0 && strings.Trim(clause[:i], "ugoa") == "" &&
			strings.Contains(clause[i:], "s") && strings.Trim(clause[i+1:], "rwxXstugo+-=") == "" {
			return true
		}
	}
	return false
}

func forbidsGit(args []string) string {
	verb, rest := gitVerb(args)
	switch verb {
	case "push":
		force := short(rest, "f") || long(rest, "--force", "--force-with-lease", "--force-if-includes", "--mirror")
		if force || slices.ContainsFunc(rest, func(a string) bool { return strings.HasPrefix(a, "+") }) {
			return "a forced push destroys what others pushed"
		}
	case "reset":
		if long(rest, "--hard") {
			return "git reset --hard destroys changes that are nowhere else"
		}
	case "clean":
		dry := short(rest, "n") || long(rest, "--dry-run")
		if !dry && (short(rest, "d", "f", "x", "X") || long(rest, "--force")) {
			return "git clean destroys files that are nowhere else"
		}
	case "branch":
		gone := short(rest, "D") || long(rest, "--delete") && long(rest, "--force") || short(rest, "d") &&
			(short(rest, "f") || long(rest, "--force"))
		if gone && slices.ContainsFunc(rest, func(a string) bool { return a == "main" || a == "master" }) {
			return "it deletes the main branch"
		}
	}
	return ""
}

// gitVerb returns git's subcommand and its arguments. It skips git's own flags.
func gitVerb(args []string) (verb string, rest []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains([]string{
			"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path",
			"--super-prefix", "--config-env", "--attr-source",
		}, a):
			i++
		case strings.HasPrefix(a, "-"):
		default:
			return a, args[i+1:]
		}
	}
	return "", nil
}
