package policy

import (
	_ "embed" // the places
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/config"
	"omniagent/internal/walls/sandbox"
)

//go:embed places.txt
var placesText string

// row is a place below any home directory.
type row struct {
	sight     sandbox.Visibility
	path, why string
	parts     []sandbox.Part
}

// table returns the rows of places.txt, the variables that move directories, and those of them that are for caches.
func table() (rows []row, moved map[string]string, caches []string) {
	sights := map[string]sandbox.Visibility{"show": sandbox.Shown, "copy": sandbox.Copied, "own": sandbox.Owned}
	moved = map[string]string{}
	for line := range strings.Lines(placesText) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		path, why, _ := strings.Cut(rest, "  ")
		path = filepath.FromSlash(path)
		sight, ok := sights[kind]
		switch {
		case ok:
			rows = append(rows, row{sight: sight, path: path, why: why})
		case kind == "links" || kind == "files":
			of := &rows[len(rows)-1]
			of.parts = append(of.parts, sandbox.Part{Path: filepath.ToSlash(path), Changes: kind == "files"})
		case kind == "moved" || kind == "cache":
			moved[path] = why
			if kind == "cache" {
				caches = append(caches, why)
			}
		}
	}
	return rows, moved, caches
}

// covered returns the home directories of which commands see only places: without links, that of the environment first.
// A directory that contains parts of the system cannot be covered.
func covered(homes ...string) (list []string) {
	if runtime.GOOS != "linux" {
		return nil
	}
	system := []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/nix", "/proc", "/run", "/sbin", "/sys",
		"/usr",
	}
	for _, home := range homes {
		real, err := filepath.EvalSymlinks(home)
		if info, statErr := os.Stat(home); statErr != nil || !info.IsDir() {
			continue
		}
		if err != nil || !filepath.IsAbs(real) || slices.Contains(list, real) ||
			slices.ContainsFunc(append(system, "/var/lib", "/opt"),
				func(dir string) bool { return pathname.Within(real, dir) }) ||
			slices.ContainsFunc(system, func(dir string) bool { return pathname.Within(dir, real) }) {
			continue
		}
		list = append(list, real)
	}
	return list
}

// sight decides what commands see of home directories.
type sight struct {
	w       Wanted
	homes   []string
	secrets []string // where credentials are kept in them
	places  []sandbox.Place
	caches  []string // see sandbox.Policy.Caches
}

func (w Wanted) sight(account string) sight {
	s := sight{w: w, homes: covered(w.Home, account)}
	for _, home := range s.homes {
		s.secrets = append(s.secrets, w.Agents.Credentials(home)...)
	}
	return s
}

// furnish sets what the policy says about home directories.
func (w Wanted) furnish(p *sandbox.Policy, account string) error {
	s := w.sight(account)
	if len(s.homes) == 0 {
		return nil
	}
	s.listed()
	for _, root := range append([]string{p.Root}, p.Roots...) {
		s.repository(root)
	}
	s.programs()
	if err := s.wanted(); err != nil {
		return err
	}
	p.Homes, p.Places, p.Caches = s.homes, s.places, s.caches
	if w.Temp != "" {
		p.Scratch = w.Temp + "-home"
	}
	p.Identity = sandbox.GitIdentity(gitOf(w.Home, w.variable("XDG_CONFIG_HOME")))
	slices.SortStableFunc(p.Places, func(a, b sandbox.Place) int { return strings.Compare(a.Path, b.Path) })
	p.Hidden = slices.DeleteFunc(p.Hidden, func(secret string) bool {
		at := func(dir string) bool { return pathname.Within(dir, secret) }
		return slices.ContainsFunc(s.homes, at) && !slices.ContainsFunc(append([]string{p.Root}, p.Write...), at)
	})
	return nil
}

func (w Wanted) variable(name string) string {
	if w.Lookup == nil {
		return ""
	}
	value, _ := w.Lookup(name)
	return value
}

// gitOf returns the files of git's configuration of a user, in the order in which git reads them.
func gitOf(home, config string) []string {
	if !filepath.IsAbs(home) {
		return nil
	}
	if !filepath.IsAbs(config) {
		config = filepath.Join(home, ".config")
	}
	return []string{filepath.Join(config, "git", "config"), filepath.Join(home, ".gitconfig")}
}

// opens returns why a path must not be shown, or "": it would show more than it seems to.
func (s *sight) opens(path string) string {
	paths := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		paths = append(paths, real)
	}
	for _, path := range paths {
		for _, home := range s.homes {
			if pathname.Within(path, home) {
				return "all of the home directory " + home + " would be seen"
			}
		}
		for _, secret := range s.secrets {
			if pathname.Within(path, secret) || pathname.Within(secret, path) {
				return "credentials are kept in " + secret
			}
		}
	}
	return ""
}

