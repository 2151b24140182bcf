package cli

import (
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/agent"
)

// Credentials are the places in which an agent may find a login.
type Credentials struct {
	Variables []string // any of them is one
	Files     []string // beneath the home directory, with slashes; or absolute. One that is empty is none
	// Elsewhere: it may be where nothing can be read, as in a keychain, so that none found does not mean none.
	Elsewhere bool
}

// Find looks for a login.
func (c Credentials) Find(env agent.Env) agent.Login {
	for _, name := range c.Variables {
		if value, ok := env.Lookup(name); ok && value != "" {
			return agent.Login{There: agent.Yes, By: name}
		}
	}
	home := HomeOf(env)
	for _, name := range c.Files {
		path, shown := filepath.FromSlash(name), name
		if !filepath.IsAbs(path) {
			if home == "" {
				continue
			}
			path, shown = filepath.Join(home, path), "~/"+name
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 2 { // {} holds nothing
			return agent.Login{There: agent.Yes, By: shown}
		}
	}
	if c.Elsewhere || home == "" {
		return agent.Login{}
	}
	return agent.Login{There: agent.No}
}

// HomeOf is the user's home directory, empty where none is known.
func HomeOf(env agent.Env) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, _ := env.Lookup(name); filepath.IsAbs(home) {
			return home
		}
	}
	return ""
}

// InHomeOr is a file in the directory that a variable names, and else in one beneath the home directory.
func InHomeOr(env agent.Env, variable, dir, file string) string {
	if named, _ := env.Lookup(variable); filepath.IsAbs(named) {
		return filepath.Join(named, file)
	}
	return strings.TrimSuffix(dir, "/") + "/" + file
}
