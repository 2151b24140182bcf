package tool

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/testkit/hermetic"
)

const (
	flipVariable = "OMNIAGENT_TOOL_TEST_FLIP"

	canary = "CANARY-that-lies-outside"
)

// outsideOf fills a directory with what mirrors a part of the workspace, so that a tool that is led astray finds what
// it looks for.
func outsideOf(t *testing.T, dir string) {
	t.Helper()
	for name, content := range map[string]string{
		"file": canary + " word\n", "deep/file": canary + " word\n", "book.ipynb": strings.Replace(raceBook, "x = 1",
			canary, 1),
		canary + "-name": canary, ".gitignore": "file\n", "deep/" + canary + "-name": canary,
	} {
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

// printOf is all that can be told of a tree: names, modes, owners, links, times and content.
func printOf(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	check(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var s syscall.Stat_t
		if err := syscall.Lstat(path, &s); err != nil {
			return err
		}
		sum := ""
		if s.Mode&syscall.S_IFMT == syscall.S_IFREG {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		fmt.Fprintf(&b, "%s %o %d:%d %d links, inode %d, %d bytes, %v %v %s\n", path, s.Mode, s.Uid, s.Gid, s.Nlink,
			s.Ino, s.Size, s.Mtim, s.Ctim, sum)
		return nil
	}))
	return b.String()
}

// raceDesk is a workspace of which parts are exchanged with links to the outside: names come in pairs, and each has its
// double in the same directory.
func raceDesk(t *testing.T) (d *desk, outside string) {
	t.Helper()
	d = newDesk(t)
	outside = filepath.Join(d.top, "out")
	outsideOf(t, outside)
	// what p/q/climb leads to when q lies one level higher
	check(t, os.WriteFile(filepath.Join(d.top, "up"), []byte(canary+" word\n"), 0o644))
	for _, name := range []string{"way", "absolute", "a/b"} {
		for _, file := range []string{"file", "deep/file"} {
			d.put(name+"/"+file, "word\n")
		}
		d.put(name+"/book.ipynb", raceBook)
	}
	d.put("plain", "word\n")
	d.put("book.ipynb", raceBook)
	d.put("up", "word\n")
	d.put("p/q/file", "word\n")
	d.put("p/r/file", "word\n")
	for name, to := range map[string]string{
		"~way": "../out", "~absolute": outside, "~plain": "../out/file", "~book.ipynb": filepath.Join(outside,
			"book.ipynb"),
		"~a": "../out", "p/q/climb": "../../up", "through": "way/deep", "~q": "p/r", "way/out": "../../out/deep",
	} {
		check(t, os.Symlink(to, filepath.Join(d.in, name)))
	}
	check(t, os.Mkdir(filepath.Join(outside, "b"), 0o755))
	check(t, os.WriteFile(filepath.Join(outside, "b", "file"), []byte(canary), 0o644))
	return d, outside
}

// flip exchanges names of the workspace, each in one step, until it is told to stop. It never writes through a name.
func flip(in string, stop func() bool) {
	dir, err := unix.Open(in, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	pairs := [][2]string{
		{"way", "~way"},
		{"absolute", "~absolute"},
		{"plain", "~plain"},
		{"book.ipynb", "~book.ipynb"},
		{"a", "~a"},
		{"p/q", "~q"},
		{"p", "p/q"},
		{"way", "a"},
		{"absolute", "plain"},
	}
	for n := 0; !stop(); n++ {
		pair := pairs[rand.IntN(len(pairs))]
		// Twice, mostly, so that it is again what it was.
		for range 2 - rand.IntN(8)/7 {
			_ = unix.Renameat2(dir, pair[0], dir, pair[1], unix.RENAME_EXCHANGE)
			if n%3 == 0 {
				time.Sleep(time.Duration(rand.IntN(60)) * time.Microsecond)
			}
		}
	}
}

// flipUntilTheEnd is what the other process does: until the test closes its input.
func flipUntilTheEnd(in string) {
	var end atomic.Bool
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); end.Store(true) }()
	flip(in, end.Load)
}

