package workspace

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

const (
	oldText = "old content"
	newText = "the new content, which is longer"
)

// saboteur counts the calls of one WriteFile and spoils one of them.
type saboteur struct {
	spoil  int          // which call, from 0; negative: none
	how    func() error // returns the error instead of making the call, or panics
	after  bool         // make the call, then spoil
	short  int          // at most so many bytes a write
	calls  []string
	opened []*os.File
}

// crash is what a killed process looks like from inside.
type crash struct{}

func (s *saboteur) step(name string, call func() error) error {
	mine := len(s.calls) == s.spoil
	s.calls = append(s.calls, name)
	if mine && !s.after {
		return s.how()
	}
	err := call()
	if mine && s.after {
		return s.how()
	}
	return err
}

func (s *saboteur) disk() disk { return s.around(realDisk()) }

func (s *saboteur) around(r disk) disk {
	d := disk{}
	d.claim = r.claim
	d.create = func(name string) (f *os.File, err error) {
		err = s.step("create", func() (e error) {
			if f, e = r.create(name); e == nil {
				s.opened = append(s.opened, f)
			}
			return e
		})
		return f, err
	}
	d.write = func(f *os.File, data []byte) (n int, err error) {
		if s.short > 0 {
			data = data[:min(s.short, len(data))]
		}
		err = s.step("write", func() (e error) { n, e = r.write(f, data); return e })
		return n, err
	}
	d.chmod = func(f *os.File, m os.FileMode) error { return s.step("chmod", func() error { return r.chmod(f, m) }) }
	d.sync = func(f *os.File) error { return s.step("sync", func() error { return r.sync(f) }) }
	d.close = func(f *os.File) error { return s.step("close", func() error { return r.close(f) }) }
	d.rename = func(a, b string) error { return s.step("rename", func() error { return r.rename(a, b) }) }
	d.syncDir = func(dir string) error { return s.step("syncDir", func() error { return r.syncDir(dir) }) }
	d.remove = func(name string) error { s.calls = append(s.calls, "remove"); return r.remove(name) }
	return d
}

// attempt runs one write and says whether it crashed.
func (s *saboteur) attempt(path string) (crashed bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(crash); !ours {
				panic(r)
			}
			crashed = true
		}
		for _, f := range s.opened { // the kernel does this for a dead process
			_ = f.Close()
		}
	}()
	return false, s.disk().writeFile(path, []byte(newText), 0o640)
}

func TestEveryCallOfAWriteMayFail(t *testing.T) {
	for _, existing := range []bool{true, false} {
		for _, errno := range []error{syscall.ENOSPC, syscall.EIO, syscall.EINTR} {
			for k := 0; ; k++ {
				path := target(t, existing)
				s := &saboteur{spoil: k, short: 10, how: func() error { return errno }}
				_, err := s.attempt(path)
				if k >= len(s.calls) {
					check(t, err)
					break
				}
				name := fmt.Sprintf("%v at %d (%s)", errno, k, s.calls[k])
				if err == nil || !errors.Is(err, errno) {
					t.Fatalf("%s: got %v", name, err)
				}
				if left := leftovers(t, filepath.Dir(path)); len(left) > 0 {
					t.Fatalf("%s: left %v", name, left)
				}
				oldOrNew(t, name, path, existing, s.calls[k] == "syncDir")
			}
		}
	}
}

func TestEveryCallOfAWriteMayBeTheLast(t *testing.T) {
	for _, existing := range []bool{true, false} {
		for _, after := range []bool{false, true} {
			for k := 0; ; k++ {
				path := target(t, existing)
				s := &saboteur{spoil: k, after: after, short: 10, how: func() error { panic(crash{}) }}
				crashed, err := s.attempt(path)
				if !crashed {
					check(t, err)
					break
				}
				name := fmt.Sprintf("crash at %d (%s), after=%v", k, s.calls[k], after)
				isNew := s.calls[k] == "syncDir" || after && s.calls[k] == "rename"
				oldOrNew(t, name, path, existing, isNew)
				// The next writer is not disturbed, and tidies when the leftover is old enough.
				for _, left := range leftovers(t, filepath.Dir(path)) {
					check(t, os.Chtimes(left, time.Time{}, time.Now().Add(-2*staleAfter)))
				}
				check(t, WriteFile(path, []byte(newText), 0o600))
				wantContent(t, path, newText)
				if left := leftovers(t, filepath.Dir(path)); len(left) > 0 {
					t.Fatalf("%s: still there: %v", name, left)
				}
			}
		}
	}
}

