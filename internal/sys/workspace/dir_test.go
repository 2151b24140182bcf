package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// yard is a workspace with an outside.
type yard struct {
	*Dir
	top, in, out string
}

func newYard(t *testing.T) yard {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	y := yard{top: top, in: filepath.Join(top, "in"), out: filepath.Join(top, "out")}
	for path, text := range map[string]string{
		"in/file": oldText, "in/sub/deep/file": oldText, "out/secret": oldText, "in-evil/secret": oldText,
		"kept/long": oldText,
	} {
		y.put(t, path, text)
	}
	y.Dir, err = OpenDir(y.in, filepath.Join(top, "kept"), filepath.Join(top, "later"))
	check(t, err)
	t.Cleanup(func() { _ = y.Close() })
	return y
}

func (y yard) put(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(y.top, path)
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(text), 0o644))
}

func (y yard) link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(y.in, name)); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

func wantReason(t *testing.T, what string, err error, reason string) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: nothing was refused, want %s", what, reason)
	}
	if fault.Of(err).Detail["reason"] != reason {
		t.Fatalf("%s: got %v with the reason %v, want %s", what, err, fault.Of(err).Detail["reason"], reason)
	}
}

func TestNames(t *testing.T) {
	y := newYard(t)
	for written, want := range map[string]string{
		"file": "file", "./sub//deep/": "sub/deep", ".": ".", "a/../file": "file", "..a": "..a", "a..b": "a..b",
		" file ": "file", "./ a/": " a",
		"~": "~", "~/x": "~/x", "../in/file": "file", "sub/../../in": ".",
		y.in: ".", y.in + "/": ".", y.in + "/sub/../file": "file", y.in + "/none/x": "none/x",
		filepath.Join(y.top, "kept", "long"):  filepath.ToSlash(filepath.Join(y.top, "kept", "long")),
		filepath.Join(y.top, "later", "long"): filepath.ToSlash(filepath.Join(y.top, "later", "long")),
	} {
		if got, err := y.Name(written); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", written, got, err, want)
		}
	}
	for written, reason := range map[string]string{
		"": "invalid", " \t\n": "invalid", strings.Repeat("a/", 5000): "invalid", "a\x00b": "invalid", "..": "outside",
		"../out/secret": "outside", "a/../../out": "outside", "../in-evil/secret": "outside",
		"/": "outside", y.in + "-evil/secret": "outside", y.in + "/../out/secret": "outside", `C:\x`: "outside",
		"C:/x": "outside",
	} {
		if runtime.GOOS == "windows" && written == "/" {
			reason = "invalid"
		}
		_, err := y.Name(written)
		wantReason(t, written, err, reason)
	}
}

// TestNamesBehindLinks: what .. means behind a link is what it means to a program.
func TestNamesBehindLinks(t *testing.T) {
	y := newYard(t)
	if err := errors.Join(os.MkdirAll(filepath.Join(y.in, "a", "b"), 0o700),
		os.Symlink("a/b", filepath.Join(y.in, "l")), os.Symlink(y.top, filepath.Join(y.in, "out"))); err != nil {
		t.Skip("no link can be made:", err)
	}
	for written, want := range map[string]string{
		"l/../f": "a/f", "l/../../f": "f", y.in + "/l/../new/f": "a/new/f", "l/..": "a", "a/b/../f": "a/f",
		"l/f": "l/f",
	} {
		if got, err := y.Name(written); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", written, got, err, want)
		}
	}
	_, err := y.Name("out/../x")
	wantReason(t, "out/../x", err, "outside")
}

func TestARootWithSeveralNames(t *testing.T) {
	y := newYard(t)
	check(t, os.Symlink(y.in, filepath.Join(y.top, "alias")))
	check(t, os.Symlink(y.top, filepath.Join(y.top, "out", "up")))
	alias, err := OpenDir(filepath.Join(y.top, "alias"))
	check(t, err)
	defer alias.Close()
	for _, d := range []*Dir{y.Dir, alias} {
		for _, written := range []string{"alias/sub/none", "in/sub/none", "out/up/in/sub/none"} {
			if got, err := d.Name(filepath.Join(y.top, written)); err != nil || got != "sub/none" {
				t.Errorf("%s in %s: got %q, %v", written, d.Path(), got, err)
			}
		}
	}
}

