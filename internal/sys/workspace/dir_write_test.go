package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

func TestReplaceKeepsModesAndMakesParents(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	y := newYard(t)
	mode := func(name string) fs.FileMode {
		info, err := os.Stat(filepath.Join(y.in, name))
		check(t, err)
		return info.Mode().Perm()
	}
	for _, want := range []fs.FileMode{0o600, 0o755, 0o664, 0o200} {
		check(t, os.Chmod(filepath.Join(y.in, "file"), want))
		check(t, y.Replace("file", []byte(newText), ReplaceOptions{}))
		if got := mode("file"); got != want {
			t.Errorf("mode is %o, want %o", got, want)
		}
	}
	y.put(t, "in/usual", "")
	check(t, y.Replace("a/b/c", []byte(newText), ReplaceOptions{}))
	if got, want := mode("a/b/c"), mode("usual"); got != want {
		t.Errorf("a new file has the mode %o, others %o", got, want)
	}
	check(t, y.Replace("a/b/script", []byte(newText), ReplaceOptions{Mode: 0o700}))
	if got := mode("a/b/script"); got != 0o700 {
		t.Errorf("a new file has the mode %o", got)
	}
	check(t, os.Chmod(filepath.Join(y.in, "file"), 0o444))
	wantReason(t, "read-only", y.Replace("file", nil, ReplaceOptions{}), "blocked")
	wantReason(t, "directory", y.Replace("sub", nil, ReplaceOptions{}), "not-regular")
	wantReason(t, "root", y.Replace(".", nil, ReplaceOptions{}), "not-regular")
	wantReason(t, "beneath a file", y.Replace("usual/x", nil, ReplaceOptions{}), "not-directory")
}

func TestReplaceLeavesOtherNamesOfAFile(t *testing.T) {
	y := newYard(t)
	check(t, os.Link(filepath.Join(y.out, "secret"), filepath.Join(y.in, "hard")))
	check(t, y.Replace("hard", []byte(newText), ReplaceOptions{}))
	wantContent(t, filepath.Join(y.in, "hard"), newText)
	wantContent(t, filepath.Join(y.out, "secret"), oldText)
}

