package policy

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/sandbox"
)

// Credentials returns where credentials are: in the home directory of the environment, and in that of the account,
// because HOME may name another one.
func Credentials(agents guard.Agents, home string) []string {
	all := agents.Credentials(home)
	if account := accountHome(); account != "" && account != filepath.Clean(home) {
		all = append(all, agents.Credentials(account)...)
	}
	return all
}

// GitConfig returns the git configuration files of the user and of the machine. lookup reads a variable of the
// environment; nil: none is set.
func GitConfig(home string, lookup func(name string) (string, bool)) []string {
	variable := Wanted{Lookup: lookup}.variable
	files := append([]string{"/etc/gitconfig"}, gitOf(home, "")...)
	files = append(files, gitOf(home, variable("XDG_CONFIG_HOME"))...)
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		if path := variable(name); filepath.IsAbs(path) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// CheckWorkspace refuses, before anything is created there, what Open and OpenAgent refuse because of a home directory.
func CheckWorkspace(home, root string, roots []string) error {
	p := sandbox.Policy{Root: pathname.Real(root)}
	for _, dir := range roots {
		p.Write = append(p.Write, pathname.Real(dir))
	}
	return checkHomes(p, accountHome(), home)
}

// checkHomes refuses to let commands write a home directory, or a directory that contains one: what starts at the next
// login, or configures every git and every editor, lies in too many places there to be protected by name.
func checkHomes(p sandbox.Policy, homes ...string) error {
	for _, home := range homes {
		real, err := filepath.EvalSymlinks(home)
		if err != nil || !filepath.IsAbs(real) || filepath.Dir(real) == real {
			continue
		}
		for _, dir := range append([]string{p.Root}, p.Write...) {
			if !pathname.Within(dir, real) {
				continue
			}
			what := "is the home directory"
			if dir != real {
				what = "holds the home directory " + real
			}
			if dir != p.Root {
				return fault.New(fault.Unsafe, "commands cannot write in %s: it %s", dir, what).With("path", dir).
					Hint("Name the directories beneath it that they have to write.")
			}
			project := filepath.Join(real, "project")
			return fault.New(fault.Unsafe,
				"the workspace cannot be %s: it %s, and what commands wrote there could run "+
					"at the next login", dir, what).With("path", dir).With("project", project).
				Hint("mkdir -p %s && cd %[1]s", text.Shell(project))
		}
	}
	return nil
}

// startsThere returns the fault for a directory to which a start-up place of the home directory leads as a whole, such
// as ~/.config/autostart.
func startsThere(dir, place string) error {
	return fault.New(fault.Unsafe, "commands cannot write in %s: %s leads to it, and what they wrote there could run "+
		"at the next login", dir, place).With("path", dir).
		Hint("Begin in the directory of a project, or replace the link %s.", place)
}

// accountHome returns the home directory of this user's account, whatever HOME says, or "".
func accountHome() string {
	account, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return ""
	}
	if home := filepath.Clean(account.HomeDir); filepath.IsAbs(home) && home != "/" {
		return home
	}
	return ""
}