// TestNothingOutsideIsReachedWhileLinksMove has a thread and another process turn directories and files of the
// workspace into links to the outside and back while every file tool works on them.
func TestNothingOutsideIsReachedWhileLinksMove(t *testing.T) {
	hermetic.Long(t)
	span := time.Duration(hermetic.Often(t, "OMNIAGENT_RACE_SECONDS", 2)) * time.Second
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // a write that waits for no disk is tried a hundred times as often
	}
	d, outside := raceDesk(t)
	dir := filepath.Join(d.in, "~way")
	if err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, filepath.Join(d.in, "way"),
		unix.RENAME_EXCHANGE); err != nil {
		t.Skipf("two names cannot be exchanged here: %v", err)
	}
	before, above := printOf(t, outside), printOf(t, filepath.Join(d.top, "up"))
	var end atomic.Bool
	var attackers, workers sync.WaitGroup
	attackers.Go(func() { flip(d.in, end.Load) })
	exe, err := os.Executable()
	check(t, err)
	other := exec.Command(exe)
	other.Env = append(os.Environ(), flipVariable+"="+d.in)
	input, err := other.StdinPipe()
	check(t, err)
	check(t, other.Start())

	calls := raceCalls()
	var done, refused [16]atomic.Int64
	for i, call := range calls {
		workers.Go(func() {
			for n := 0; !end.Load(); n++ {
				r := call.run(d, n)
				shown := r.Text
				for _, image := range r.Images {
					shown += string(image.Data)
				}
				if strings.Contains(shown, canary) {
					t.Errorf("%s showed what lies outside: %s", call.name, clip(shown))
					return
				}
				if done[i].Add(1); r.Failed {
					refused[i].Add(1)
				}
			}
		})
	}
	time.Sleep(span) // what is measured is time, not an event
	end.Store(true)
	workers.Wait()
	attackers.Wait()
	check(t, input.Close())
	check(t, other.Wait())
	if after := printOf(t, outside); after != before {
		t.Errorf("the outside was\n%s\nand is\n%s", before, after)
	}
	if after := printOf(t, filepath.Join(d.top, "up")); after != above {
		t.Errorf("the outside was\n%s\nand is\n%s", above, after)
	}
	for i, call := range calls {
		all, no := done[i].Load(), refused[i].Load()
		t.Logf("%-12s %6d calls, %6d refused", call.name, all, no)
		if all == no || call.named && no == 0 {
			t.Errorf("%s: %d of %d calls were refused, so nothing was tried", call.name, no, all)
		}
	}
}

type raceCall struct {
	name  string
	named bool // it works on a name that leads out now and then
	run   func(d *desk, n int) Result
}

// raceCalls is every file tool on every kind of name.
func raceCalls() []raceCall {
	files := []string{
		"way/file", "absolute/file", "plain", "a/b/file", "a/file", "way/deep/file", "through/file",
		"p/q/climb", "p/q/file",
	}
	books := []string{"way/book.ipynb", "book.ipynb", "absolute/book.ipynb", "a/book.ipynb"}
	dirs := []string{"way", "absolute", "a", "way/deep", "a/b", "p/q", "through", "."}
	of := func(list []string, n int) string { return list[n%len(list)] }
	call := func(make func(*Env) Tool, name string, input func(n int) object) raceCall {
		return raceCall{name, true, func(d *desk, n int) Result {
			raw, err := json.Marshal(input(n))
			if err != nil {
				return failed(err)
			}
			env := *d.env
			env.Seen = nil // or every second write would only say that the file has changed
			action, err := make(&env).Plan(raw)
			if err != nil {
				return failed(err)
			}
			return action.Run(context.Background())
		}}
	}
	swap := func(n int) (string, string) {
		pair := []string{"word", "other"}
		if n%2 == 1 {
			slices.Reverse(pair)
		}
		return pair[0], pair[1]
	}
	all := []raceCall{
		call(Read, "Read", func(n int) object { return object{"file_path": of(files, n)} }),
		call(Read, "Read book", func(n int) object { return object{"file_path": of(books, n)} }),
		call(Write, "Write", func(n int) object { return object{"file_path": of(files, n), "content": "word\n"} }),
		call(Write, "Write new", func(n int) object {
			return object{"file_path": of(dirs, n) + fmt.Sprintf("/new/%d", n%20), "content": "word\n"}
		}),
		call(Edit, "Edit", func(n int) object {
			from, to := swap(n / len(files))
			return object{"file_path": of(files, n), "old_string": from, "new_string": to}
		}),
		call(MultiEdit, "MultiEdit", func(n int) object {
			from, to := swap(n / len(files))
			return object{"file_path": of(files, n), "edits": []object{
				{"old_string": from, "new_string": to},
				{"old_string": to, "new_string": from + "\n" + to},
			}}
		}),
		call(NotebookEdit, "NotebookEdit", func(n int) object {
			return object{"notebook_path": of(books, n), "cell_id": "0", "new_source": "x"}
		}),
		call(LS, "LS", func(n int) object { return object{"path": of(dirs, n)} }),
		call(Grep, "Grep",
			func(n int) object { return object{"path": of(dirs, n), "pattern": "word|CANARY", "-C": n % 2} }),
		call(Grep, "Grep file", func(n int) object { return object{"path": of(files, n), "pattern": "word|CANARY"} }),
		call(Glob, "Glob", func(n int) object { return object{"path": of(dirs, n), "pattern": "**/*"} }),
		call(Glob, "Glob named", func(n int) object { return object{"pattern": of(dirs, n) + "/**"} }),
	}
	for i := range all {
		all[i].named = all[i].name != "Glob named" // a directory that is not there is no failure to it
	}
	return all
}
