package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// surveyed is what a survey has seen that takes everything.
type surveyed struct {
	mu      sync.Mutex
	files   []string
	folders []string
	batches int
	before  func(f *Folder, entries []Entry)
	file    func(f *Folder, name string)
}

func (s *surveyed) walk(t *testing.T, ctx context.Context, d *Dir, name string) (missed int, err error) {
	t.Helper()
	missed, err = d.Survey(ctx, name, "", Survey{
		Enter: func(f *Folder, entries []Entry) {
			if s.before != nil {
				s.before(f, entries)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.batches++
			if f.First() {
				s.folders = append(s.folders, f.Path)
			}
			if state, _ := f.State.(string); state != f.Path {
				t.Errorf("%q has the state %q", f.Path, state)
			}
			slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
			for _, e := range entries {
				switch e.Type {
				case FileEntry:
					f.Take(e.Name)
				case DirectoryEntry:
					f.Descend(e.Name, f.Join(e.Name))
				}
			}
		},
		File: func(worker int, f *Folder, name string) {
			if worker < 0 || worker >= Workers() {
				t.Errorf("worker %d", worker)
			}
			if s.file != nil {
				s.file(f, name)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.files = append(s.files, f.Join(name))
		},
	})
	slices.Sort(s.files)
	slices.Sort(s.folders)
	return missed, err
}

func opened(t *testing.T, root string) *Dir {
	t.Helper()
	d, err := OpenDir(root)
	check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func grow(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		full := filepath.Join(root, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(full), 0o700))
		check(t, os.WriteFile(full, []byte(name), 0o600))
	}
}

func TestSurveySeesEverythingOnce(t *testing.T) {
	root := t.TempDir()
	names := []string{"a", "b/c", "b/d/e", ".h/i", "x y/é"}
	grow(t, root, names...)
	check(t, os.Mkdir(filepath.Join(root, "empty"), 0o700))
	s := &surveyed{file: func(f *Folder, name string) {
		data, err := f.ReadFile(name, 100)
		if err != nil || string(data) != f.Join(name) {
			t.Errorf("%s holds %q, %v", f.Join(name), data, err)
		}
		if at, ok := f.Modified(name); !ok || time.Since(at) > time.Hour {
			t.Errorf("%s: %v %v", name, at, ok)
		}
		if _, err := f.ReadFile(name, 0); err == nil {
			t.Error("a file larger than the limit was read")
		}
	}}
	missed, err := s.walk(t, context.Background(), opened(t, root), ".")
	check(t, err)
	slices.Sort(names)
	if missed != 0 || !slices.Equal(s.files, names) ||
		!slices.Equal(s.folders, []string{"", ".h", "b", "b/d", "empty", "x y"}) {
		t.Errorf("missed %d, %q, %q", missed, s.files, s.folders)
	}
	s = &surveyed{}
	_, err = s.walk(t, context.Background(), opened(t, root), "b")
	check(t, err)
	if !slices.Equal(s.files, []string{"c", "d/e"}) {
		t.Errorf("from b: %q", s.files)
	}
	_, err = (&surveyed{}).walk(t, context.Background(), opened(t, root), "a")
	if err == nil {
		t.Error("a file was surveyed")
	}
	_, err = (&surveyed{}).walk(t, context.Background(), opened(t, root), "none")
	if err == nil {
		t.Error("nothing was surveyed")
	}
}

// TestSurveyOfALargeDirectory: its names come in batches, each once.
func TestSurveyOfALargeDirectory(t *testing.T) {
	root := t.TempDir()
	const files = 3*batch + 17
	check(t, os.Mkdir(filepath.Join(root, "sub"), 0o700))
	first := filepath.Join(root, "file0")
	check(t, os.WriteFile(first, nil, 0o600))
	for i := 1; i < files; i++ { // names of one file, where it may have that many: thousands of files take seconds
		name := filepath.Join(root, fmt.Sprintf("file%d", i))
		if os.Link(first, name) != nil {
			check(t, os.WriteFile(name, nil, 0o600))
		}
	}
	has := 0
	s := &surveyed{before: func(f *Folder, _ []Entry) {
		all := f.Path == "" && f.Has("sub") && !f.Has("none")
		for i := range 100 {
			all = all && f.Has(fmt.Sprintf("file%d", i))
		}
		if all {
			has++
		}
	}}
	missed, err := s.walk(t, context.Background(), opened(t, root), ".")
	check(t, err)
	if missed != 0 || len(s.files) != files || len(slices.Compact(s.files)) != files || len(s.folders) != 2 ||
		s.batches < 3 || has != s.batches-1 {
		t.Errorf("missed %d, %d files, %q, %d batches, %d with file0", missed, len(s.files), s.folders, s.batches, has)
	}
}

// TestSurveyHoldsFewDescriptors in a tree that is deeper than what it keeps open.
func TestSurveyHoldsFewDescriptors(t *testing.T) {
	root := t.TempDir()
	const depth = keptOpen + 150
	at, err := os.OpenRoot(root)
	check(t, err)
	siblings := []string{"e", "f", "g", "h", "i", "j"} // they wait while d is gone into
	for range depth {                                  // the path as a whole would be too long
		check(t, at.Mkdir("d", 0o700))
		for _, name := range siblings {
			check(t, at.Mkdir(name, 0o700))
		}
		check(t, at.WriteFile("file", []byte("x"), 0o600))
		next, err := at.OpenRoot("d")
		check(t, err)
		_ = at.Close()
		at = next
	}
	_ = at.Close()
	most := 0
	s := &surveyed{
		before: func(*Folder, []Entry) {
			if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
				most = max(most, len(fds)) // close enough without a lock
			}
		},
		file: func(f *Folder, name string) {
			if data, err := f.ReadFile(name, 10); err != nil || string(data) != "x" {
				t.Errorf("%d deep: %q %v", strings.Count(f.Path, "/"), data, err)
			}
		},
	}
	s.before = locked(&s.mu, s.before)
	missed, err := s.walk(t, context.Background(), opened(t, root), ".")
	check(t, err)
	if missed != 0 || len(s.files) != depth || len(s.folders) != (1+len(siblings))*depth+1 {
		t.Errorf("missed %d, %d files, %d folders", missed, len(s.files), len(s.folders))
	}
	if most > keptOpen+50 {
		t.Errorf("%d descriptors were open", most)
	}
}

