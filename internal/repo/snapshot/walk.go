package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/git"
	"omniagent/internal/sys/ignore"
	"omniagent/internal/sys/workspace"
)

const (
	rulesLimit = 1 << 20 // bytes of a file of rules
	// Two writes within a tick leave the same time. The kernel's is at most 10 ms; a file system that records whole
	// seconds has one of up to 2 s.
	tick       = 20 * time.Millisecond
	coarseTick = 2 * time.Second
)

// inherited is what a directory inherits from its parent.
type inherited struct {
	scope      *ignore.Scope
	repository *repository
	about      about
	folder     *folder // of the directory itself, after the first call of enter
	// old is the directory in Since, if the same rules applied there; nil: they may have differed.
	old *folder
	// asBefore says that the directory has its status of Since, which was old enough to prove that it is unchanged.
	asBefore bool
	device   uint64
}

// run walks through the root.
func (w *walk) run(ctx context.Context) error {
	first := w.fromAbove()
	_, err := w.dir.Survey(ctx, ".", first, workspace.Survey{
		Enter:  w.enter,
		Known:  w.known,
		Missed: func(path string, err error) { w.miss(path, err) },
	})
	if err != nil {
		return fault.New(fault.Interrupted, "the walk through %s was interrupted", w.index.Root).Because(err)
	}
	slices.SortFunc(w.index.folders, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	if len(w.index.folders) == 0 || w.index.folders[0].path != "" {
		return fault.New(fault.PermissionDenied, "%s cannot be read", w.index.Root)
	}
	for _, f := range w.index.folders {
		byName := func(a, b fileEntry) int { return strings.Compare(a.name, b.name) }
		if !f.complete && !slices.IsSortedFunc(f.entries, byName) { // it was read in several parts
			slices.SortFunc(f.entries, byName)
		}
	}
	return nil
}

// miss records that a file or a directory could not be read. One that has vanished is not recorded.
func (w *walk) miss(path string, err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		w.gap(path, fault.Bare(err).Error(), true)
	}
}

// fromAbove reads the rules above the root, and finds the repository to which the root belongs. Rules that exclude the
// root itself do not apply: somebody chose to work there.
func (w *walk) fromAbove() *inherited {
	p := &inherited{}
	if w.options.GitDir {
		p.about = stateOfGit
	}
	named := func(at string) {
		if at != "" && p.scope.Match(at, true) == ignore.Ignored {
			p.scope = (*ignore.Scope)(nil).Enter(at, ignore.Files{Repository: true})
		}
	}
	var top string
	full := w.dir.Above(".", func(dir *workspace.Parent) {
		at := fromTop(dir.Path)
		named(at)
		if dir.Has(".git") {
			top, p.repository = dir.Path, w.repository(dir.Path, "")
		}
		p.scope = p.scope.Enter(at, w.rules(dir, p))
	})
	w.above = fromTop(full)
	named(w.above)
	if p.repository != nil {
		rel, _ := filepath.Rel(top, full)
		p.repository.prefix = filepath.ToSlash(rel)
	}
	return p
}

// fromTop returns an absolute path with slashes, without the first slash.
func fromTop(full string) string {
	return strings.TrimPrefix(filepath.ToSlash(full[len(filepath.VolumeName(full)):]), "/")
}

