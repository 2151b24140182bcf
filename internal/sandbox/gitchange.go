package sandbox

import (
	"regexp"
	"slices"
	"strings"
)

// A command may change the configuration of a repository by git as far as nothing runs by it, and nothing goes
// elsewhere: a clone tells where it comes from, a new branch what it follows. All else stays as it was, line by line.

// The forms of a line.
const (
	gitSection = `^\[([A-Za-z0-9-]+)(?:[ \t]+"([^"\\\x00-\x1f]*)")?\]$`
	gitLine    = `^([A-Za-z][A-Za-z0-9-]*)[ \t]*=[ \t]*([^"\\\x00-\x1f]*)$`
)

// gitEntry is a line of a configuration with the section that it is in.
type gitEntry struct{ section, name, key, value string }

// gitEntries returns the lines of a configuration. ok is false if there is one of which it is not certain how git reads
// it.
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

// mayBecome reports whether a command may change a configuration from one text to another.
func mayBecome(old, text string) bool {
	was, ok := gitEntries(old)
	is, okNow := gitEntries(text)
	if !ok || !okNow {
		return old == text
	}
	strange := func(e gitEntry) bool { return !harmless(e, was) }
	left := slices.DeleteFunc(slices.Clone(is), func(e gitEntry) bool {
		return !slices.Contains(was, e) && !strange(e)
	})
	stays := slices.DeleteFunc(slices.Clone(was), func(e gitEntry) bool {
		return e.section == "branch" && !slices.Contains(is, e)
	})
	return slices.Equal(left, stays)
}

// harmless reports whether a command may add an entry to what was there.
func harmless(e gitEntry, was []gitEntry) bool {
	has := func(section, name, key string) bool {
		return slices.ContainsFunc(was, func(w gitEntry) bool {
			return w.section == section && (name == "" || w.name == name) && (key == "" || w.key == key)
		})
	}
	elsewhere := strings.Contains(e.value, "::") || strings.HasPrefix(e.value, "-")
	switch e.section {
	case "core":
		return e.name == "" && !has("core", "", e.key) && isOneOf(e.key, "repositoryformatversion filemode bare "+
			"logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf")
	case "extensions":
		return e.name == "" && !has("extensions", "", e.key) && isOneOf(e.key, "objectformat refstorage")
	case "remote":
		begun := has("remote", e.name, "") && !has("remote", e.name, e.key) // git adds one line at a time
		return e.name != "" && (begun || !has("remote", "", "")) && isOneOf(e.key, "url fetch tagopt") && !elsewhere
	case "submodule":
		return !has("submodule", e.name, e.key) && isOneOf(e.key, "active url") && !elsewhere
	case "branch":
		if e.name == "" || has("branch", e.name, e.key) {
			return false
		}
		known := e.value == "." || !has("remote", "", "") || has("remote", e.value, "")
		return isOneOf(e.key, "merge rebase vscode-merge-base") || e.key == "remote" && known
	}
	return false
}
