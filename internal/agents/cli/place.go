package cli

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/sys/process"
)

// First returns the value of the first of these variables that is not empty, or "".
func First(env []string, names ...string) string {
	for _, name := range names {
		if value, _ := process.Value(env, name); value != "" {
			return value
		}
	}
	return ""
}

// Home returns the home directory that an environment names, or "".
func Home(env []string) string { return First(env, "HOME", "USERPROFILE") }

// InHome returns a path in the directory that a variable names, or else in dir of the home directory, or "".
func InHome(env []string, variable, dir, path string) string {
	if named := First(env, variable); filepath.IsAbs(named) {
		return filepath.Join(named, filepath.FromSlash(path))
	}
	if home := Home(env); home != "" {
		return filepath.Join(home, filepath.FromSlash(dir), filepath.FromSlash(path))
	}
	return ""
}

// Matching returns the names of the variables that match a pattern. X_* matches every name that begins with X_.
func Matching(env []string, patterns ...string) (names []string) {
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(names, name) && slices.ContainsFunc(patterns, func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return name == pattern || open && strings.HasPrefix(name, prefix)
		}) {
			names = append(names, name)
		}
	}
	return names
}

// Upward yields a directory and then its parents.
func Upward(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir = filepath.Clean(dir); yield(dir) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		}
	}
}

// Exists reports whether a path exists, even as a broken link.
func Exists(path ...string) bool {
	_, err := os.Lstat(filepath.Join(path...))
	return err == nil
}

// IsUUID reports whether s is a UUID, as the ids of most agents are.
func IsUUID(s string) bool {
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return len(s) == 36
}

// Kinds lists the names of an agent's tools by kind, separated by blanks.
type Kinds map[event.ToolKind]string

// Of returns the kind of a tool. The names of MCP tools begin with prefix.
func (k Kinds) Of(tool, prefix string) event.ToolKind {
	for kind, names := range k {
		if slices.Contains(strings.Fields(names), tool) {
			return kind
		}
	}
	if strings.HasPrefix(tool, prefix) {
		return event.MCP
	}
	return event.Other
}

// Override corrects the policy of a feature that something other than our flags decides.
func (t *Translation) Override(feature string, level agent.Level, note string) {
	for i := range t.Policies {
		if p := &t.Policies[i]; p.Feature == feature && p.Enforced != agent.None {
			p.Enforced, p.Note = level, note
		}
	}
}
