package fork

import "path/filepath"

// Version is what a path of the fork was before something changed it that does not come home, such as a check of what
// an agent had done.
type Version struct {
	Kept string `json:"kept,omitempty"` // a file, link or directory that is the same; empty: nothing was there
	Lost bool   `json:"lost,omitempty"` // it was not kept, so the path stays in the fork
	Left Left   `json:"left"`           // what stands there since: if it has changed again, that comes home
}

// Left is what something that is set aside left at a path.
type Left struct {
	Gone     bool     `json:"gone,omitempty"` // nothing
	Target   string   `json:"target,omitempty"`
	Size     int64    `json:"size,omitempty"`
	Modified int64    `json:"modified,omitempty"`
	Sum      [32]byte `json:"sum,omitzero"` // of the content, if it is known
}

// stands reports whether a path still has it.
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

// SetAside lets Changes, Apply and Branch take paths of the workspace for what they were before.
func (f *Fork) SetAside(versions map[string]Version) { f.aside = versions }

// before returns what a path was before something changed it that is set aside.
func (f *Fork) before(name string) (v Version, aside bool) {
	if v, aside = f.aside[name]; aside {
		aside = v.Left.stands(f.Real(filepath.Join(f.Workspace, filepath.FromSlash(name))))
	}
	return v, aside
}

// setAside changes what the fork may have changed accordingly.
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