func TestPathsOfWindows(t *testing.T) {
	for _, c := range []struct{ system, root, written, want string }{
		{"linux", "/work", `a\b`, `a\b`},
		{"linux", "/work", `C:\a`, ""},
		{"linux", "/work", "C:a", "C:a"},
		{"linux", "/mnt/c/work", `C:\work\a.go`, "/mnt/c/work/a.go"},
		{"linux", "/mnt/c/work", `d:/x/../y`, "/mnt/d/y"},
		{"linux", "/mnt/c/work", `src\a.go`, "src/a.go"},
		{"linux", "/mnt/c", `src\a.go`, "src/a.go"},
		{"linux", "/mnt/cd", `src\a.go`, `src\a.go`},
		{"windows", `C:\work`, `C:\work\a.go`, "C:/work/a.go"},
		{"windows", `C:\work`, "/mnt/c/work/a.go", "c:/work/a.go"},
		{"windows", `C:\work`, "/mnt/c", "c:/"},
		{"windows", `C:\work`, "/mnt/cache/x", "/mnt/cache/x"},
		{"windows", `C:\work`, `src\a.go`, "src/a.go"},
	} {
		if got := spell(c.system, c.root, c.written); got != c.want {
			t.Errorf("%s in %s on %s: got %q, want %q", c.written, c.root, c.system, got, c.want)
		}
	}
	if _, ok := beneathPath("/mnt/c/Work", "/mnt/c/work/a", true); !ok {
		t.Error("a drive of Windows takes capital letters for small ones")
	}
}

// TestLinks reads and replaces through every kind of link.
func TestLinks(t *testing.T) {
	y := newYard(t)
	inside := map[string]string{ // link: what it leads to
		"relative": "sub/deep/file", "absolute": filepath.Join(y.in, "sub", "deep", "file"), "chain": "absolute",
		"around": "../in/sub/deep/file",
	}
	outside := map[string]string{
		"escape": "../out/secret", "escape-absolute": filepath.Join(y.out, "secret"), "escape-chain": "escape",
		"dangling-out": "../out/none", "dangling-out-absolute": filepath.Join(y.out, "none"), "system": "/etc/passwd",
		"zero": "/dev/zero",
		"twin": "../in-evil/secret",
	}
	dirs := map[string]string{"dir": "sub/deep", "dir-absolute": filepath.Join(y.in, "sub", "deep")}
	outDirs := map[string]string{"dir-out": "../out", "dir-out-absolute": y.out}
	for _, links := range []map[string]string{inside, outside, dirs, outDirs} {
		for name, to := range links {
			y.link(t, to, name)
		}
	}
	for name := range dirs {
		inside[name+"/file"] = ""
	}
	for name := range outDirs {
		outside[name+"/secret"], outside[name+"/none"] = "", ""
	}
	for name := range inside {
		data, err := y.ReadFile(name, 100)
		check(t, err)
		text := "through " + name
		check(t, y.Replace(name, []byte(text), ReplaceOptions{}))
		wantContent(t, filepath.Join(y.in, "sub", "deep", "file"), text)
		if len(data) == 0 {
			t.Errorf("%s: nothing read", name)
		}
	}
	for name := range outside {
		_, err := y.ReadFile(name, 100)
		wantReason(t, "read "+name, err, "outside")
		wantReason(t, "replace "+name, y.Replace(name, []byte("x"), ReplaceOptions{}), "outside")
	}
	for name := range outDirs {
		_, _, err := y.ReadDir(name, 0)
		wantReason(t, "list "+name, err, "outside")
	}
	for name := range dirs {
		entries, _, err := y.ReadDir(name, 0)
		if err != nil || len(entries) != 1 {
			t.Errorf("%s: got %v, %v", name, entries, err)
		}
	}
	wantContent(t, filepath.Join(y.out, "secret"), oldText)
	if entries, _ := os.ReadDir(y.out); len(entries) != 1 {
		t.Fatalf("something was made outside: %v", entries)
	}
	if info, err := y.Lstat("dir-absolute/../absolute"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("a link was followed or replaced: %v, %v", info, err)
	}
}

func TestLinksThatLeadNowhere(t *testing.T) {
	y := newYard(t)
	y.link(t, "sub/made", "dangling")
	y.link(t, filepath.Join(y.in, "new", "made"), "dangling-absolute")
	y.link(t, "loop", "loop")
	y.link(t, filepath.Join(y.in, "loop-b"), "loop-a")
	y.link(t, filepath.Join(y.in, "loop-a"), "loop-b")
	for name, made := range map[string]string{"dangling": "sub/made", "dangling-absolute": "new/made"} {
		_, err := y.ReadFile(name, 10)
		wantReason(t, name, err, "missing")
		check(t, y.Replace(name, []byte(newText), ReplaceOptions{}))
		wantContent(t, filepath.Join(y.in, made), newText)
	}
	for _, name := range []string{"loop", "loop-a"} {
		_, err := y.ReadFile(name, 10)
		wantCode(t, err, fault.SymlinkLoop)
		wantCode(t, y.Replace(name, nil, ReplaceOptions{}), fault.SymlinkLoop)
	}
}