func TestReplaceExpects(t *testing.T) {
	y := newYard(t)
	file := filepath.Join(y.in, "file")
	_, print, err := y.Load("file", 100)
	check(t, err)
	past := time.Now().Add(-time.Hour)

	check(t, os.Chtimes(file, past, past)) // touched is not changed
	check(t, y.Replace("file", []byte(oldText), ReplaceOptions{Expect: &print}))

	same := strings.ToUpper(oldText) // of the same length and time
	info, err := os.Stat(file)
	check(t, err)
	_, print, err = y.Load("file", 100)
	check(t, err)
	check(t, os.WriteFile(file, []byte(same), 0o600))
	check(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
	wantReason(t, "changed", y.Replace("file", []byte(newText), ReplaceOptions{Expect: &print}), "changed")
	wantContent(t, file, same)

	check(t, os.Chtimes(file, past, past))
	_, print, err = y.Load("file", 100)
	check(t, err)
	check(t, os.WriteFile(file, []byte(oldText), 0o600))
	check(t, os.Chtimes(file, past, past)) // even the time is the old one
	wantReason(t, "changed", y.Replace("file", []byte(newText), ReplaceOptions{Expect: &print}), "changed")

	wantReason(t, "made", y.Replace("file", []byte(newText), ReplaceOptions{Expect: &Fingerprint{}}), "changed")
	check(t, os.Remove(file))
	wantReason(t, "gone", y.Replace("file", []byte(newText), ReplaceOptions{Expect: &print}), "changed")
	check(t, y.Replace("file", []byte(newText), ReplaceOptions{Expect: &Fingerprint{}}))
	wantContent(t, file, newText)
	if left := leftovers(t, y.in); len(left) > 0 {
		t.Fatalf("left %v", left)
	}
}

// TestReplaceLooksAtTheLastMoment changes the file between the writing of the new content and the rename.
func TestReplaceLooksAtTheLastMoment(t *testing.T) {
	for _, existing := range []bool{true, false} {
		y := newYard(t)
		var print Fingerprint
		var old fs.FileInfo
		var err error
		if existing {
			_, print, err = y.Load("file", 100)
			check(t, err)
			old, err = y.root.Lstat("file")
			check(t, err)
		} else {
			check(t, os.Remove(filepath.Join(y.in, "file")))
		}
		k := diskIn(y.root, 0o600)
		if !existing { // a rename would not notice a file that appears
			k.rename = func(string, string) error { return errors.New("renamed") }
			check(t, y.replaceIn(k, y.root, slot{"file", "file", nil}, []byte(newText), &print))
			check(t, os.Remove(filepath.Join(y.in, "file")))
		}
		closing := k.close
		k.close = func(f *os.File) error {
			y.put(t, "in/file", "by somebody else")
			return closing(f)
		}
		err = y.replaceIn(k, y.root, slot{"file", "file", old}, []byte(newText), &print)
		wantReason(t, "changed", err, "changed")
		wantContent(t, filepath.Join(y.in, "file"), "by somebody else")
	}
	y := newYard(t)
	check(t, os.WriteFile(filepath.Join(y.in, "temporary"), nil, 0o600))
	wantReason(t, "made in the very last moment", settle(diskIn(y.root, 0o600), y.root, "temporary",
		slot{"file", "file", nil}), "changed")
	wantContent(t, filepath.Join(y.in, "file"), oldText)
}

func TestAFingerprintThatIsTooFreshIsNotTrusted(t *testing.T) {
	y := newYard(t)
	_, print, err := y.Load("file", 100)
	check(t, err)
	info, err := y.Stat("file")
	check(t, err)
	if print.untouched(info) {
		t.Error("a second change within the clock's tick would not be seen")
	}
	print.taken = print.taken.Add(2 * racy)
	if inode, _ := identity(info); inode != 0 && !print.untouched(info) {
		t.Error("an old file is read again for nothing")
	}
	if (Fingerprint{}).untouched(info) {
		t.Error("no file is some file")
	}
}

func TestEveryCallOfAReplacementMayFailOrBeTheLast(t *testing.T) {
	for _, existing := range []bool{true, false} {
		for _, crashing := range []bool{true, false} {
			for k := 0; ; k++ {
				y := newYard(t)
				path := filepath.Join(y.in, "file")
				var old fs.FileInfo
				if existing {
					old, _ = y.root.Lstat("file")
				} else {
					check(t, os.Remove(path))
				}
				s := &saboteur{spoil: k, short: 10, how: func() error {
					if crashing {
						panic(crash{})
					}
					return syscall.EIO
				}}
				err := func() (err error) {
					defer func() {
						if recover() != nil {
							err = errors.New("crash")
						}
						for _, f := range s.opened {
							_ = f.Close()
						}
					}()
					return y.replaceIn(s.around(diskIn(y.root, 0o600)), y.root, slot{"file", "file", old},
						[]byte(newText), nil)
				}()
				if k >= len(s.calls) {
					check(t, err)
					break
				}
				if err == nil {
					t.Fatalf("%s failed, and nobody was told", s.calls[k])
				}
				oldOrNew(t, s.calls[k], path, existing, s.calls[k] == "syncDir")
				if left := leftovers(t, y.in); !crashing && len(left) > 0 {
					t.Fatalf("%s: left %v", s.calls[k], left)
				}
				for _, left := range leftovers(t, y.in) {
					check(t, os.Chtimes(left, time.Time{}, time.Now().Add(-2*staleAfter)))
				}
				check(t, y.Replace("file", []byte(newText), ReplaceOptions{}))
				if left := leftovers(t, y.in); len(left) > 0 && runtime.GOOS != "windows" {
					t.Fatalf("%s: still there: %v", s.calls[k], left)
				}
			}
		}
	}
}

func replaceForEver(path string) error {
	d, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		var o ReplaceOptions
		if _, print, err := d.Load(filepath.Base(path), 1<<20); err == nil || errors.Is(err, fault.FileMissing) {
			o.Expect = &print
		}
		if err := d.Replace(filepath.Base(path), sealed(n), o); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func TestKilledWhileReplacing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for n := range hermetic.Times(30, 8) {
		cmd, _, out := other(t, "replace", path)
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
	for _, left := range leftovers(t, dir) {
		check(t, os.Chtimes(left, time.Time{}, time.Now().Add(-2*staleAfter)))
	}
	check(t, sweep(dir, -1))
	if left := leftovers(t, dir); len(left) > 0 {
		t.Fatalf("left %v", left)
	}
}
