package command

import (
	"path/filepath"
	"slices"
	"strings"
)

// eidolonName is a second name of the program. Started under it, the program opens a chat in which the model calls
// tools in XNL.
const eidolonName = "eidolon"

// programName returns the name with which the program was started.
func programName(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
}

// asEidolon returns the arguments of a call, and whether the program was started as eidolon: by a link of that name, or
// with that word as the first argument, which a script in place of the link passes.
func asEidolon(argv []string) (args []string, is bool) {
	if len(argv) > 1 && argv[1] == eidolonName {
		return argv[2:], true
	}
	return argv[1:], programName(argv) == eidolonName
}

// eidolonArgs returns the arguments of a call as eidolon. The default command is chat, with --plain if there is no
// terminal.
func eidolonArgs(args []string, terminal bool) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"chat"}, args...)
	}
	if args[0] == "chat" && !terminal && !slices.Contains(args, "--plain") {
		args = slices.Insert(slices.Clone(args), 1, "--plain")
	}
	return args
}