func target(t *testing.T, existing bool) string {
	path := filepath.Join(t.TempDir(), "file")
	if existing {
		check(t, os.WriteFile(path, []byte(oldText), 0o600))
	}
	return path
}

func oldOrNew(t *testing.T, name, path string, existing, isNew bool) {
	t.Helper()
	got, err := os.ReadFile(path)
	switch {
	case isNew && string(got) == newText, !isNew && existing && string(got) == oldText, !isNew && !existing &&
		os.IsNotExist(err):
	default:
		t.Fatalf("%s: the file holds %q, %v", name, got, err)
	}
}

func TestContentIsDurableBeforeItIsVisible(t *testing.T) {
	s := &saboteur{spoil: -1}
	_, err := s.attempt(target(t, true))
	check(t, err)
	want := []string{"create", "write", "chmod", "sync", "close", "rename", "syncDir"}
	if !slices.Equal(s.calls, want) {
		t.Fatalf("got %v, want %v", s.calls, want)
	}
}

func TestWriteThatMakesNoProgressEnds(t *testing.T) {
	d := realDisk()
	d.write = func(*os.File, []byte) (int, error) { return 0, nil }
	if err := d.writeFile(target(t, true), []byte("x"), 0o600); err == nil {
		t.Fatal("no failure")
	}
}

func TestWriteKeepsOrSetsPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	path := filepath.Join(t.TempDir(), "file")
	for _, want := range []os.FileMode{0o640, 0o755, 0o400} {
		if want != 0o640 {
			check(t, os.Chmod(path, want))
		}
		check(t, WriteFile(path, []byte(newText), 0o640))
		info, err := os.Stat(path)
		check(t, err)
		if info.Mode().Perm() != want {
			t.Fatalf("mode is %o, want %o", info.Mode().Perm(), want)
		}
	}
}

func TestWriteThroughLinks(t *testing.T) {
	dir := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(dir, "far", "deep"), 0o700))
	check(t, os.WriteFile(filepath.Join(dir, "far", "file"), []byte(oldText), 0o600))
	// "jump/../file" is far/file, and not file: jump leads into far/deep.
	for name, to := range map[string]string{
		"jump": "far/deep", "relative": "far/file", "absolute": filepath.Join(dir, "far", "file"),
		"twice": "relative", "dots": "jump/../file", "dangling": "far/made", "loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	for i, name := range []string{"relative", "absolute", "twice", "dots"} {
		text := fmt.Sprint(newText, i)
		check(t, WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		wantContent(t, filepath.Join(dir, "far", "file"), text)
	}
	check(t, WriteFile(filepath.Join(dir, "dangling"), []byte(newText), 0o600))
	wantContent(t, filepath.Join(dir, "far", "made"), newText)
	if info, err := os.Lstat(filepath.Join(dir, "dangling")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Fatal("the link was replaced")
	}
	if exists(filepath.Join(dir, "file")) {
		t.Fatal("dots were cleaned before links were resolved")
	}
	wantCode(t, WriteFile(filepath.Join(dir, "loop"), nil, 0o600), fault.SymlinkLoop)
	wantCode(t, WriteFile(filepath.Join(dir, "jump"), nil, 0o600), fault.Unsafe)
	wantCode(t, WriteFile(filepath.Join(dir, "none", "file"), nil, 0o600), fault.FileMissing)
}

func TestSweepLeavesWhatIsAliveOrYoungOrNotOurs(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-2 * staleAfter)
	leave := func(name string, age time.Time) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte("x"), 0o600))
		check(t, os.Chtimes(path, age, age))
		return path
	}
	dead := leave(temporaryPrefix+"dead", long)
	young := leave(temporaryPrefix+"young", time.Now())
	foreign := leave("file", long)
	living := leave(temporaryPrefix+"living", long)
	f, err := os.OpenFile(living, os.O_WRONLY, 0)
	check(t, err)
	defer f.Close()
	claim(f)
	check(t, sweep(dir, -1))
	for path, want := range map[string]bool{dead: false, young: true, foreign: true, living: true} {
		if exists(path) != want {
			t.Errorf("%s: exists is %v, want %v", path, !want, want)
		}
	}
}

