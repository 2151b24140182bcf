package guard

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Agent is what has to be known of an agent to judge what a call does to it.
type Agent struct {
	Program  string   // its name, without extension
	Package  string   // its name for those who run packages; empty: it is in no registry
	Settings []string // the names in a workspace under which it looks for what it runs or obeys
	Private  []string // beneath the home directory: where it keeps logins and conversations
}

// Agents are those that there are, beside what others make.
type Agents []Agent

// Protected lists the names in a workspace that only a person may change: what is written there is run or obeyed later,
// by git, by an editor, by a shell, by a package manager or by an agent. A directory stands for all beneath it.
func (a Agents) Protected() []string {
	names := []string{
		".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes", ".git/modules", ".git/worktrees",
		".gitconfig", ".gitmodules", ".husky",
		".omniagent", ".eidolon", ".yume", ".cursor", ".mcp.json",
		".vscode", ".idea", ".devcontainer", ".envrc", ".ripgreprc",
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc", ".zshrc",
		".zshenv", ".zprofile", ".zlogin", ".zlogout",
		".kshrc", ".cshrc", ".tcshrc", ".login", ".config/fish", ".xprofile", ".xinitrc",
		".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".netrc", ".git-credentials", ".ssh", ".aws", ".gnupg",
	}
	for _, one := range a {
		names = append(names, one.Settings...)
	}
	return names
}

// Credentials lists, beneath the home directory, the files and folders that no tool reads. A folder stands for all
// beneath it.
func (a Agents) Credentials(home string) []string {
	if home == "" {
		return nil
	}
	names := []string{
		".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker/config.json", ".netrc", "_netrc", ".npmrc", ".yarnrc.yml",
		".pypirc", ".git-credentials", ".pgpass", ".my.cnf",
		".vault-token", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".cargo/credentials",
		".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
		".gradle/gradle.properties", ".composer/auth.json", ".password-store", ".boto", ".s3cfg", ".databrickscfg",
		".oci", ".fly", ".rclone.conf",
		".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".config/git/credentials", ".config/op",
		".config/sops", ".config/rclone", ".config/containers/auth.json",
		".config/doctl", ".config/heroku", ".config/netlify", ".eidolon", ".yume", ".config/omniagent",
		".local/state/omniagent", ".local/share/omniagent", ".cache/omniagent",
		".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
		".config/microsoft-edge", ".config/vivaldi", ".config/opera",
		"snap/firefox", "snap/chromium", ".var/app", ".local/share/keyrings", ".local/share/kwalletd",
		".config/keepassxc", ".config/1Password", ".config/Bitwarden",
		"Library/Keychains", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
		"Library/Application Support/BraveSoftware",
		"Library/Application Support/Microsoft Edge", "Library/Safari", "Library/Cookies",
		"AppData/Roaming/Microsoft/Credentials", "AppData/Local/Microsoft/Credentials", "AppData/Local/Google/Chrome",
		"AppData/Roaming/Mozilla", "AppData/Roaming/gcloud",
		"AppData/Roaming/GitHub CLI",
	}
	for _, one := range a {
		names = append(names, one.Private...)
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(home, filepath.FromSlash(name))
	}
	return paths
}

// resolve makes a path absolute, from dir. Links are not looked at.
func resolve(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// within says whether path is dir or beneath it. Both are clean.
func within(dir, path string) bool {
	if dir == path || dir == string(filepath.Separator) {
		return dir != ""
	}
	return dir != "" && strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+
		string(filepath.Separator))
}

// foldedWithin compares as a file system does that ignores case.
func foldedWithin(dir, path string) bool { return within(fold(dir), fold(path)) }

// fold makes names equal that some file system takes for one: case, the dots and spaces at the end and what follows a
// colon, which Windows leaves out, and the characters without width that macOS leaves out.
func fold(path string) string {
	elements := strings.Split(strings.ToLower(path), string(filepath.Separator))
	for i, e := range elements {
		if head, _, _ := strings.Cut(e, ":"); head != "" {
			e = head
		}
		e = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, e)
		elements[i] = e
		if trimmed := strings.TrimRight(e, ". "); trimmed != "" {
			elements[i] = trimmed
		}
	}
	return strings.Join(elements, string(filepath.Separator))
}

