package fork

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/sandbox"
)

// choose creates the content of the fork in the wanted tier, or in the best one that works.
func (f *Fork) choose(ctx context.Context, wanted Tier) error {
	var reasons []string
	fixes := map[Tier]string{
		Overlay: "let users make namespaces (omniagent doctor says how)",
		Reflink: "keep the workspace and XDG_STATE_HOME on one btrfs or XFS",
		Copy:    "make room there, or set XDG_STATE_HOME",
	}
	failed := fault.New(fault.ServiceDown, "no fork can be made of %s", f.Workspace)
	for _, t := range Tiers() {
		if wanted != "" && t != wanted {
			continue
		}
		var err error
		var unfit error // what is wrong with the workspace, on a machine that supports the tier
		if t == Overlay {
			if err = f.overlay(); err == nil {
				unfit = f.keepRefs()
				err = unfit
			}
		} else {
			err = f.copy(ctx, t)
		}
		if err == nil {
			f.Tier = t
			return nil
		}
		if ctx.Err() != nil {
			return fault.New(fault.Interrupted, "the making of the fork was interrupted").Because(ctx.Err())
		}
		if errors.Is(err, syscall.ENOSPC) && f.full() {
			return fault.New(fault.DiskFull, "no fork can be made of %s: the disk with %s is full", f.Workspace,
				f.store.Dir).Hint("make room there, for example with omniagent cleanup, or set XDG_STATE_HOME")
		}
		if unfit != nil { // programs can write the workspace, and must not be able to choose a weaker tier
			return unfitFor(f.Workspace, unfit)
		}
		why, fix := fault.Bare(err).Error(), fixes[t]
		if f := fault.Of(err); f.Code == fault.ServiceDown {
			why, fix = f.Message, cmp.Or(f.Suggestion, fix)
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s; fix: %s", t, why, fix))
		failed = failed.With(string(t), why)
		_ = workspace.Purge(f.tree())
		_ = workspace.Purge(filepath.Join(f.dir, layersDir))
	}
	failed.Message += ": " + strings.Join(reasons, ". ")
	return failed.Hint("apply one of the fixes above")
}

// unfitFor returns why a workspace cannot have a fork that the machine supports.
func unfitFor(workspace string, why error) error {
	return fault.New(fault.Unsafe, "no fork can be made of %s: git's files there cannot be copied: %s", workspace,
		why).Because(why).Hint("remove the file that the message names, or make it readable")
}

// full reports whether the disk is full: the kernel says the same where there can be no more namespaces.
func (f *Fork) full() bool {
	path := filepath.Join(f.dir, "room")
	err := os.WriteFile(path, make([]byte, 64<<10), 0o600)
	_ = os.Remove(path)
	return errors.Is(err, syscall.ENOSPC)
}

// overlay prepares the layers, and tries them unless that was done since the last boot.
func (f *Fork) overlay() error {
	f.Layers = f.layersIn(f.dir)
	for _, l := range f.Layers {
		if err := likeDir(l.Lower, l.Upper); err != nil {
			return err
		}
	}
	tried, key := filepath.Join(f.store.Dir, ".overlay"), f.kindOfLayers()
	if known, err := workspace.ReadFile(tried, jsonLimit); err == nil && string(known) == key {
		return nil
	}
	if err := f.try(); err != nil {
		return err
	}
	return workspace.WriteDerived(tried, []byte(key), 0o600)
}

// layersIn returns the layers of a fork in dir: over the workspace, over file systems mounted in it, and over
// repositories that are elsewhere. A layer over a repository that the workspace lies in covers both.
func (f *Fork) layersIn(dir string) (list []sandbox.Layer) {
	if f.Tier != "" && f.Tier != Overlay {
		return nil
	}
	over := []string{f.Workspace}
	for _, at := range f.data.dirs {
		if !slices.ContainsFunc(over, func(o string) bool { return pathname.Within(o, at) }) {
			over = append(slices.DeleteFunc(over, func(o string) bool { return pathname.Within(at, o) }), at)
		}
	}
	for _, top := range slices.Clone(over) {
		mounts, _ := sandbox.MountsBeneath(top)
		for _, at := range mounts {
			if info, err := os.Lstat(at); err == nil && info.IsDir() && !slices.Contains(over, at) {
				over = append(over, at)
			}
		}
	}
	for _, lower := range over {
		at := filepath.Join(dir, layersDir, fmt.Sprintf("%x", sha256.Sum256([]byte(lower)))[:12])
		list = append(list, sandbox.Layer{
			Lower: lower, Upper: filepath.Join(at, "upper"), Work: filepath.Join(at, "work"), Name: f.mark(),
		})
	}
	return list
}

// kindOfLayers returns a key for everything that a trial of the layers depends on.
func (f *Fork) kindOfLayers() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	parts := []string{strings.TrimSpace(string(boot)), fmt.Sprint(os.Geteuid())}
	for _, l := range f.Layers {
		for _, dir := range []string{l.Lower, f.store.Dir} {
			if info, err := os.Stat(dir); err == nil {
				parts = append(parts, fmt.Sprint(workspace.StatusOf(info).Device))
			}
		}
	}
	return strings.Join(parts, " ")
}