// TestALinkThatMoves has somebody turn a directory into a link out of the workspace and back, as fast as it goes.
func TestALinkThatMoves(t *testing.T) {
	hermetic.Long(t)
	y := newYard(t)
	y.link(t, "sub", "a")
	y.link(t, y.out, "b")
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		way, one, two := filepath.Join(y.in, "way"), filepath.Join(y.in, "a"), filepath.Join(y.in, "b")
		for !stop.Load() {
			_ = os.Rename(one, way)
			_ = os.Rename(way, one)
			_ = os.Rename(two, way)
			_ = os.Rename(way, two)
		}
	}()
	t.Cleanup(func() { stop.Store(true); <-done })
	inside := 0
	for n := 0; n < 3000 && inside < 60; n++ {
		if y.Replace("way/file", []byte(newText), ReplaceOptions{}) == nil {
			inside++
		}
		if data, err := y.ReadFile("way/secret", 100); err == nil {
			t.Fatalf("read %q from outside", data)
		}
		if n%50 == 0 {
			_ = os.RemoveAll(filepath.Join(y.in, "way")) // Replace may have made it a directory
		}
	}
	if inside == 0 {
		t.Fatal("the way never led inside, so nothing was tried")
	}
	if entries, _ := os.ReadDir(y.out); len(entries) != 1 {
		t.Fatalf("something was made outside: %v", entries)
	}
}

func TestWhatOpenRefuses(t *testing.T) {
	y := newYard(t)
	for name, reason := range map[string]string{
		"none": "missing", "none/x": "missing", "sub": "not-regular", ".": "not-regular", "file/x": "not-directory",
		strings.Repeat("x", 300): "invalid", filepath.ToSlash(filepath.Join(y.out, "secret")): "outside",
		filepath.ToSlash(filepath.Join(y.top, "later", "x")): "missing",
	} {
		if runtime.GOOS == "windows" && (reason == "not-directory" || reason == "invalid") {
			continue
		}
		_, _, err := y.Open(name)
		wantReason(t, name, err, reason)
	}
	_, err := y.ReadFile("file", 3)
	wantReason(t, "file", err, "too-large")
	_, _, err = y.ReadDir("file", 0)
	wantReason(t, "file", err, "not-directory")
	if _, err := OpenDir(filepath.Join(y.in, "file")); err == nil {
		t.Error("a file was opened as a directory")
	}
	if _, err := OpenDir(filepath.Join(y.in, "none")); !errors.Is(err, fault.FileMissing) {
		t.Errorf("got %v", err)
	}
}

func TestFurtherDirectoriesAreOnlyRead(t *testing.T) {
	y := newYard(t)
	kept := filepath.ToSlash(filepath.Join(y.top, "kept"))
	data, err := y.ReadFile(kept+"/long", 100)
	if err != nil || string(data) != oldText {
		t.Fatalf("got %q, %v", data, err)
	}
	entries, _, err := y.ReadDir(kept, 0)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v, %v", entries, err)
	}
	if _, err := y.Lstat(kept); err != nil {
		t.Fatal(err)
	}
	wantReason(t, "write", y.Replace(kept+"/long", nil, ReplaceOptions{}), "read-only")
	check(t, os.Symlink(filepath.Join(y.out, "secret"), kept+"/escape"))
	if _, err := y.ReadFile(kept+"/escape", 100); err == nil {
		t.Fatal("a link led out of a further directory")
	}
	wantContent(t, filepath.Join(y.top, "kept", "long"), oldText)
}

func TestReadDirInParts(t *testing.T) {
	y := newYard(t)
	for i := range 20 {
		y.put(t, fmt.Sprintf("in/many/%02d", i), "")
	}
	for limit, want := range map[int]int{0: 20, 5: 5, 19: 19, 20: 20, 21: 20} {
		entries, more, err := y.ReadDir("many", limit)
		check(t, err)
		sorted := slices.IsSortedFunc(entries,
			func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		if len(entries) != want || more != (want < 20) || !sorted {
			t.Errorf("limit %d: got %d entries, more=%v, sorted=%v", limit, len(entries), more, sorted)
		}
	}
}

// TestBackslashes: a path written in the way of Windows is the one with slashes, unless the backslash is part of a name
// that there is.
func TestBackslashes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a backslash is never part of a name here")
	}
	y := newYard(t)
	check(t, os.MkdirAll(filepath.Join(y.in, `odd\dir`), 0o700))
	for written, want := range map[string]string{
		`sub\deep\file`: "sub/deep/file", `.\sub\deep`: "sub/deep", `sub\new`: "sub/new", `sub\..\file`: "file",
		y.in + `\sub\deep`: "sub/deep", `odd\dir`: `odd\dir`, `odd\dir/new`: `odd\dir/new`, `odd\other`: "odd/other",
	} {
		if got, err := y.Name(written); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", written, got, err, want)
		}
	}
	for _, written := range []string{`..\out\secret`, `sub\..\..\out`, y.in + `\..\out`} {
		_, err := y.Name(written)
		wantReason(t, written, err, "outside")
	}
}