// show adds a readable place, unless it is already there.
func (s *sight) show(path, why string) {
	again := slices.ContainsFunc(s.places, func(p sandbox.Place) bool {
		return p.Path == path || p.Visibility != sandbox.Owned && pathname.Within(p.Path, path)
	})
	if !again && s.opens(path) == "" {
		s.places = append(s.places, sandbox.Place{Path: path, Visibility: sandbox.Shown, Why: why})
	}
}

// repository shows the repository in which a workspace lies, so that git and build tools work there.
func (s *sight) repository(root string) {
	top, found := config.ProjectRoot(root)
	if found && top != root && s.inside(top) {
		s.show(top, "the repository in which the workspace lies")
	}
	if dir := sandbox.SubmoduleDir(top); dir != "" && s.inside(dir) {
		s.show(dir, "the git directory of the workspace, a submodule")
	}
}

func (s *sight) inside(path string) bool {
	return slices.ContainsFunc(s.homes, func(home string) bool { return pathname.Within(home, path) })
}

// listed adds the places of the table. In the account's home directory, if HOME is another one, nothing is writable.
func (s *sight) listed() {
	rows, moved, caches := table()
	s.caches = caches
	for i, home := range s.homes {
		for _, r := range rows {
			switch {
			case i == 0:
			case r.sight == sandbox.Owned:
				continue
			default:
				r.sight = sandbox.Shown
			}
			path := filepath.Join(home, r.path)
			if i == 0 {
				path = s.moved(r.path, moved)
			}
			paths := []string{path}
			if strings.Contains(r.path, "*") {
				paths, _ = filepath.Glob(path)
			}
			for _, path := range paths {
				s.list(sandbox.Place{Path: path, Visibility: r.sight, Why: r.why, Parts: r.parts})
			}
		}
	}
}

// list adds a place of the table, unless it is a link to something that must not be shown. Only home directories are
// replaced for commands, so a place that a variable moves elsewhere is read-only.
func (s *sight) list(place sandbox.Place) {
	if !s.inside(place.Path) {
		place.Visibility = sandbox.Shown
	}
	if place.Visibility != sandbox.Owned {
		if real, err := filepath.EvalSymlinks(place.Path); err == nil && real != place.Path && s.opens(real) != "" {
			return
		}
	}
	if slices.ContainsFunc(s.places, func(p sandbox.Place) bool { return p.Path == place.Path }) {
		return // a variable of the environment has put it there
	}
	s.places = append(s.places, place)
}

// moved returns the path of a place of the table, according to the variables that move it.
func (s *sight) moved(path string, moved map[string]string) string {
	for dir := path; dir != "."; dir = filepath.Dir(dir) {
		name, ok := moved[dir]
		if !ok {
			continue
		}
		value, _, _ := strings.Cut(s.w.variable(name), string(filepath.ListSeparator))
		if !filepath.IsAbs(value) || s.opens(s.named(value)) != "" {
			continue
		}
		rel, _ := filepath.Rel(dir, path)
		return filepath.Join(s.named(value), rel)
	}
	return filepath.Join(s.homes[0], path)
}

// named returns a path below the home directory with that directory's name without links.
func (s *sight) named(path string) string {
	real, err := filepath.EvalSymlinks(s.w.Home)
	if rel, within := pathname.In(s.w.Home, filepath.Clean(path)); err == nil && within {
		return filepath.Join(real, rel)
	}
	return filepath.Clean(path)
}

// programs shows the directories of PATH that lie in a home directory.
func (s *sight) programs() {
	for _, dir := range filepath.SplitList(s.w.variable("PATH")) {
		if filepath.IsAbs(dir) && s.inside(s.named(dir)) {
			s.show(s.named(dir), "PATH names it")
		}
	}
}

// wanted shows what the user's configuration adds.
func (s *sight) wanted() error {
	for _, entry := range s.w.Read {
		path, err := s.added("native.read", entry, "commands need, such as ~/src/library")
		if err != nil {
			return err
		}
		covered := pathname.Within("/tmp", path) || pathname.Within("/var/tmp", path) || pathname.Within("/run", path)
		if s.inside(path) || covered { // all else is seen anyway
			s.show(path, "native.read names it")
		}
	}
	return nil
}

// added returns the path of an entry of a setting, or an error if it would show more than it seems to.
func (s *sight) added(key, entry, example string) (string, error) {
	path := entry
	if rest, ok := strings.CutPrefix(entry, "~"); ok && (rest == "" || rest[0] == '/') {
		path = filepath.Join(s.homes[0], rest)
	}
	why := "it is neither an absolute path nor one that begins with ~/"
	if filepath.IsAbs(path) {
		path = s.named(path)
		if why = s.opens(path); why == "" {
			return path, nil
		}
	}
	return "", fault.New(fault.ConfigInvalid, "%s cannot have %q: %s", key, entry, why).With("key", key).
		Hint("Name the files and directories that %s.", example)
}
