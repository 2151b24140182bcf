package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
)

// Commands see home directories that are empty except for Policy.Places, so that no file there is exposed because
// nobody thought of it, or because it appeared later.

// Visibility says what commands see of a place.
type Visibility int

const (
	Shown Visibility = iota // the content, read-only
	// the content, with their changes in a copy until Walls.Close; Shown where that is impossible
	Copied
	// a directory of their own, empty at first, which later commands in the same workspace share
	Owned
)

// Place is a file or directory below one of Policy.Homes that commands see.
type Place struct {
	Path       string // absolute and clean; it need not exist
	Visibility Visibility
	Why        string // what it is for, as a phrase
	Parts      []Part // of a Copied place below an Owned one
}

// Part is what commands find of a Copied place where nothing can be mounted.
type Part struct {
	Path    string // below the place, with slashes; "*" is every name that does not begin with a dot
	Changes bool   // programs write to such a file, so it is copied; others are links
}

// String says what commands may do there.
func (s Visibility) String() string {
	switch s {
	case Copied:
		return "what commands write there goes to a copy of their own"
	case Owned:
		return "commands have a directory of their own there"
	}
	return "commands may read it"
}

// owned returns the directory of Visibility Owned that holds a place, or "".
func (p Policy) owned(place string) string {
	for _, other := range p.Places {
		if other.Visibility == Owned && other.Path != place && pathname.Within(other.Path, place) {
			return other.Path
		}
	}
	return ""
}

// brought reports whether commands find a path of a place where nothing can be mounted, and whether it is a link.
func (place Place) brought(path string) (found, linked bool) {
	rel, _ := pathname.In(place.Path, path)
	names := strings.Split(filepath.ToSlash(rel), "/")
	for _, part := range place.Parts {
		pattern := strings.Split(part.Path, "/")
		n := min(len(names), len(pattern))
		switch {
		case rel == ".":
			return true, false
		case !slices.EqualFunc(pattern[:n], names[:n], matches):
		case n < len(pattern):
			found = true
		case !part.Changes:
			return true, true
		case n == len(names):
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				return true, false
			}
		}
	}
	return found, false
}

// matches reports whether a part of a path is meant: a star is every name that does not begin with a dot.
func matches(pattern, name string) bool { return pattern == name || pattern == "*" && name[0] != '.' }

// place returns the innermost place that a path is in.
func (p Policy) place(path string) (found Place, ok bool) {
	for _, place := range p.Places {
		if pathname.Within(place.Path, path) && (!ok || len(place.Path) > len(found.Path)) {
			found, ok = place, true
		}
	}
	return found, ok
}

// readsHome explains a path in a home directory; ok is false elsewhere.
func (p Policy) readsHome(path string, t Tier) (e Effect, ok bool) {
	home := first(p.Homes, path)
	place, listed := p.place(path)
	found, _ := place.brought(path)
	switch {
	case t == Seatbelt || home == "" && !listed:
		return e, false
	case listed && (place.Visibility == Owned ||
		t == Landlock && place.Visibility == Copied && p.owned(place.Path) != "" && !found):
		why := fmt.Sprintf("commands have a directory of their own in place of %s", place.Path)
		if path != place.Path {
			why += ", and this is not in it"
		}
		return Effect{"read", path == place.Path, why}, true
	case t == Namespaces && p.Identity != "" && home != "" && home == p.Homes[0] &&
		path == filepath.Join(home, ".gitconfig"):
		return Effect{"read", true, "commands see a part of it: who commits, and how git treats files"}, true
	case listed:
		return Effect{"read", true, fmt.Sprintf("%s is on the list: %s", place.Path, place.Why)}, true
	}
	for _, other := range p.Places {
		if pathname.Within(path, other.Path) && path != home {
			why := fmt.Sprintf("of it commands see only what is on the list, such as %s", other.Path)
			return Effect{"read", true, why}, true
		}
	}
	why := fmt.Sprintf("the home directory %s is empty to commands but for a list of places; "+
		"native.read in your configuration adds to it", home)
	return Effect{"read", path == home, why}, true
}

// writesHome explains a write in a home directory; ok is false if the place does not decide.
func (p Policy) writesHome(path string, t Tier) (e Effect, ok bool) {
	place, listed := p.place(path)
	if !listed || t == Seatbelt || place.Visibility == Shown {
		return e, false
	}
	_, linked := place.brought(path)
	if place.Visibility == Copied && t == Landlock && (linked || p.owned(place.Path) == "") {
		return e, false
	}
	return Effect{"write", true, fmt.Sprintf("%s: %s, and yours does not change", place.Path, place.Visibility)}, true
}

// fills reports whether commands can write to a cache directory.
func (p Policy) fills(path string, t Tier) bool {
	path = filepath.Clean(path)
	if p.writable(path) != "" || t == Namespaces && first(temporaryDirs(), path) != "" {
		return true
	}
	if t == Landlock {
		return pathname.Within(p.Homes[0], path) // their home directory is another one
	}
	place, listed := p.place(path)
	return listed && place.Visibility != Shown
}

// GitIdentity returns the part of git's configuration in these files that commands need: who commits, and how git
// treats files. Nothing of it includes a file, or names a host or a credential. What a later file says counts.
func GitIdentity(files []string) string {
	var b strings.Builder
	for _, file := range files {
		for _, s := range gitSettings(file) {
			section, key, _ := strings.Cut(s.key, ".")
			if !identifies(section, key, s.value) {
				continue
			}
			if name, last, found := cutLast(key); found {
				fmt.Fprintf(&b, "[%s %s]\n\t%s = %s\n", section, gitQuoted(name), last, gitQuoted(s.value))
				continue
			}
			fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, key, gitQuoted(s.value))
		}
	}
	return b.String()
}

// identifies reports whether commands get a setting. Filters are among them: without that of LFS, git would store other
// content.
func identifies(section, key, value string) bool {
	switch section {
	case "user":
		return isOneOf(key, "name email useconfigonly")
	case "init":
		return key == "defaultbranch"
	case "safe":
		return key == "directory"
	case "core":
		return isOneOf(key, "attributesfile excludesfile") && strings.HasPrefix(value, "~/") ||
			isOneOf(key, "abbrev autocrlf checkstat commentchar eol filemode ignorecase logallrefupdates longpaths "+
				"precomposeunicode protecthfs protectntfs quotepath safecrlf symlinks trustctime whitespace")
	case "alias":
		return !strings.HasPrefix(value, "!") && !strings.Contains(key, ".")
	case "filter":
		_, last, _ := cutLast(key)
		return isOneOf(last, "clean smudge process required")
	}
	return false
}

func isOneOf(word, list string) bool { return slices.Contains(strings.Fields(list), word) }

// cutLast cuts at the last dot.
func cutLast(s string) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func gitQuoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

// exposes reports whether showing a path would show a whole home directory.
func (p Policy) exposes(path string) bool {
	return slices.ContainsFunc(p.Homes, func(home string) bool { return pathname.Within(path, home) })
}

// shadows reports whether a path lies in a directory that commands write.
func (p Policy) shadows(path string) bool {
	return first(append([]string{p.Root}, p.Write...), filepath.Clean(path)) != ""
}
