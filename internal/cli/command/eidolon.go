package command

import (
	"path/filepath"
	"slices"
	"strings"
)

// eidolonName is the name under which the program is seed 2's: a conversation in which the model calls tools in XNL.
const eidolonName = "eidolon"

// programName returns the name under which the program was started.
func programName(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
}

// asEidolon returns the arguments of a call, and whether it is one under the name eidolon: by a link, or by that word
// in front of them, where a script stands between the link and the program.
func asEidolon(argv []string) (args []string, is bool) {
	if len(argv) > 1 && argv[1] == eidolonName {
		return argv[2:], true
	}
	return argv[1:], programName(argv) == eidolonName
}

// eidolonArgs returns the arguments of a call under the name eidolon: without a command it is chat, which goes line by
// line where no terminal is.
func eidolonArgs(args []string, terminal bool) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"chat"}, args...)
	}
	if args[0] == "chat" && !terminal && !slices.Contains(args, "--plain") {
		args = slices.Insert(slices.Clone(args), 1, "--plain")
	}
	return args
}
