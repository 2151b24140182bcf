package walls

import (
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"

	"golang.org/x/sys/unix"
)

// flipUntilTheEnd is what another process does, outside of all walls: it exchanges names of the workspace with links to
// the outside, each in one step, until its input ends. It never writes through a name.
func flipUntilTheEnd(work string) {
	var end atomic.Bool
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); end.Store(true) }()
	dir, err := unix.Open(work, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return
	}
	pairs := [][2]string{
		{"way", "~way"},
		{"plain", "~plain"},
		{"a", "~a"},
		{"p/q", "~q"},
		{"p", "p/q"},
		{"way", "a"},
		{".vscode", "~vscode"},
		{".git/hooks", "~hooks"},
	}
	for n := 0; !end.Load(); n++ {
		pair := pairs[rand.IntN(len(pairs))]
		for range 2 - rand.IntN(8)/7 { // twice, mostly, so that it is again what it was
			_ = unix.Renameat2(dir, pair[0], dir, pair[1], unix.RENAME_EXCHANGE)
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		}
	}
}

// TestLinksMove has another process turn names of the workspace into links to the outside and back, while the model's
// commands and tools write to them: no byte outside changes, and what tools show is of the inside.
func TestLinksMove(t *testing.T) {
	span := time.Duration(hermetic.Often(t, "OMNIAGENT_RACE_SECONDS", 2)) * time.Second
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		for _, name := range []string{"way", "a/b", "p/q"} {
			g.write(t, filepath.Join(g.work, name, "file"), "word\n")
		}
		g.write(t, g.work+"/plain", "word\n")
		must(t, os.MkdirAll(g.work+"/.vscode", 0o700))
		for _, name := range []string{"out/b/file", "out/q/file"} {
			g.write(t, filepath.Join(g.base, name), canary())
		}
		must(t, os.WriteFile(g.out+"/file", []byte(canary()), 0o600))
		for name, to := range map[string]string{
			"~way": "../out", "~plain": g.out + "/file", "~a": g.out,
			"~q": "../out", "~vscode": "../out", "~hooks": "../../out",
		} {
			must(t, os.Symlink(to, filepath.Join(g.work, name)))
		}
		before := g.print(t)
		other := exec.Command("/proc/self/exe", flipper, g.work)
		input, err := other.StdinPipe()
		must(t, err)
		must(t, other.Start())
		steps := []string{}
		for i, path := range []string{
			"way/file", "plain", "a/b/file", "a/file", "p/q/file", "~way/file", ".vscode/x",
			".git/hooks/x",
		} {
			n := strconv.Itoa(i)
			steps = append(
				steps, call("Write", map[string]any{"file_path": path, "content": "word " + n}), call("Edit",
					map[string]any{"file_path": path, "old_string": "word", "new_string": "other"}),
				call("Read", map[string]any{"file_path": path}), call("Grep",
					map[string]any{"pattern": "word|canary", "path": filepath.Dir(path), "output_mode": "content"}),
				bash("p="+path+"; for i in $(seq 30); do echo attacked > $p; mkdir -p ${p%/*}/made$i; done 2>/dev/null; true"),
			)
		}
		wrote, refused := 0, 0
		for over := time.Now().Add(span); time.Now().Before(over); {
			o := g.turn(t, where, steps, "--permission-mode", "auto", "--max-turns", "1000")
			if len(o.results) == 0 && len(o.requests) == 0 && strings.Contains(o.stderr, "cannot be built around") {
				refused++ // a name was moved while the walls were built
				continue
			}
			if len(o.results) != len(steps) {
				t.Errorf("%d results of %d: %s\n%s", len(o.results), len(steps), o.out, o.stderr)
				break
			}
			for i, r := range o.results {
				if strings.Contains(r.Content, canary()) {
					t.Errorf("%s showed what lies outside: %s", steps[i], r.Content)
				}
				if r.Failed {
					refused++
				} else {
					wrote++
				}
			}
		}
		must(t, input.Close())
		must(t, other.Wait())
		t.Logf("%d calls went well, %d were refused", wrote, refused)
		if wrote == 0 || refused == 0 {
			t.Errorf("%d calls went well, %d were refused: nothing was tried", wrote, refused)
		}
		if after := g.print(t); after != before {
			t.Errorf("the outside was\n%s\nand is\n%s", before, after)
		}
	}, namespaces(), landlock())
}
