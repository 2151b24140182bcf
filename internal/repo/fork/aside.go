package fork

import "path/filepath"

// Version is a path of the fork before a change that is not applied, such as that of a check of an agent's work.
type Version struct {
	Kept string `json:"kept,omitempty"` // a file, link or directory with that content; empty: nothing existed
	Lost bool   `json:"lost,omitempty"` // the content was not kept, so the path stays in the fork
	Left Left   `json:"left"`           // what the change left there: if it has changed again, that is applied
}

// Left is what a change that is set aside left at a path.
type Left struct {
	Gone     bool     `json:"gone,omitempty"` // nothing
	Target   string   `json:"target,omitempty"`
	Size     int64    `json:"size,omitempty"`
	Modified int64    `json:"modified,omitempty"`
	Sum      [32]byte `json:"sum,omitzero"` // of the content, if it is known
}

// stands reports whether the path is still as it was left.
func (l Left) stands(path string) bool {
	is, err := theirs(path)
	switch {
	case err != nil:
		return false
	case is == nil || l.Gone:
		return is == nil && l.Gone
	case is.isLink():
		return is.target == l.Target
	case !is.isFile():
		return l.Target == "" && l.Sum == [32]byte{}
	case is.status.Size != l.Size || l.Target != "":
		return false
	case is.status.Modified == l.Modified:
		return true
	}
	sum, err := is.digest()
	return err == nil && sum == l.Sum
}

// SetAside makes Changes, Apply and Branch use earlier versions of these paths of the workspace.
func (f *Fork) SetAside(versions map[string]Version) { f.aside = versions }

// before returns the earlier version of a path. aside is false if there is none, or if the path has changed since.
func (f *Fork) before(name string) (v Version, aside bool) {
	if v, aside = f.aside[name]; aside {
		aside = v.Left.stands(f.Real(filepath.Join(f.Workspace, filepath.FromSlash(name))))
	}
	return v, aside
}

// setAside replaces the paths that are set aside by their earlier versions.
func (f *Fork) setAside(touched map[string]string) {
	for name := range f.aside {
		switch v, aside := f.before(name); {
		case aside && v.Lost:
			delete(touched, name)
		case aside:
			touched[name] = v.Kept
		}
	}
}
