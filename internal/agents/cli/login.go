package cli

import (
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/core/agent"
)

// Credentials lists the places where an agent may find a login.
type Credentials struct {
	Variables []string // any of them is a login
	Files     []string // absolute, or in the home directory, with slashes; an empty file does not count
	// Elsewhere is set if a login may also be where we cannot read, such as a keychain. Then finding none proves
	// nothing.
	Elsewhere bool
}

func (c Credentials) find(env agent.Env) agent.Login {
	for _, name := range c.Variables {
		if value, ok := env.Lookup(name); ok && value != "" {
			return agent.Login{There: agent.Yes, By: name}
		}
	}
	home := homeOf(env)
	for _, name := range c.Files {
		path, shown := filepath.FromSlash(name), name
		if !filepath.IsAbs(path) {
			if home == "" {
				continue
			}
			path, shown = filepath.Join(home, path), "~/"+name
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 2 { // {} is empty
			return agent.Login{There: agent.Yes, By: shown}
		}
	}
	if c.Elsewhere || home == "" {
		return agent.Login{}
	}
	return agent.Login{There: agent.No}
}

// homeOf returns the user's home directory, or "".
func homeOf(env agent.Env) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, _ := env.Lookup(name); filepath.IsAbs(home) {
			return home
		}
	}
	return ""
}

// InHomeOr returns a file in the directory that a variable names, or else in dir of the home directory.
func InHomeOr(env agent.Env, variable, dir, file string) string {
	if named, _ := env.Lookup(variable); filepath.IsAbs(named) {
		return filepath.Join(named, file)
	}
	return strings.TrimSuffix(dir, "/") + "/" + file
}