// upper returns the place in the layers that covers a path, whether it exists or not.
func (f *Fork) upper(path string) string {
	best := -1
	for i, l := range f.Layers {
		if pathname.Within(l.Lower, path) && (best < 0 || len(l.Lower) > len(f.Layers[best].Lower)) {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	rel, _ := filepath.Rel(f.Layers[best].Lower, path)
	return filepath.Join(f.Layers[best].Upper, rel)
}

// keepRefs copies the workspace's branches into the layers. Otherwise a later commit in the workspace would become the
// parent of an unrelated commit in the fork. It leaves out files that are too large or not regular, which git.Refs does
// not read either. It also copies files of git behind links, which no layer covers, and returns an error with any of
// those that it cannot copy: programs of the fork would use the file itself.
func (f *Fork) keepRefs() error {
	if f.Common != "" {
		for path, limit := range f.home().Files() {
			err := f.keepInLayer(path, limit)
			if err != nil && !errors.Is(err, fault.FieldTooLarge) && !errors.Is(err, fault.Unsafe) {
				return err
			}
		}
	}
	for _, link := range f.data.links {
		if f.upper(pathname.Real(link)) != "" {
			continue
		}
		if err := f.keepInLayer(link, indexLimit); err != nil {
			return err
		}
	}
	return nil
}

// sameInGit reports whether a link of a git directory leads to the file of the same name in another one. Any other file
// may be a secret, and a command that cannot read it may have made the link: a copy would be within its reach. Walls
// keep commands from making the configuration a link.
func sameInGit(link, to string) bool {
	name, dir := filepath.Base(link), filepath.Dir(to)
	if name == "config" || name == "config.worktree" {
		return true
	}
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, part)); err != nil {
			return false
		}
	}
	return name == filepath.Base(to)
}

// keepInLayer copies a file of the workspace, unless it is missing, into the layer that covers it.
func (f *Fork) keepInLayer(path string, limit int64) error {
	if to := git.LinkAt(path); git.NamesRef(to) { // HEAD: its content would be a commit without the branch
		if err := f.likeParents(path); err != nil {
			return fmt.Errorf("%s: %w", path, fault.Bare(err))
		}
		return os.Symlink(to, f.upper(path))
	}
	if to := pathname.Real(path); to != pathname.Real(filepath.Dir(path))+"/"+filepath.Base(path) &&
		f.upper(to) == "" && !sameInGit(path, to) {
		return fmt.Errorf("%s leads to %s, which is not that file of another repository", path, to)
	}
	data, err := workspace.ReadFile(path, limit)
	if workspace.Absent(err) {
		return nil
	}
	info, errStat := os.Stat(path)
	if err = errors.Join(err, errStat); err == nil {
		err = f.likeParents(path)
	}
	if err == nil {
		err = os.WriteFile(f.upper(path), data, info.Mode().Perm())
	}
	if err == nil {
		err = sameOwner(f.upper(path), info)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, fault.Bare(err))
	}
	return nil
}

