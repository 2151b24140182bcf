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

// GitConfig returns the git configuration files of the user and of the machine: those of a git in PATH too, which reads
// them where it is installed, and those of package managers. lookup reads a variable of the environment; nil: none is
// set.
func GitConfig(home string, lookup func(name string) (string, bool)) []string {
	variable := Wanted{Lookup: lookup}.variable
	files := append(gitOf(home, ""), installedGit(filepath.SplitList(variable("PATH")))...)
	for _, dir := range []string{
		"/etc", "/usr/local/etc", "/opt/homebrew/etc", "/opt/local/etc", "/home/linuxbrew/.linuxbrew/etc",
		"/Library/Developer/CommandLineTools/usr/share/git-core",
		"/Applications/Xcode.app/Contents/Developer/usr/share/git-core",
	} {
		files = append(files, filepath.Join(dir, "gitconfig"))
	}
	files = append(files, gitOf(home, variable("XDG_CONFIG_HOME"))...)
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		if path := variable(name); filepath.IsAbs(path) {
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// mostInstalled limits the files of installed gits: sandbox reads only so many, and has to read those of repositories.
const mostInstalled = 8

// installedGit returns the configuration files of each git in directories of programs.
func installedGit(dirs []string) (files []string) {
	for _, dir := range dirs {
		if len(files) >= mostInstalled {
			break
		}
		program := filepath.Join(dir, "git")
		real, err := filepath.EvalSymlinks(program)
		if err != nil || !filepath.IsAbs(program) {
			continue
		}
		for _, program := range []string{program, real} {
			prefix := filepath.Dir(filepath.Dir(program))
			if prefix == "/usr" {
				prefix = "/"
			}
			files = append(files, filepath.Join(prefix, "etc", "gitconfig"))
		}
	}
	return files
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
