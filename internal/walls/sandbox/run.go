package sandbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/pathname"
)

// runDirs returns the directories of the sockets of services and of logins.
func runDirs() []string { return []string{"/run", "/var/run"} }

// temporaryDirs returns the temporary directories that all users share. Commands have their own in place of them.
func temporaryDirs() []string { return []string{"/tmp", "/var/tmp"} }

// stayInRun returns what commands and agents see of /run: where /etc and PATH lead. shown are directories or files
// there, without links; links lead elsewhere.
func stayInRun(path string) (shown []string, links map[string]string) {
	links = map[string]string{}
	inRun := func(path string) bool { return first(runDirs(), path) != "" }
	for _, name := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/localtime", "/etc/nsswitch.conf"} {
		real, err := filepath.EvalSymlinks(name)
		if err != nil || !inRun(real) {
			continue
		}
		if dir := filepath.Dir(real); dir != "/run" {
			real = dir // the file is replaced when the network changes
		}
		shown = append(shown, real)
	}
	for _, name := range []string{"current-system", "booted-system", "opengl-driver"} { // of NixOS
		if to, err := os.Readlink("/run/" + name); err == nil {
			links["/run/"+name] = to
		}
	}
	for _, dir := range filepath.SplitList(path) {
		real, err := filepath.EvalSymlinks(dir)
		switch {
		case err != nil || !filepath.IsAbs(dir) || pathname.Within(real, "/run"):
			continue
		case inRun(real):
			shown = append(shown, real)
		}
		if dir = filepath.Clean(dir); dir != real && inRun(dir) && first(slices.Collect(maps.Keys(links)), dir) == "" {
			links[dir] = real
		}
	}
	return shown, links
}

// readsRun explains a path of /run that commands do not see; ok is false elsewhere.
func (p Policy) readsRun(path string, t Tier) (e Effect, ok bool) {
	dir := first(runDirs(), path)
	if t == Seatbelt || dir == "" || first(p.Read, path) != "" {
		return e, false
	}
	stay, _ := stayInRun(os.Getenv("PATH"))
	return Effect{"read", false, fmt.Sprintf("of %s commands see what /etc and PATH lead to, and no more", dir)},
		first(stay, path) == ""
}
