package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A command may change the configuration of a repository through git if nothing runs because of it and no connection
// goes elsewhere: a clone records its origin, a new branch its upstream. All other lines have to stay as they were.

// The forms of a line.
const (
	gitSection = `^\[([A-Za-z0-9-]+)(?:[ \t]+"([^"\\\x00-\x1f]+)")?\]$`
	gitLine    = `^([A-Za-z][A-Za-z0-9-]*)[ \t]*=[ \t]*([^"\\\x00-\x1f]*)$`
)

// gitEntry is a line of a configuration with the section that it is in.
type gitEntry struct{ section, name, key, value string }

// gitEntries returns the lines of a configuration. ok is false if it is not certain how git reads one of them.
func gitEntries(text string) (entries []gitEntry, ok bool) {
	var at gitEntry
	begins, sets := regexp.MustCompile(gitSection), regexp.MustCompile(gitLine)
	for line := range strings.Lines(text) {
		line = strings.Trim(strings.TrimSuffix(line, "\n"), " \t")
		if line == "" || line[0] == '#' || line[0] == ';' {
			if strings.ContainsAny(line, "\r\x00") {
				return nil, false
			}
			continue
		}
		if m := begins.FindStringSubmatch(line); m != nil {
			at = gitEntry{section: strings.ToLower(m[1]), name: m[2]}
			continue
		}
		m := sets.FindStringSubmatch(line)
		if m == nil || at.section == "" {
			return nil, false
		}
		entries = append(entries, gitEntry{at.section, at.name, strings.ToLower(m[1]), m[2]})
	}
	return entries, true
}

// mayBecome reports whether a command may change a configuration from one text to another. A directory that commands
// can write is refused as an address: a repository there has hooks that they wrote.
func mayBecome(old, text string, writable []string) bool {
	was, ok := gitEntries(old)
	is, okNow := gitEntries(text)
	if !ok || !okNow {
		return old == text
	}
	strange := func(e gitEntry) bool { return !harmless(e, was, is) || leadsInto(e, writable) }
	left := slices.DeleteFunc(slices.Clone(is), func(e gitEntry) bool {
		return !slices.Contains(was, e) && !strange(e)
	})
	stays := slices.DeleteFunc(slices.Clone(was), func(e gitEntry) bool {
		return e.section == "branch" && !slices.Contains(is, e)
	})
	return slices.Equal(left, stays)
}

// remoteName is how a remote is called that a command adds. Git would take some other names for addresses.
const remoteName = `^[A-Za-z0-9_][A-Za-z0-9_-]*$`

// leadsInto reports whether an entry is the address of something that commands can write, or may be one.
func leadsInto(e gitEntry, writable []string) bool {
	if e.section != "remote" && e.section != "submodule" || e.key != "url" {
		return false
	}
	address := e.value
	if rest, local := strings.CutPrefix(address, "file://"); local {
		address = rest
	} else if scheme, _, found := strings.Cut(address, "://"); found {
		return !slices.Contains([]string{"https", "http", "ssh", "git"}, scheme) // of others git starts a program
	} else if colon := strings.IndexByte(address, ':'); colon > 0 && !strings.Contains(address[:colon], "/") {
		return address[:colon] == "file" // else it is on another machine
	}
	if !filepath.IsAbs(address) || strings.Contains(address, "%") {
		return true
	}
	at := "/"
	for _, part := range strings.Split(address, "/") {
		if top := first(writable, at); part == ".." && top != "" && top != at {
			return true // a command could make this path lead elsewhere
		}
		at = filepath.Join(at, part)
	}
	real, err := filepath.EvalSymlinks(address)
	return err != nil || first(writable, at) != "" || first(writable, real) != ""
}

// harmless reports whether a command may add an entry to what was there.
func harmless(e gitEntry, was, is []gitEntry) bool {
	in := func(entries []gitEntry, section, name, key string) bool {
		return slices.ContainsFunc(entries, func(w gitEntry) bool {
			return w.section == section && (name == "" || w.name == name) && (key == "" || w.key == key)
		})
	}
	has := func(section, name, key string) bool { return in(was, section, name, key) }
	if strings.ContainsAny(e.value, "#;") || strings.Contains(e.value, "::") || strings.HasPrefix(e.value, "-") {
		return false // git would leave out a comment, start a helper, or take it for an option
	}
	switch e.section {
	case "core":
		return e.name == "" && !has("core", "", e.key) && isOneOf(e.key, "repositoryformatversion filemode bare "+
			"logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf")
	case "extensions":
		return e.name == "" && !has("extensions", "", e.key) && isOneOf(e.key, "objectformat refstorage")
	case "remote":
		begun := has("remote", e.name, "") && !has("remote", e.name, e.key) // git adds one line at a time
		called := regexp.MustCompile(remoteName).MatchString(e.name) && in(is, "remote", e.name, "url")
		return called && (begun || !has("remote", "", "")) && isOneOf(e.key, "url fetch tagopt")
	case "submodule":
		return !has("submodule", e.name, e.key) && isOneOf(e.key, "active url")
	case "branch":
		if e.name == "" || has("branch", e.name, e.key) {
			return false
		}
		known := e.value == "." || e.value != "" && has("remote", e.value, "url")
		return isOneOf(e.key, "merge rebase vscode-merge-base") || e.key == "remote" && known
	}
	return false
}