func locked(mu *sync.Mutex, do func(*Folder, []Entry)) func(*Folder, []Entry) {
	return func(f *Folder, entries []Entry) {
		mu.Lock()
		defer mu.Unlock()
		do(f, entries)
	}
}

// TestSurveyFollowsNoLink, not even one that takes the place of a directory while the survey is under way.
func TestSurveyFollowsNoLink(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	grow(t, root, "a/inside", "swap/inside", "file")
	grow(t, outside, "secret")
	for name, to := range map[string]string{
		"a/out": outside, "a/up": "..",
		"a/secret": filepath.Join(outside, "secret"), "b": "a",
	} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	s := &surveyed{before: func(f *Folder, _ []Entry) {
		if f.Path != "" {
			return
		}
		check(t, os.RemoveAll(filepath.Join(root, "swap")))
		check(t, os.Symlink(outside, filepath.Join(root, "swap")))
		check(t, os.Remove(filepath.Join(root, "file")))
		check(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "file")))
	}, file: func(f *Folder, name string) {
		for _, name := range []string{name, "out/secret", "up/file", "secret"} {
			if data, err := f.ReadFile(name, 100); err == nil && strings.Contains(string(data), "secret") {
				t.Errorf("%s in %q was read through a link", name, f.Path)
			}
		}
	}}
	missed, err := s.walk(t, context.Background(), opened(t, root), ".")
	check(t, err)
	if missed != 1 || !slices.Equal(s.files, []string{"a/inside", "file"}) {
		t.Errorf("missed %d, %q", missed, s.files)
	}
}

// TestSurveyEndsWithItsContext: no call is made once it has returned, and no descriptor is left.
func TestSurveyEndsWithItsContext(t *testing.T) {
	root := t.TempDir()
	for i := range 500 {
		grow(t, root, fmt.Sprintf("d%d/e/f%d", i%50, i))
	}
	d := opened(t, root)
	before := descriptors(t)
	for range 10 {
		ctx, cancel := context.WithCancel(context.Background())
		s := &surveyed{file: func(*Folder, string) { cancel() }}
		_, err := s.walk(t, ctx, d, ".")
		if !errors.Is(err, context.Canceled) || len(s.files) > 2*Workers() {
			t.Fatalf("%v after %d files", err, len(s.files))
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, before %d", after, before)
	}
}

// descriptors counts what is open, where that can be told.
func descriptors(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	fds, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(fds)
}
