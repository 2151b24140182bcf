//go:build unix

package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
)

// TestNothingThroughLinks: an agent that is asked again finds nothing of ours where it was told the first time, and
// what it left there is neither written to nor followed when it goes.
func TestNothingThroughLinks(t *testing.T) {
	for name, plant := range map[string]string{
		"a link in place of the file":           `ln -sf "$VICTIM/file" "$f"`,
		"a link in place of the directory":      `d=${f%/file}; rm -r "$d"; ln -s "$VICTIM" "$d"`,
		"a link in place of the whole of it":    `d=${f%/in/file}; rm -r "$d"; mkdir "$VICTIM/in"; ln -s "$VICTIM" "$d"`,
		"nothing, and it lies there as before":  `:`,
		"nothing is left of the whole of it":    `rm -r "${f%/in/file}"`,
		"a directory in place of the directory": `mkdir -p "$f.d/sub"`,
	} {
		for _, home := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, home %v", name, home), func(t *testing.T) {
				w := newWorld(t)
				victim := t.TempDir()
				w.write(filepath.Join(victim, "file"), "mine")
				places := w.temp + "/*/in/file"
				if home {
					places = w.dir + "/rehearsal/*/in/file"
				}
				w.env = []string{"VICTIM=" + victim}
				var seen []agent.Spec
				w.drivers = []agent.Driver{rehearsed{
					home,
					w.shell("for f in "+places+"; do echo \"$f\" >>"+w.dir+"/found; "+plant+"; done; echo no",
						func(d *fake) { d.seen = &seen }),
				}}
				args := []string{"--agent", "alpha", "-p", "q", "--output-schema", needsN, "--report", "r.json"}
				if home {
					args = append(args, "--rehearse")
				}
				r := w.run(nil, args...)
				if data, _ := os.ReadFile(filepath.Join(victim, "file")); r.code != 1 || len(seen) != 3 ||
					string(data) != "mine" {
					t.Errorf("%+v, %d attempts, %s", r, len(seen), data)
				}
				if seen[0].Temp == seen[1].Temp || seen[1].Temp == seen[2].Temp || home &&
					seen[0].Rehearsal.Home == seen[1].Rehearsal.Home {
					t.Errorf("the same place twice: %+v", seen)
				}
				found, _ := os.ReadFile(filepath.Join(w.dir, "found"))
				for _, s := range seen {
					dir := s.Temp
					if home {
						dir = s.Rehearsal.Home
					}
					if !strings.Contains(string(found), dir+"/in/file\n") {
						t.Errorf("there was no file in %s: %s", dir, found)
					}
				}
				if left, _ := filepath.Glob(w.dir + "/rehearsal/*"); len(left) != 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

// rehearsed has its file in its private home, or else in the temporary directory.
type rehearsed struct {
	home bool
	fake
}

func (d rehearsed) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	l, warnings, err := d.fake.Command(s)
	dir := s.Temp
	if d.home {
		dir = s.Rehearsal.Home
	}
	l.Files = []agent.File{{Path: filepath.Join(dir, "in/file"), Data: []byte("ours")}}
	return l, warnings, err
}

// TestPut makes new files in our own directories and nothing else.
func TestPut(t *testing.T) {
	base := t.TempDir()
	var tmp temporary
	dir := tmp.path(base)
	if again := tmp.path(base); again == dir {
		t.Error("the same directory twice")
	}
	if err := tmp.write([]agent.File{{Path: dir + "/a/b"}, {Path: dir + "/c"}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(base, dir+"/out"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir + "/c", dir, base + "/x", dir + "/../x", dir + "/out/x", dir + "x/y"} {
		if err := tmp.write([]agent.File{{Path: path}}); fault.Of(err).Code != fault.Internal ||
			fault.Of(err).Suggestion == "" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if list, _ := os.ReadDir(base); len(list) != 1 {
		t.Errorf("%v", list)
	}
	theirs := tmp.path(base)
	if err := os.Mkdir(theirs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := tmp.write([]agent.File{{Path: theirs + "/x"}}); err == nil {
		t.Error("it was written to a directory that was there before")
	}
	tmp.remove()
	if list, _ := os.ReadDir(base); len(list) != 1 || list[0].Name() != filepath.Base(theirs) {
		t.Errorf("%v", list)
	}
}

// TestTemporaryBase: a relative TMPDIR is relative to the caller's directory, not to the agent's. A missing one only
// fails calls that need it, and is not created.
func TestTemporaryBase(t *testing.T) {
	w := newWorld(t)
	var seen []agent.Spec
	w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.files, d.seen = true, &seen }), w.agent("beta", nil)}
	for _, dir := range []string{"tmp", "other"} {
		if err := os.Mkdir(filepath.Join(w.work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	absolute := w.temp
	w.temp = "tmp"
	if r := w.run(nil, "--agent", "alpha", "-p", "q", "--cwd=other"); r.code != 0 || len(seen) != 1 ||
		filepath.Dir(seen[0].Temp) != filepath.Join(w.work, "tmp") {
		t.Errorf("%+v, %+v", r, seen)
	}
	if left, _ := os.ReadDir(filepath.Join(w.work, "tmp")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	w.temp = filepath.Join(absolute, "none")
	started := len(w.prompts())
	if r := w.run(nil, "--agent", "alpha", "-p", "q"); r.code != 1 ||
		!strings.Contains(r.stderr, "\nhint: set TMPDIR") || len(w.prompts()) != started {
		t.Errorf("%+v", r)
	}
	if r := w.run(nil, "--agent", "beta", "-p", "q"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(w.temp); err == nil {
		t.Error("it was made")
	}
}