// repository opens the repository of a working tree. It returns nil if that cannot be read: its files are ordinary
// then.
func (w *walk) repository(full, top string) *repository {
	opened, err := git.Open(full)
	if err != nil {
		return nil
	}
	r := &repository{dir: opened.Dir(), top: top, conversions: opened.Conversions()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.repos = append(w.repos, r)
	return r
}

// drawer is a directory that may contain rule files.
type drawer interface {
	Has(name string) bool
	ReadFile(name string, limit int64) ([]byte, error)
}

// rules reads the rules in a directory, and notes what its attributes mean for the repository.
func (w *walk) rules(d drawer, p *inherited) ignore.Files {
	read := func(name string, exists bool) []byte {
		if !exists && !d.Has(name) {
			return nil
		}
		data, _ := d.ReadFile(name, rulesLimit)
		return data
	}
	parse := func(data []byte) *ignore.Rules {
		if data == nil {
			return nil
		}
		return ignore.Parse(data)
	}
	f := ignore.Files{Repository: d.Has(".git")}
	if p.repository != nil && d.Has(".gitattributes") {
		data, err := d.ReadFile(".gitattributes", rulesLimit)
		w.mu.Lock()
		if p.repository.conversions.Note(data); err != nil {
			p.repository.conversions.NoteAll()
		}
		w.mu.Unlock()
	}
	if f.Repository || p.scope.InGit() {
		f.Git = parse(read(".gitignore", false))
	}
	if f.Repository {
		f.Exclude = parse(read(".git/info/exclude", true))
	}
	return f
}

// enter records the entries of a directory, or some of those of a large one.
func (w *walk) enter(f *workspace.Folder, entries []workspace.Entry) {
	p := f.State.(*inherited)
	if f.First() {
		p = w.begin(f, p)
		f.State = p
	}
	inside := strings.TrimPrefix(path.Join(w.above, f.Path)+"/", "/")
	where := append(make([]byte, 0, len(inside)+64), inside...) // memory for all paths: there are many
	p.folder.entries = slices.Grow(p.folder.entries, len(entries))
	slices.SortFunc(entries, func(a, b workspace.Entry) int { return strings.Compare(a.Name, b.Name) })
	before := p.old.all()
	for _, e := range entries {
		for len(before) > 0 && before[0].name < e.Name {
			before = before[1:]
		}
		if w.options.Except != nil && w.options.Except(f.Path, e.Name) {
			continue
		}
		status, links, err := f.StatusAndLinks(e.Name)
		if err != nil {
			w.miss(f.Join(e.Name), err)
			continue
		}
		is := fileEntry{name: e.Name, Status: status, about: p.about, linked: links > 1 && status.Mode.IsRegular()}
		if is.linked {
			w.note(status, links)
		}
		if isLink(status.Mode) {
			if is.target, err = f.Target(e.Name); err != nil {
				w.miss(f.Join(e.Name), err)
				continue
			}
		}
		switch {
		case is.about&stateOfGit != 0 || e.Name == ".git":
		case len(before) > 0 && before[0].name == e.Name && before[0].Mode.Type() == status.Mode.Type():
			is.about = before[0].about & ignored
		case is.about&ignored == 0:
			where = append(where[:len(inside)], e.Name...)
			path := unsafe.String(unsafe.SliceData(where), len(where)) // Match does not keep it
			if p.scope.Match(path, status.Mode.IsDir()) == ignore.Ignored {
				is.about |= ignored
			}
		}
		if w.isRecent(status.Changed) {
			is.about |= recent
		}
		if e.Name == ".git" {
			is.about |= stateOfGit
		}
		if status.Mode.IsDir() {
			if is.about&stateOfGit != 0 && !w.isState(f, e.Name, p.about) {
				continue
			}
			f.Descend(e.Name, &inherited{
				scope: p.scope, repository: p.repository, about: is.about &^ recent, old: p.old, device: status.Device,
				asBefore: len(before) > 0 && before[0].name == e.Name && before[0].Status == status &&
					before[0].about&recent == 0,
			})
		} else if p.about&stateOfGit != 0 && !w.isState(f, e.Name, p.about) {
			continue
		}
		p.folder.entries = append(p.folder.entries, is)
	}
	p.folder.complete = f.Whole() && len(p.folder.entries) == len(entries)
}

// isState reports whether a file of .git is part of the state of the repository. With Whole, everything but objects is;
// otherwise also logs and caches are not.
func (w *walk) isState(f *workspace.Folder, name string, parent about) bool {
	dir := f.Path
	if w.options.Whole {
		return parent&stateOfGit == 0 || name != "objects" ||
			path.Base(dir) != ".git" && (dir != "" || !w.options.GitDir) && !f.Has("HEAD") && !f.Has("refs")
	}
	// The first two are .git itself, and a file below a directory that was chosen.
	return parent&stateOfGit == 0 || dir != ".git" && !strings.HasSuffix(dir, "/.git") || git.Essential(name)
}

// begin creates the folder of a directory, with the rules that apply there. The root's .gitignore applies even without
// a repository.
func (w *walk) begin(f *workspace.Folder, p *inherited) *inherited {
	p = &inherited{scope: p.scope, repository: p.repository, about: p.about, old: w.before(f, p)}
	if p.about&(ignored|stateOfGit) == 0 {
		if f.Has(".git") {
			p.repository = w.repository(filepath.Join(w.index.Root, filepath.FromSlash(f.Path)), f.Path)
		}
		at := strings.TrimPrefix(w.above+"/"+f.Path, "/")
		at = strings.TrimSuffix(at, "/")
		rules := w.rules(f, p)
		if f.Path == "" && !p.scope.InGit() && !rules.Repository {
			data, _ := f.ReadFile(".gitignore", rulesLimit)
			rules.Repository, rules.Git = true, ignore.Parse(data)
		}
		p.scope = p.scope.Enter(at, rules)
	}
	p.folder = &folder{path: f.Path, repository: p.repository, ofGit: p.about&stateOfGit != 0}
	w.mu.Lock()
	w.index.folders = append(w.index.folders, p.folder)
	w.mu.Unlock()
	return p
}

// before returns the directory in Since, if the rules there and above have not changed. p is what the directory
// inherits.
func (w *walk) before(f *workspace.Folder, p *inherited) *folder {
	old := w.since[f.Path]
	switch {
	case old == nil:
		return nil
	case f.Path != "" && p.old == nil || f.Path == "" && p.scope.InGit() && !f.Has(".git"):
		return nil
	case p.about&stateOfGit != 0:
		return old
	}
	for _, name := range []string{".git", ".gitignore"} {
		was, exists := old.find(name), f.Has(name)
		if exists != (was != nil) {
			return nil
		}
		if !exists || was.Mode.IsDir() {
			continue
		}
		if is, err := f.Status(name); err != nil || is != was.Status || was.about&recent != 0 {
			return nil
		}
	}
	if exclude := f.Join(".git/info/exclude"); f.Has(".git") {
		was := w.since[path.Dir(exclude)].find("exclude")
		info, err := os.Lstat(filepath.Join(w.index.Root, filepath.FromSlash(exclude)))
		if (err == nil) != (was != nil) ||
			was != nil && (was.Status != workspace.StatusOf(info) || was.about&recent != 0) {
			return nil
		}
	}
	return old
}

// isRecent reports whether a file may have changed, or may still change, within the clock tick of the walk.
func (w *walk) isRecent(changed int64) bool {
	width := tick
	if changed%int64(time.Second) == 0 {
		width = coarseTick
	}
	return changed >= w.index.Taken.Add(-width).UnixNano()
}

// known returns the names in a directory whose status is the one in Since: they have not changed.
func (w *walk) known(f *workspace.Folder) []workspace.Entry {
	p := f.State.(*inherited)
	old := w.since[f.Path]
	if !p.asBefore || old == nil || !old.complete || !w.keepsTime(f, p.device) {
		return nil
	}
	entries := make([]workspace.Entry, len(old.entries))
	for i := range old.entries {
		entries[i].Name = old.entries[i].name
	}
	return entries
}

func (w *walk) keepsTime(f *workspace.Folder, device uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	keeps, asked := w.timely[device]
	if !asked {
		if w.timely == nil {
			w.timely = map[uint64]bool{}
		}
		keeps = f.KeepsTime()
		w.timely[device] = keeps
	}
	return keeps
}
