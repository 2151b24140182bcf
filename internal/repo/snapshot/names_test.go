package snapshot

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/sys/workspace"
	"omniagent/internal/testkit/hermetic"
)

// Settled takes indexes of a root until the status of every file and directory proves something.
func Settled(t testing.TB, root string, o Options) *Index {
	t.Helper()
	for began := time.Now(); ; {
		x, err := Take(t.Context(), root, o)
		if err != nil {
			t.Fatal(err)
		}
		name := x.recent()
		if name == "" {
			return x
		}
		if time.Since(began) > hermetic.Patience {
			t.Fatalf("%s is still recent", name)
		}
	}
}

// recent returns a path whose status proves nothing, or "".
func (x *Index) recent() string {
	for _, f := range x.folders {
		for _, e := range f.entries {
			if e.about&recent != 0 {
				return f.join(e.name)
			}
		}
	}
	return ""
}

// trustsTimes reports whether the file system of the test is one whose directories tell of their names.
func trustsTimes(t *testing.T, root string) (trusts bool) {
	t.Helper()
	dir, err := workspace.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	_, err = dir.Survey(t.Context(), ".", nil, workspace.Survey{
		Enter: func(f *workspace.Folder, _ []workspace.Entry) { trusts = f.KeepsTime() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return trusts
}

// paths are the paths of an index.
func (x *Index) paths() (all []string) {
	for _, f := range x.folders {
		for _, e := range f.entries {
			all = append(all, f.join(e.name))
		}
	}
	return all
}

// without takes a name out of an index that says that there is no other one.
func (x *Index) without(t *testing.T, dir, name string) {
	t.Helper()
	for _, f := range x.folders {
		if f.path != dir {
			continue
		}
		if !f.complete {
			t.Errorf("%q is not complete", dir)
		}
		for i, e := range f.entries {
			if e.name == name {
				f.entries = append(f.entries[:i:i], f.entries[i+1:]...)
				return
			}
		}
	}
	t.Fatalf("%s/%s is not in the index", dir, name)
}

func branches(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, path := range []string{"a/b/one", "a/b/two", "a/b/deep/three", "a/c/four"} {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestNamesThatAreKnown says what is taken from the earlier index, by a lie in that index, and when it is not.
func TestNamesThatAreKnown(t *testing.T) {
	all := []string{"a", "a/b", "a/c", "a/b/deep", "a/b/one", "a/b/two", "a/b/deep/three", "a/c/four"}
	rename := func(old, now string) func(string) error {
		return func(root string) error { return os.Rename(filepath.Join(root, old), filepath.Join(root, now)) }
	}
	for _, test := range []struct {
		name   string
		change func(root string) error // after the index with the lie
		want   []string
	}{
		{"nothing changes", nil, []string{"a", "a/b", "a/c", "a/b/deep", "a/b/one", "a/b/deep/three", "a/c/four"}},
		{"a name appears", func(root string) error {
			return os.WriteFile(filepath.Join(root, "a/b/new"), nil, 0o600)
		}, []string{"a", "a/b", "a/c", "a/b/deep", "a/b/new", "a/b/one", "a/b/two", "a/b/deep/three", "a/c/four"}},
		{"a name goes", func(root string) error {
			return os.Remove(filepath.Join(root, "a/b/one"))
		}, []string{"a", "a/b", "a/c", "a/b/deep", "a/b/two", "a/b/deep/three", "a/c/four"}},
		{"a name comes back", func(root string) error {
			path := filepath.Join(root, "a/b/one")
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.WriteFile(path, []byte("a/b/one"), 0o600)
		}, all},
		{"a file moves", rename("a/c/four", "a/b/four"), []string{
			"a", "a/b", "a/c", "a/b/deep", "a/b/four", "a/b/one", "a/b/two", "a/b/deep/three",
		}},
		{"another directory has its name", func(root string) error {
			if err := rename("a/b", "a/x")(root); err != nil {
				return err
			}
			return rename("a/c", "a/b")(root)
		}, []string{"a", "a/b", "a/x", "a/b/four", "a/x/deep", "a/x/one", "a/x/two", "a/x/deep/three"}},
		{"only its time changes", func(root string) error {
			return os.Chtimes(filepath.Join(root, "a/b"), time.Time{}, time.Now())
		}, all},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := branches(t)
			since := Settled(t, root, Options{})
			since.without(t, "a/b", "two")
			again, err := Parse(since.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				if err := test.change(root); err != nil {
					t.Fatal(err)
				}
			}
			for _, since := range []*Index{since, again} {
				is, err := Take(t.Context(), root, Options{Since: since})
				if err != nil {
					t.Fatal(err)
				}
				want := test.want
				if test.change == nil && !trustsTimes(t, root) {
					want = all
				}
				if diff := cmp.Diff(want, is.paths()); diff != "" {
					t.Errorf("the index differs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestNamesThatAreNotAll takes indexes that do not have every name of a directory. A later one has them.
func TestNamesThatAreNotAll(t *testing.T) {
	root := branches(t)
	one := func(dir, name string) bool { return dir == "a/b" && name == "one" }
	first := Settled(t, root, Options{Except: one})
	is, err := Take(t.Context(), root, Options{Since: first})
	if err != nil || is.Find("a/b/one") == nil {
		t.Errorf("a/b/one is missing after an index that left it out: %v", err)
	}
	if is, err = Take(t.Context(), root, Options{Since: is, Except: one}); err != nil || is.Find("a/b/one") != nil {
		t.Errorf("a/b/one is there, against Except: %v", err)
	}
	whole := Settled(t, root, Options{})
	few := whole.Without(func(path string) bool { return path == "a/b/one" })
	if is, err = Take(t.Context(), root, Options{Since: few}); err != nil || is.Find("a/b/one") == nil {
		t.Errorf("a/b/one is missing after an index without it: %v", err)
	}
	fresh := Settled(t, root, Options{})
	fresh.without(t, "a/b", "two")
	for _, f := range fresh.folders {
		for i := range f.entries {
			f.entries[i].about |= recent
		}
	}
	if is, err = Take(t.Context(), root, Options{Since: fresh}); err != nil || is.Find("a/b/two") == nil {
		t.Errorf("a/b/two is missing, and may have appeared within the tick of the earlier index: %v", err)
	}
	for _, f := range whole.folders {
		f.complete = false
	}
	if same, vague := Same(whole, is); !same || vague == 0 && trustsTimes(t, root) {
		t.Errorf("Same reports %v, %d for an index that knows more names", same, vague)
	}
}
