package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	h := held{file: filepath.Join(t.TempDir(), "agent-walls")}
	for i := range heldMost + 6 {
		h.kind = fmt.Sprint(i)
		h.remember()
	}
	if n := len(h.kinds()); n != heldMost || !h.has() {
		t.Errorf("%d kinds are remembered, the last of them: %t", n, h.has())
	}
	g := newGuarded(&order{Root: "/w"})
	for i := range mostDirs + 6 {
		g.protectsDir(fmt.Sprint("/w/", i))
	}
	if n := len(g.dirs); n > mostDirs {
		t.Errorf("%d directories are remembered", n)
	}
}

// TestLittleIsRead: files that commands can write do not hold the walls up, nor fill their memory.
func TestLittleIsRead(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "x"), "")
	for n, files := range map[int]int{mostWords - 1: 1, mostWords: 0} {
		if got := filesOf(strings.Repeat("word ", n)+"x", dir); len(got) != files {
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