// likeParents creates the parents of a path in its layer.
func (f *Fork) likeParents(path string) error {
	dir := filepath.Dir(path)
	if _, err := os.Lstat(f.upper(dir)); err == nil {
		return nil
	}
	if err := f.likeParents(dir); err != nil {
		return err
	}
	return likeDir(dir, f.upper(dir))
}

// likeDir creates a directory with the attributes of another one, because those of the layer are visible.
func likeDir(dir, to string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := sameOwner(to, info); err != nil {
		return err
	}
	return os.Chmod(to, info.Mode().Perm()|info.Mode()&(fs.ModeSetgid|fs.ModeSticky))
}

// copy copies the workspace file by file.
func (f *Fork) copy(ctx context.Context, t Tier) error {
	if f.GitDir != "" && (!pathname.Within(f.Workspace, f.GitDir) || !pathname.Within(f.Workspace, f.Common)) {
		return fmt.Errorf("its repository is outside of it, in %s", f.Common)
	}
	if t == Reflink {
		if err := f.tryClone(); err != nil {
			return err
		}
	}
	to := copier{tier: t, names: map[[2]uint64]string{}}
	err := filepath.WalkDir(f.Workspace, func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && errors.Is(err, fs.ErrNotExist):
			return nil // it was removed in the meantime
		case err != nil:
			return err
		}
		rel, err := filepath.Rel(f.Workspace, path)
		if err == nil && e.Name() == ".git" {
			err = f.copied(filepath.Dir(path))
		}
		if err != nil {
			return err
		}
		if err = to.copy(path, filepath.Join(f.tree(), rel), e); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := f.finishDirs(); err != nil {
		return err
	}
	x, err := snapshot.Take(ctx, f.tree(), snapshot.Options{})
	if err != nil {
		return err
	}
	return x.SaveFile(filepath.Join(f.dir, copyIndex))
}

// finishDirs sets the modes and times of the copied directories last, because the modes may forbid writing, and writing
// changes the times.
func (f *Fork) finishDirs() error {
	var dirs []string
	err := filepath.WalkDir(f.tree(), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		rel, _ := filepath.Rel(f.tree(), dir)
		info, errStat := os.Stat(filepath.Join(f.Workspace, rel))
		if errStat != nil {
			continue
		}
		_ = os.Chtimes(dir, info.ModTime(), info.ModTime())
		if errMode := os.Chmod(dir, info.Mode().Perm()); err == nil {
			err = errMode
		}
	}
	return err
}

// tryClone returns an error if cloning a file of the workspace fails.
func (f *Fork) tryClone() error {
	var found string
	_ = filepath.WalkDir(f.Workspace, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil && info.Size() > 0 {
				found = path
				return fs.SkipAll
			}
		}
		return nil
	})
	if found == "" {
		return nil
	}
	to := filepath.Join(f.dir, "try")
	defer os.Remove(to)
	if err := workspace.Clone(found, to, 0o600); err != nil {
		return fmt.Errorf("files cannot share blocks between %s and %s: %s", f.Workspace, f.store.Dir, fault.Bare(err))
	}
	return nil
}

// copier copies the files of a workspace.
type copier struct {
	tier  Tier
	names map[[2]uint64]string // the copy of a file that has several names, by device and inode
}

// copy copies a file or a link, or creates a directory. It skips sockets and devices.
func (c copier) copy(from, to string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch {
	case e.IsDir():
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
	case e.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case e.Type().IsRegular():
		if workspace.Links(info) > 1 {
			is := workspace.StatusOf(info)
			inode := [2]uint64{is.Device, is.Inode}
			if first := c.names[inode]; first != "" && os.Link(first, to) == nil {
				return nil
			}
			c.names[inode] = to
		}
		if c.tier == Reflink {
			err = workspace.Clone(from, to, info.Mode().Perm())
		} else {
			err = workspace.Copy(from, to, info.Mode().Perm())
		}
		if err != nil {
			return err
		}
	default:
		return nil
	}
	if err := sameOwner(to, info); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// keepFile links a file, or copies it if that fails.
func keepFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	return workspace.Copy(from, to, 0o600)
}
