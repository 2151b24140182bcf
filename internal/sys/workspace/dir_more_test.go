package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"omniagent/internal/kit/fault"
)

// twoRoots is a yard with a further directory to work in, and one that lies around both.
func twoRoots(t *testing.T) (y yard, more *Dir, at func(string) string) {
	t.Helper()
	y = newYard(t)
	y.put(t, "more/file", oldText)
	y.put(t, "more/sub/file", oldText)
	y.put(t, "more-evil/secret", oldText)
	more, err := y.Add(filepath.Join(y.top, "more"))
	check(t, err)
	if more == nil {
		t.Fatal("it was not added")
	}
	return y, more, func(name string) string { return filepath.ToSlash(filepath.Join(y.top, "more", name)) }
}

func linkAt(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

// TestFurtherRoot: its files are read, changed, made, listed and searched by their absolute names.
func TestFurtherRoot(t *testing.T) {
	y, _, at := twoRoots(t)
	for written, want := range map[string]string{
		at("file"): at("file"), at("x/../sub"): at("sub"), "../more/file": at("file"), at(""): at(""),
		filepath.Join(y.in, "file"): "file", "file": "file",
	} {
		if name, err := y.Name(written); err != nil || name != want {
			t.Errorf("%s: got %q, %v, want %q", written, name, err, want)
		}
	}
	for _, written := range []string{at("../out/secret"), at("../more-evil/secret"), "../more-evil/secret", at("..")} {
		_, err := y.Name(written)
		wantReason(t, written, err, "outside")
	}
	data, seen, err := y.Load(at("file"), 100)
	if check(t, err); string(data) != oldText {
		t.Errorf("%q", data)
	}
	target, err := y.Resolve(at("sub/../file"))
	if check(t, err); target != at("file") {
		t.Errorf("%q", target)
	}
	check(t, y.Replace(at("file"), []byte(newText), ReplaceOptions{Expect: &seen, Target: target}))
	wantContent(t, filepath.FromSlash(at("file")), newText)
	wantContent(t, filepath.Join(y.in, "file"), oldText)
	wantReason(t, "changed", y.Replace(at("file"), []byte(oldText), ReplaceOptions{Expect: &seen}), "changed")
	check(t, y.Replace(at("new/deep"), []byte(newText), ReplaceOptions{Expect: &Fingerprint{}}))
	wantContent(t, filepath.FromSlash(at("new/deep")), newText)
	entries, _, err := y.ReadDir(at(""), 0)
	if check(t, err); len(entries) != 3 {
		t.Errorf("%v", entries)
	}
	if info, err := y.Stat(at("sub")); err != nil || !info.IsDir() {
		t.Errorf("%v", err)
	}
	var mu sync.Mutex
	var found []string
	_, err = y.Survey(context.Background(), at(""), nil, Survey{
		Enter: func(f *Folder, entries []Entry) {
			for _, e := range entries {
				if e.Type == DirectoryEntry {
					f.Descend(e.Name, nil)
				} else {
					f.Take(e.Name)
				}
			}
		},
		File: func(_ int, f *Folder, name string) { mu.Lock(); defer mu.Unlock(); found = append(found, f.Join(name)) },
	})
	if check(t, err); len(found) != 3 {
		t.Errorf("%v", found)
	}
	if full := y.Above(at("sub"), func(*Parent) {}); filepath.ToSlash(full) != at("sub") {
		t.Errorf("%q", full)
	}
}

// TestNoWayBetweenRoots: a link that leads out of one is refused, also where it leads into another, and what was
// decided about one name is not done to another.
func TestNoWayBetweenRoots(t *testing.T) {
	y, _, at := twoRoots(t)
	links := map[string]string{
		"absolute": filepath.Join(y.out, "secret"), "relative": "../out/secret", "other": filepath.Join(y.in,
			"file"), "evil": "../more-evil/secret", "up": "..", "proc": "/proc/self/root",
	}
	for name, to := range links {
		linkAt(t, to, filepath.FromSlash(at(name)))
	}
	linkAt(t, filepath.FromSlash(at("file")), filepath.Join(y.in, "across"))
	for _, name := range []string{
		at("absolute"), at("relative"), at("other"), at("evil"), at("up/out/secret"),
		at("up/in/file"), at("proc/etc/passwd"), "across",
	} {
		if _, err := y.ReadFile(name, 1<<20); err == nil {
			t.Errorf("%s was read", name)
		}
		if err := y.Replace(name, []byte(newText), ReplaceOptions{}); err == nil {
			t.Errorf("%s was written", name)
		}
		if _, err := y.Resolve(name); err == nil {
			t.Errorf("%s was resolved", name)
		}
	}
	for _, path := range []string{"out/secret", "in/file", "more-evil/secret", "more/file"} {
		wantContent(t, filepath.Join(y.top, path), oldText)
	}
	wantReason(t, "another root", y.Replace(at("file"), []byte(newText), ReplaceOptions{Target: "file"}), "changed")
	wantReason(t, "another name", y.Replace(at("file"), []byte(newText), ReplaceOptions{Target: at("sub/file")}),
		"changed")
	wantReason(t, "our root", y.Replace("file", []byte(newText), ReplaceOptions{Target: at("file")}), "changed")
	linkAt(t, "sub", filepath.FromSlash(at("within")))
	if target, err := y.Resolve(at("within/file")); err != nil || target != at("sub/file") {
		t.Errorf("%q, %v", target, err)
	}
	check(t, os.Remove(filepath.FromSlash(at("within"))))
	linkAt(t, "../out", filepath.FromSlash(at("within")))
	wantReason(t, "moved link", y.Replace(at("within/file"), []byte(newText), ReplaceOptions{Target: at("sub/file")}),
		"outside")
}

// TestWithheldInEachRoot: what nobody reads or writes, and what only its own name may change.
func TestWithheldInEachRoot(t *testing.T) {
	y, more, at := twoRoots(t)
	y.put(t, "more/.ssh/key", oldText)
	y.put(t, "more/.git/hooks/run", oldText)
	linkAt(t, ".ssh", filepath.FromSlash(at("keys")))
	linkAt(t, ".git/hooks", filepath.FromSlash(at("docs")))
	more.Withhold([]string{filepath.FromSlash(at(".ssh"))}, []string{".git/hooks"})
	more.Restrict(func(real string) bool { return real == "sub/file" }, nil)
	for _, name := range []string{at(".ssh/key"), at("keys/key"), at("sub/file")} {
		_, err := y.ReadFile(name, 100)
		wantReason(t, name, err, "blocked")
	}
	wantReason(t, "credentials", y.Replace(at("keys/new"), nil, ReplaceOptions{}), "blocked")
	wantReason(t, "a hook by a link", y.Replace(at("docs/run"), nil, ReplaceOptions{}), "blocked")
	wantContent(t, filepath.FromSlash(at(".git/hooks/run")), oldText)
}

// TestWhatCanBeAdded: not everything, not what is known, and the inner of two is found first.
func TestWhatCanBeAdded(t *testing.T) {
	y, _, at := twoRoots(t)
	for _, dir := range []string{y.in, filepath.Join(y.in, "sub"), at(""), at("sub")} {
		if more, err := y.Add(filepath.FromSlash(dir)); err != nil || more != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := y.Add(filepath.VolumeName(y.top) + string(filepath.Separator)); fault.Of(err) == nil ||
		fault.Of(err).Code != fault.Unsafe {
		t.Errorf("%v", err)
	}
	if _, err := y.Add(filepath.Join(y.top, "none")); err == nil {
		t.Error("what is not there was added")
	}
	around, err := y.Add(y.top)
	if check(t, err); around == nil {
		t.Fatal("it was not added")
	}
	around.Withhold(nil, nil)
	for name, want := range map[string]string{
		filepath.Join(y.in, "file"): "file", filepath.FromSlash(at("file")): at("file"), filepath.Join(y.out,
			"secret"): filepath.ToSlash(filepath.Join(y.out, "secret")),
	} {
		if got, err := y.Name(name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if own, rel := y.owner(at("file")); rel != "file" || own == around {
		t.Errorf("%q", rel)
	}
	if own, rel := y.owner(filepath.ToSlash(filepath.Join(y.out, "secret"))); own != around || rel != "out/secret" {
		t.Errorf("%q", rel)
	}
	if paths := strings.Join(y.AddedDirs(), " "); paths != filepath.Join(y.top, "more")+" "+y.top {
		t.Error(paths)
	}
}
