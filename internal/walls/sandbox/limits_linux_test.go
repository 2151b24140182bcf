package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/autorun"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLittleIsRemembered: neither the kinds of walls that have held, nor what is known of directories, grow for ever.
func TestLittleIsRemembered(t *testing.T) {
	h := triedWalls{file: filepath.Join(t.TempDir(), "agent-walls")}
	for i := range heldMost + 6 {
		h.kind = fmt.Sprint(i)
		h.remember([]string{"two words"})
	}
	holes, held := h.found()
	if n := len(h.lines()); n != heldMost || !held || !slices.Equal(holes, []string{"two words"}) {
		t.Errorf("%d kinds are remembered, the last of them: %t %q", n, held, holes)
	}
	if err := os.Truncate(h.file, heldMostBytes+1); err != nil { // a hole
		t.Fatal(err)
	}
	if lines := h.lines(); len(lines) > 0 {
		t.Errorf("%d kinds were read from a record that is too long", len(lines))
	}
	g := newGuarded(&order{Root: "/w"})
	for i := range mostDirs + 6 {
		g.protectsDir(fmt.Sprint("/w/", i))
	}
	if n := len(g.dirs); n > mostDirs {
		t.Errorf("%d directories are remembered", n)
	}
}

// TestCommandsCannotRecord: a record that commands could write is not used, however a path leads to it.
func TestCommandsCannotRecord(t *testing.T) {
	root, temp, out := pathname.Real(t.TempDir()), pathname.Real(t.TempDir()), t.TempDir()
	link := filepath.Join(out, "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	p := Policy{Root: root, Temp: filepath.Join(temp, "one", "two")}
	for state, recorded := range map[string]bool{
		out: true, root: false, filepath.Join(root, "state"): false, filepath.Join(link, "state"): false,
	} {
		commands, agent := heldAround(state, Namespaces, p), heldIn(state, AgentPolicy{Policy: p}, nil)
		if (commands.file != "") != recorded || (agent.file != "") != recorded {
			t.Errorf("%s: %+v, %+v", state, commands, agent)
		}
	}
}

// TestLittleIsRead: files that commands can write do not hold the walls up, nor fill their memory.
func TestLittleIsRead(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "x"), "")
	for n, files := range map[int]int{63: 1, 64: 0} {
		if got := autorun.Files(strings.Repeat("word ", n)+"x", dir); len(got) != files {
			t.Errorf("behind %d words: %q", n, got)
		}
	}
	config := filepath.Join(dir, "config")
	for n, settings := range map[int]int{0: 2, longestConfig: 1} {
		put(t, config, "[a]\nb = c\n#"+strings.Repeat("x", n)+"\nd = e\n")
		if got := gitSettings(config); len(got) != settings {
			t.Errorf("%d bytes: %v", n, got)
		}
	}
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(at) }()
	if err := os.Truncate(config, carriedMost+1); err != nil { // the rest is a hole
		t.Fatal(err)
	}
	if data, err := readAt(at, "config"); err == nil {
		t.Errorf("%d bytes are carried", len(data))
	}
}

// TestManyNamesAreRefused: walls that would take longer than any command are not built, and a part of the names would
// protect nothing.
func TestManyNamesAreRefused(t *testing.T) {
	root := t.TempDir()
	for n, err := range map[int]error{4000: nil, 4001: fault.Blocked} {
		w := &walk{writable: []string{root}, kept: map[string]bool{}, covers: map[string]bool{}}
		for i := range n {
			w.kept[fmt.Sprint(i)] = true
		}
		if w.visit(kept{base: root, name: "x"}); !errors.Is(w.err, err) {
			t.Errorf("%d names: %v", n, w.err)
		}
	}
}

// TestManyLinks: what the kernel does not reach has not to be protected, and a circle of links is followed as far as
// the kernel follows it.
func TestManyLinks(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "link0"), "the end")
	for i := range 41 {
		must(t, os.Symlink(fmt.Sprint("link", i), filepath.Join(root, fmt.Sprint("link", i+1))))
	}
	for first, reached := range map[string]bool{"link40": true, "link41": false} {
		w := &walk{writable: []string{root}, kept: map[string]bool{}, covers: map[string]bool{}}
		w.visit(kept{base: root, name: first})
		if _, err := os.Stat(filepath.Join(root, first)); (err == nil) != reached {
			t.Errorf("the kernel follows %s: %v", first, err)
		}
		if w.err != nil || w.kept[filepath.Join(root, "link0")] != reached {
			t.Errorf("%s: %v", first, w.err)
		}
	}
}

// TestTrialsAreShort: walls are tried with some of the names that they protect.
func TestTrialsAreShort(t *testing.T) {
	dir := t.TempDir()
	for nowhere, tried := range map[int]bool{39: true, 40: false} {
		o := order{Tier: Landlock}
		for i := range nowhere {
			o.Kept = append(o.Kept, filepath.Join(dir, "nowhere", fmt.Sprint(i)))
		}
		o.Kept = append(o.Kept, filepath.Join(dir, "unprotected"))
		if err := triesNames(o, &trial{}); (err != nil) != tried {
			t.Errorf("name %d: %v", nowhere+1, err)
		}
	}
}

// TestManyLocks: a command that leaves locks behind cannot make us hold any number of them.
func TestManyLocks(t *testing.T) {
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { _ = unix.Close(at) }()
	// There is no caller who could be handed a lock: that fails when it has been made.
	r := &pathCall{supervisor: &supervisor{listener: -1, locks: map[inode]int{}}}
	defer func() {
		for _, held := range r.locks {
			_ = unix.Close(held)
		}
	}()
	lock := func(n int) error {
		c := change{flags: unix.O_CREAT | unix.O_WRONLY, mode: 0o600}
		return r.makeLock(resolved{dir: at, name: fmt.Sprint(n)}, c)
	}
	for n := range 64 {
		if err := lock(n); !errors.Is(err, unix.EBADF) {
			t.Fatalf("lock %d: %v", n, err)
		}
	}
	if err := lock(64); !errors.Is(err, unix.EAGAIN) || exists(filepath.Join(dir, "64")) {
		t.Errorf("one more: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "0")))
	if err := lock(64); !errors.Is(err, unix.EBADF) {
		t.Errorf("after one is gone: %v", err)
	}
}

// TestManyProtectedFiles: a second name of a protected file is found among any number of them.
func TestManyProtectedFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, ".claude/other"), "")
	put(t, filepath.Join(dir, ".claude/z"), "")
	for i := range 2100 { // links, which are made faster than files
		must(t, os.Link(filepath.Join(dir, ".claude/other"), filepath.Join(dir, ".claude", fmt.Sprint(i))))
	}
	twin := filepath.Join(dir, "twin")
	must(t, os.Link(filepath.Join(dir, ".claude/z"), twin))
	var s unix.Stat_t
	must(t, unix.Lstat(twin, &s))
	if !newGuarded(&order{Kept: []string{filepath.Join(dir, ".claude")}}).twin(&s) {
		t.Error("it could be written")
	}
}