// foreign says whether path is written for another system: C:\x and \\host\x are names of no file here, yet they mean
// one elsewhere.
func foreign(path string) bool {
	if strings.HasPrefix(path, `\`) {
		return true
	}
	return filepath.VolumeName(path) == "" && len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}

// alias says whether path leads through the views that the kernel gives on a process: its root, its directory, its
// files, its environment.
func alias(path string) bool {
	elements := strings.Split(filepath.ToSlash(path), "/")
	if len(elements) < 3 || elements[0] != "" || (elements[1] != "proc" && elements[1] != "dev") {
		return false
	}
	if elements[1] == "dev" {
		return elements[2] == "fd" && len(elements) > 3 && elements[3] != "0" && elements[3] != "1" &&
			elements[3] != "2"
	}
	return slices.ContainsFunc(elements[2:], func(e string) bool {
		return slices.Contains([]string{"root", "cwd", "fd", "environ", "mem", "map_files", "exe", "kcore", "task"}, e)
	})
}

// credential names the credential that path is, is beneath or, with whole, holds.
func (p Place) credential(path string, whole bool) string {
	for _, secret := range p.Agents.Credentials(p.Home) {
		if foldedWithin(secret, path) || whole && foldedWithin(path, secret) {
			return secret
		}
	}
	return ""
}

// Write says whether a tool for files may change path. It is the word on the place: whether a file of the workspace may
// be changed without asking is the matter of the mode.
func (s Set) Write(path string, p Place) Verdict {
	const asked = "only a person may change what is run or obeyed later"
	switch {
	case strings.TrimSpace(path) == "":
		return one(Ask, path, "no path is named")
	case strings.ContainsFunc(path, control):
		return one(Deny, path, "the path has control characters")
	case foreign(path):
		return one(Deny, path, "the path is outside the workspace")
	}
	full := resolve(p.Dir, path)
	if secret := p.credential(full, false); secret != "" {
		return one(Deny, path, "credentials are kept there")
	}
	root := p.root(full)
	if root == "" {
		return one(Deny, path, "the path is outside the workspace")
	}
	name := p.Agents.protectedName(full, root)
	if name == "" && inRepository(full, root) {
		name = ".git"
	}
	switch {
	case name == "":
		return Verdict{}
	// a person may have a reason, and looks at it
	case name == ".git" || !strings.HasPrefix(name, ".git/") && !secretName(name):
		v := one(Ask, path, name+" is protected: it decides what is run or obeyed later")
		v.Firm = true
		return v
	}
	return one(Deny, path, name+" is protected: "+asked)
}

// protectedName names the protected thing that a path in the workspace is or lies beneath, at any depth: the workspace
// may hold others. To change a directory that holds one is to change it too.
func (a Agents) protectedName(full, root string) string {
	rel, err := filepath.Rel(root, full)
	if err != nil {
		return full
	}
	rel = fold(filepath.FromSlash(rel))
	slash := "/" + filepath.ToSlash(rel) + "/"
	for _, name := range a.Protected() {
		if strings.Contains(slash, "/"+strings.ToLower(name)+"/") {
			return name
		}
	}
	if strings.HasSuffix(slash, "/.git/") {
		return ".git"
	}
	// NTFS knows .git by this name too.
	if strings.Contains(slash, "/git~1/") {
		return ".git"
	}
	return ""
}

// inRepository says whether a path lies in what git keeps: its own commands write there, no tool for files has to.
func inRepository(full, root string) bool {
	rel, err := filepath.Rel(root, full)
	return err == nil && slices.Contains(strings.Split(fold(rel), string(filepath.Separator)), ".git")
}

// secretName says whether a protected name holds credentials.
func secretName(name string) bool {
	return slices.Contains([]string{".npmrc", ".pypirc", ".netrc", ".git-credentials", ".ssh", ".aws", ".gnupg"}, name)
}

// Read says whether a tool may read path: not where credentials are kept.
func (s Set) Read(path string, p Place) Verdict {
	if strings.ContainsFunc(path, control) {
		return one(Deny, path, "the path has control characters")
	}
	full := resolve(p.Dir, path)
	if p.credential(full, false) != "" {
		return one(Deny, path, "credentials are kept there")
	}
	if alias(full) {
		return one(Deny, path, "it is a second way to files and variables of processes")
	}
	return Verdict{}
}

func control(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }
