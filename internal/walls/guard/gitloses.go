package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// losses is what a git command may destroy.
type losses struct {
	state   bool // branches, reflogs, objects, work trees
	files   bool // files that are not ignored
	ignored bool // also those: git overwrites them with files of a commit
	paths   bool // only files named by its operands, if there are any
}

// lossesOf returns what a git command may destroy, given its subcommand and arguments.
//
// Long because it lists the subcommands.
func lossesOf(sub string, rest []string) losses {
	first := ""
	if i := slices.IndexFunc(rest, func(a string) bool { return !strings.HasPrefix(a, "-") }); i >= 0 {
		first = rest[i]
	}
	all := losses{files: true, ignored: true}
	switch sub {
	case "clean":
		if short(rest, "n") || long(rest, "--dry-run") {
			return losses{}
		}
		return losses{files: true, ignored: short(rest, "x", "X"), paths: true}
	case "checkout", "switch":
		made := short(rest, "b", "c") || long(rest, "--create", "--orphan")
		switch {
		case made && len(operandsOf(rest)) < 2:
			return losses{}
		case slices.Contains(rest, "--") && rest[0] == "--", first == ".":
			return losses{files: true, paths: true}
		}
		all.state = true
		return all
	case "restore":
		staged := long(rest, "--staged") || short(rest, "S")
		return losses{files: !staged || long(rest, "--worktree") || short(rest, "W"), paths: true}
	case "reset":
		moved := first != "" && first != "HEAD" && !slices.Contains(rest, "--")
		return losses{state: moved, files: long(rest, "--hard", "--merge", "--keep"), ignored: moved}
	case "rebase", "filter-branch", "bisect":
		all.state = true
		return all
	case "merge", "pull", "cherry-pick", "revert", "am", "read-tree", "submodule":
		return all
	case "apply":
		if long(rest, "--check", "--stat", "--numstat", "--summary", "--cached") {
			return losses{}
		}
		return all
	case "stash":
		return stashLoses(first, rest)
	case "rm":
		return losses{files: true, paths: true}
	case "branch":
		return losses{state: short(rest, "d", "D", "m", "M", "C", "f") || long(rest, "--delete", "--move", "--force")}
	case "tag":
		return losses{state: short(rest, "d", "f") || long(rest, "--delete", "--force")}
	case "reflog":
		return losses{state: slices.Contains([]string{"expire", "delete", "drop"}, first)}
	case "worktree":
		return losses{state: slices.Contains([]string{"remove", "prune", "move"}, first)}
	case "gc", "prune", "repack", "update-ref", "symbolic-ref", "replace", "maintenance":
		return losses{state: true}
	}
	return losses{}
}

func stashLoses(verb string, rest []string) losses {
	switch verb {
	case "list", "show", "create":
		return losses{}
	case "drop", "clear":
		return losses{state: true}
	case "pop", "apply", "branch":
		return losses{state: verb == "pop", files: true, ignored: true}
	}
	every := short(rest, "a") || long(rest, "--all")
	return losses{files: every || short(rest, "u") || long(rest, "--include-untracked"), ignored: every}
}

// operandsOf returns the arguments without flags.
func operandsOf(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
}

// gitLoses records what git may destroy and no snapshot has.
func (w *walker) gitLoses(p *piece, words []string, argv []word, at dirs) {
	lost := lossesOf(words[0], words[1:])
	named := argv[len(argv)-len(words)+1:]
	for _, g := range w.place.Containment.Cover.Gaps {
		state := w.place.root(g.Path) == "" || slices.Contains(strings.Split(filepath.ToSlash(g.Path), "/"), ".git")
		switch {
		case state && !lost.state, !state && !lost.files, !state && !g.Loose && !lost.ignored:
		case !state && lost.paths && argv[1].text == words[0] && w.spares(named, at, g):
		default:
			p.reaches(uncovered, w.place.lacks(g))
			return
		}
	}
}

// spares reports whether the operands of git name only files outside a gap.
func (w *walker) spares(operands []word, at dirs, g Gap) bool {
	some := false
	for _, a := range operands {
		if a.known && strings.HasPrefix(a.text, "-") {
			continue
		}
		some = true
		if !a.known || at.lost || strings.HasPrefix(a.text, ":") || slices.ContainsFunc(at.paths(a.text),
			func(path string) bool { return overlaps(path, g.Path, true) }) {
			return false
		}
	}
	return some
}