// TestKilledWhileWriting kills a process that writes as fast as it can, at moments that nobody chose.
func TestKilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for n := range hermetic.Times(60, 10) {
		cmd, _, out := other(t, "rewrite", path)
		awaitLines(t, out, 1+n%3)
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond) // the random moment
		check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		data, err := ReadFile(path, 1<<20)
		check(t, err)
		if err := whole(data); err != nil {
			t.Fatalf("kill %d: %v", n, err)
		}
	}
	for _, left := range leftovers(t, filepath.Dir(path)) {
		check(t, os.Chtimes(left, time.Time{}, time.Now().Add(-2*staleAfter)))
	}
	check(t, sweep(filepath.Dir(path), -1))
	if left := leftovers(t, filepath.Dir(path)); len(left) > 0 {
		t.Fatalf("left %v", left)
	}
}

func awaitLines(t *testing.T, out *bufio.Reader, n int) {
	t.Helper()
	for range n {
		_, err := out.ReadString('\n')
		check(t, err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	check(t, os.WriteFile(path, []byte("12345"), 0o600))
	data, err := ReadFile(path, 5)
	check(t, err)
	if string(data) != "12345" {
		t.Fatalf("got %q", data)
	}
	_, err = ReadFile(path, 4)
	wantCode(t, err, fault.FieldTooLarge)
	_, err = ReadFile(filepath.Join(dir, "none"), 5)
	wantCode(t, err, fault.FileMissing)
	_, err = ReadFile(dir, 5)
	wantCode(t, err, fault.Unsafe)
	if runtime.GOOS == "linux" {
		_, err = ReadFile("/proc/self/stat", 5) // says that it is empty
		wantCode(t, err, fault.FieldTooLarge)
		_, err = ReadFile("/dev/zero", 5)
		wantCode(t, err, fault.Unsafe)
	}
}

func TestMkdirAllIsPrivate(t *testing.T) {
	dir := t.TempDir()
	check(t, MkdirAll(filepath.Join(dir, "a", "b")))
	info, err := os.Stat(filepath.Join(dir, "a"))
	check(t, err)
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Fatalf("mode is %o", info.Mode().Perm())
	}
	check(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	wantCode(t, MkdirAll(filepath.Join(dir, "file", "b")), fault.Unsafe)
}

func TestAppendIsPrivateHealsAndRefusesTwoLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	check(t, Append(path, []byte("one"), 0))
	check(t, Append(path, []byte("two\n"), 0))
	wantContent(t, path, "one\ntwo\n")
	check(t, os.WriteFile(path, []byte("one\ntw"), 0o600))
	check(t, Append(path, []byte("three"), 0))
	wantContent(t, path, "one\ntw\nthree\n")
	wantCode(t, Append(path, []byte("a\nb"), 0), fault.ArgError)
	wantCode(t, Append(filepath.Dir(path), []byte("a"), 0), fault.Unsafe)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
}

func TestTwentyProcessesAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	var start, done []func()
	for n := range 20 {
		cmd, stdin, out := other(t, "append", path, string(rune('a'+n)))
		awaitLines(t, out, 1)
		start = append(start, func() { _ = stdin.Close() })
		done = append(done, func() { check(t, cmd.Wait()) })
	}
	for _, f := range slices.Concat(start, done) {
		f()
	}
	data, err := os.ReadFile(path)
	check(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	seen := map[string]bool{}
	for _, line := range lines {
		if line == "" {
			continue // two healed at once
		}
		var who, body string
		var n int
		if _, err := fmt.Sscan(line, &who, &n, &body); err != nil || body != strings.Repeat(who, 1+n*37) {
			t.Fatalf("a line is not whole: %q %v", line, err)
		}
		seen[fmt.Sprint(who, n)] = true
	}
	if len(seen) != 2000 {
		t.Fatalf("%d lines, want 2000", len(seen))
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"one", "two", ""} {
		check(t, Replace(path, []byte(text), 0o600))
		if data, err := os.ReadFile(path); err != nil || string(data) != text {
			t.Errorf("%q, %v", data, err)
		}
	}
	err := Replace(filepath.Join(dir, "none", "file"), nil, 0o600)
	wantCode(t, err, fault.FileMissing)
	check(t, os.Mkdir(filepath.Join(dir, "taken"), 0o700))
	if err := Replace(filepath.Join(dir, "taken"), nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*"+temporaryEnding)); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}
