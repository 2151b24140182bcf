package fork

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/diff"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/snapshot"
)

// Change is a file in which a fork differs from its base.
type Change struct {
	Path    string
	Status  snapshot.Status
	Added   *int // lines; nil if they cannot be counted
	Removed *int
	Meets   bool // the workspace has changed it too
	Arrived bool // the workspace has the same

	was, is []byte
	text    bool
	dir     bool // a directory, which a patch leaves out
}

// touched returns the paths that the fork may have changed, relative to the workspace, with its files there, or ""
// where it has none. It leaves out the content of .git directories, in any case.
func (f *Fork) touched(ctx context.Context) (all map[string]string, err error) {
	if all = map[string]string{}; f.Tier == Overlay {
		err = f.touchedLayers(ctx, all)
	} else {
		err = f.touchedCopy(ctx, all)
	}
	f.setAside(all)
	return all, err
}

func (f *Fork) touchedLayers(ctx context.Context, all map[string]string) error {
	for _, l := range f.Layers {
		at := l.Lower
		switch {
		case pathname.Within(l.Lower, f.Workspace):
			at = f.Workspace // the layer may cover more than that
		case !pathname.Within(f.Workspace, l.Lower):
			continue
		}
		up, real := f.upper(at), f.Real(at)
		if real == at {
			continue // nothing was written
		}
		if real == "" || at != l.Lower && isOpaque(up) {
			f.lost(at, up, all)
		}
		if real == up {
			if err := f.visit(ctx, up, at, all); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Fork) touchedCopy(ctx context.Context, all map[string]string) error {
	begin, err := snapshot.LoadFile(filepath.Join(f.dir, copyIndex))
	if err != nil {
		return err
	}
	begin.Root = f.tree() // the index was made before the fork had its name
	is, err := snapshot.Take(ctx, f.tree(), snapshot.Options{Since: begin})
	if err != nil {
		return err
	}
	snapshot.Each(begin, is, func(name string, _, now *snapshot.File) {
		if name == "." || slices.ContainsFunc(strings.Split(name, "/"), isGitDir) {
			return
		}
		all[name] = ""
		if now != nil {
			all[name] = filepath.Join(f.tree(), filepath.FromSlash(name))
		}
	})
	return nil
}

// visit collects the content of a directory in a layer, and the paths that it hides.
func (f *Fork) visit(ctx context.Context, upper, lower string, all map[string]string) error {
	entries, err := os.ReadDir(upper)
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	for _, e := range entries {
		up, low := filepath.Join(upper, e.Name()), filepath.Join(lower, e.Name())
		info, err := e.Info()
		if isGitDir(e.Name()) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		was, errLow := os.Lstat(low)
		wasDir := errLow == nil && was.IsDir()
		switch {
		case isWhiteout(info):
			f.lost(low, up, all)
		case e.IsDir():
			if !wasDir || isOpaque(up) {
				f.lost(low, up, all)
			}
			if !wasDir {
				all[f.rel(low)] = up
			}
			if err := f.visit(ctx, up, low, all); err != nil {
				return err
			}
		default:
			if wasDir {
				f.lost(low, up, all)
			}
			all[f.rel(low)] = up
		}
	}
	return nil
}

// isGitDir reports whether a name means .git. It ignores case, because a program in the fork may have changed the case
// where the file system ignores it.
func isGitDir(name string) bool { return strings.EqualFold(name, ".git") }

func (f *Fork) rel(path string) string {
	rel, _ := filepath.Rel(f.Workspace, path)
	return filepath.ToSlash(rel)
}

// lost collects the paths of the workspace at and below a path that the fork does not have. It skips those in the
// layer.
func (f *Fork) lost(low, up string, all map[string]string) {
	_ = filepath.WalkDir(low, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was removed in the meantime
		}
		if isGitDir(e.Name()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(low, path)
		info, err := os.Lstat(filepath.Join(up, rel))
		if err != nil || isWhiteout(info) {
			all[f.rel(path)] = ""
		}
		return nil
	})
}

// Real returns the file that programs of the fork see at a path of the workspace or its repository, or "".
func (f *Fork) Real(path string) string {
	if f.Tier != Overlay {
		if path = f.Place(path); f.leadsOn(path) {
			return ""
		}
		return path
	}
	for at := path; ; at = filepath.Dir(at) {
		up := f.upper(at)
		if up == "" {
			return path
		}
		info, err := os.Lstat(up)
		switch {
		case err == nil && at == path && f.leadsOn(up):
			return ""
		case err == nil && at == path && !isWhiteout(info):
			return up
		case err == nil && (isWhiteout(info) || !info.IsDir() || at != path && isOpaque(up)):
			return ""
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// leadsOn reports whether a path among the fork's own files leads out of them, through a link.
func (f *Fork) leadsOn(path string) bool {
	for dir := filepath.Dir(path); dir != f.dir && pathname.Within(f.dir, dir); dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

// Changes returns the differences between the fork and its base, sorted by path.
func (f *Fork) Changes(ctx context.Context) ([]Change, error) {
	root, err := f.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	touched, err := f.touched(ctx)
	if err != nil {
		return nil, err
	}
	was, err := f.bases(ctx)
	if err != nil {
		return nil, err
	}
	defer was.close()
	all := []Change{}
	for name, path := range touched {
		t, err := theirs(path)
		if err != nil {
			return nil, fault.New(fault.PermissionDenied, "%s of the fork cannot be read: %s", name, fault.Bare(err))
		}
		m, err := mine(root, name)
		if err != nil {
			return nil, fault.New(fault.PermissionDenied, "%s cannot be read: %s", name, fault.Bare(err))
		}
		b := was.of(name, m)
		if b.known {
			if unchanged, err := b.is(t); err != nil || unchanged {
				continue
			}
		}
		c := Change{Path: name, Status: statusOf(b, t), dir: (t == nil || t.isDir()) && (!b.there || b.dir)}
		if t == nil && !b.there {
			continue // it was added to the workspace later
		}
		kept, _ := b.is(m)
		c.Arrived, _ = same(m, t)
		c.Meets = !kept && !c.Arrived
		c.count(b, t)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func statusOf(b base, t *side) snapshot.Status {
	switch {
	case t == nil:
		return snapshot.Deleted
	case !b.there:
		return snapshot.Added
	case b.known && (b.link != t.isLink() || b.dir != t.isDir()):
		return snapshot.Type
	case b.mine.isFile():
		if equal, err := sameContent(b.mine, t); err == nil && equal {
			return snapshot.Mode
		}
	case t.isFile():
		was, known := b.text()
		if is, err := t.content(); known && err == nil && bytes.Equal(was, is) {
			return snapshot.Mode
		}
	}
	return snapshot.Modified
}

// count counts the lines.
func (c *Change) count(b base, t *side) {
	known := false
	c.was, known = b.text()
	if t != nil && !t.isFile() || !known {
		return
	}
	if t != nil {
		var err error
		if c.is, err = t.content(); err != nil {
			return
		}
	}
	if c.text = isText(c.was) && isText(c.is); !c.text {
		return
	}
	removed, added := diff.Count(c.was, c.is)
	c.Removed, c.Added = &removed, &added
}

// Patch writes the change as a unified diff.
func (c Change) Patch(w io.Writer) error {
	if c.dir {
		return nil
	}
	before, after := diff.Quote("a/"+c.Path), diff.Quote("b/"+c.Path)
	if c.Status == snapshot.Added {
		before = "/dev/null"
	}
	if c.Status == snapshot.Deleted {
		after = "/dev/null"
	}
	var body bytes.Buffer
	if c.text {
		if err := diff.Write(&body, c.was, c.is); err != nil {
			return err
		}
	} else {
		body.WriteString(string(c.Status) + ", and not shown as text\n")
	}
	_, err := io.WriteString(w, diff.Names(before, after)+body.String())
	return err
}

func (f *Fork) openRoot() (*os.Root, error) {
	root, err := os.OpenRoot(f.Workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.FileMissing, "the workspace %s of the fork %s no longer exists", f.Workspace,
			f.Name).With("path", f.Workspace).Hint("put it back, or read the fork itself in %s", f.dir)
	}
	if err != nil {
		return nil, fault.Of(err)
	}
	return root, nil
}
