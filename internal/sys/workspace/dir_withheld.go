package workspace

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
)

// restrictions are the restricted files of a Dir.
type restrictions struct {
	hidden    []string // real names below the root, with slashes; neither read nor written
	protected []string // names below the root; written only by their own name
	never     Names    // never read
	named     Names    // read only by their own name
}

// Names selects files by their real names below a root, with slashes.
type Names func(real string) bool

func (n Names) match(real string) bool { return n != nil && n(real) }

// empty reports that nothing is restricted.
func (w *restrictions) empty() bool {
	return len(w.hidden)+len(w.protected) == 0 && w.never == nil && w.named == nil
}

// Restrict protects files from reading: those in never under any name and in any search, those in named unless their
// own name is given, because the decision about a call only sees the given name. Either may be nil. Call it before any
// other method.
func (d *Dir) Restrict(never, named Names) { d.restrictions.never, d.restrictions.named = never, named }

// skips reports whether a search that began at start leaves out a file.
func (w *restrictions) skips(start, real string) bool {
	return w.isHidden(real) || w.never.match(real) || w.named.match(real) && !w.named.match(start)
}

// Withhold protects the absolute paths in hidden from reading and writing, and the names in protected, relative to the
// root, from writing under another name: the decision about a call only sees its names, and a link must not falsify
// them. Call it before any other method.
func (d *Dir) Withhold(hidden, protected []string) {
	for _, p := range hidden {
		p = pathname.Real(p)
		if rel, ok := beneathPath(d.real, p, foldsCase(d.path)); ok {
			d.restrictions.hidden = append(d.restrictions.hidden, filepath.ToSlash(rel))
		} else if _, inside := beneathPath(p, d.real, foldsCase(d.path)); inside {
			d.restrictions.hidden = append(d.restrictions.hidden, ".")
		}
	}
	for _, name := range protected {
		d.restrictions.protected = append(d.restrictions.protected, path.Clean(filepath.ToSlash(name)))
	}
}

// isHidden reports whether a real name below the root is hidden.
func (w *restrictions) isHidden(real string) bool { return slices.ContainsFunc(w.hidden, among(real)) }

// among returns a function that reports whether real is a name or below it. It ignores case, which on other file
// systems only withholds a few more names.
func among(real string) func(string) bool {
	return func(name string) bool {
		return name == "." || strings.EqualFold(real, name) || len(real) > len(name) && real[len(name)] == '/' &&
			strings.EqualFold(real[:len(name)], name)
	}
}

// mayRead checks the real path of an opened file.
func (d *Dir) mayRead(name string, f *os.File) error {
	if d.restrictions.empty() {
		return nil
	}
	real, ok := d.placeOf(f, name)
	if !ok {
		return nil
	}
	return d.restrictions.checkRead(real, name)
}

// checkRead returns an error if the file at real must not be read under a name.
func (w *restrictions) checkRead(real, name string) error {
	switch {
	case w.isHidden(real):
		return hiddenFile(name)
	case w.never.match(real):
		return reasoned(fault.New(fault.PermissionDenied, "a rule of the user forbids reading %s", name), name,
			"blocked").Hint("Ask the user for what is needed of it.")
	case w.named.match(real) && !w.named.match(path.Clean(name)):
		return reasoned(fault.New(fault.PermissionDenied, "%s leads to %s, which the user is asked about", name, real),
			name, "blocked").
			Hint("Name %s itself: then somebody can be asked about it.", real)
	}
	return nil
}

// mayWrite checks the real path of the opened directory in which base is about to be written. named is the requested
// name.
func (d *Dir) mayWrite(named string, parent *os.Root, target string) error {
	if len(d.restrictions.hidden)+len(d.restrictions.protected) == 0 {
		return nil
	}
	real := target
	if f, err := parent.Open("."); err == nil {
		dir, ok := d.placeOf(f, path.Dir(target))
		_ = f.Close()
		if ok {
			real = path.Join(dir, path.Base(target))
		}
	}
	if d.restrictions.isHidden(real) {
		return hiddenFile(named)
	}
	for _, name := range d.restrictions.protected {
		if among(real)(name) && !among(path.Clean(named))(name) {
			return reasoned(fault.New(fault.PermissionDenied, "%s leads to %s, which decides what may run here", named,
				real), named, "blocked").
				Hint("Name %s itself: then somebody can be asked about it.", real)
		}
	}
	return nil
}

// placeOf returns the path of an open file or directory relative to the root. ok is false if it is not below the root.
func (d *Dir) placeOf(f *os.File, name string) (rel string, ok bool) {
	return d.located(func() (string, error) { return actualPath(f) }, name)
}

func (d *Dir) located(actual func() (string, error), name string) (rel string, ok bool) {
	if d.restrictions.empty() {
		return "", false
	}
	place, err := actual()
	if err != nil { // if the system does not report it, use the current target of the name
		rel, err := d.resolve(name)
		return rel, err == nil && !filepath.IsAbs(filepath.FromSlash(name))
	}
	rel, ok = beneathPath(d.real, place, foldsCase(d.path))
	return filepath.ToSlash(rel), ok
}

func hiddenFile(name string) error {
	return reasoned(fault.New(fault.PermissionDenied, "%s has credentials: no tool may read or write it", name), name,
		"blocked").
		Hint("Ask the user for what is needed of it.")
}
