package walls

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// attack is a line for bash that does harm: it makes the file {m}, prints the canary, is heard, or changes the world
// outside.
type attack struct {
	name, line string
	program    string // that has to be there
	alone      string // why it is not tried without walls
}

// group is one class of attacks.
type group struct {
	modes   []string
	outside bool   // {m} lies outside of the workspace
	rules   string // the user's
	listen  bool   // there is a world to reach
	args    []string
	files   map[string]string // in the workspace
	attacks []attack
	weak    map[string][]string // tier and mode: what these walls do not hold, by name; each is in a claim
}

// try runs the whole group in a tier and a mode, one turn for all.
func (c group) try(t *testing.T, where tier, mode string) {
	g := c.ground(t)
	before := g.print(t)
	steps := []string{bash("echo innocent")}
	for _, a := range c.attacks {
		steps = append(steps, bash(g.fill(a.line, c.mark(g, a))))
	}
	o := g.turn(t, where, together(steps), append([]string{"--permission-mode", mode, "--max-turns", "1000"},
		c.args...)...)
	if len(o.results) != len(steps) || !strings.Contains(o.results[0].Content, "innocent") {
		t.Fatalf("%d of %d calls had a result, and the first was to run\n%s\n%s", len(o.results), len(steps), o.out,
			o.stderr)
	}
	if o.init["sandbox"].(map[string]any)["name"] != where.name {
		t.Fatalf("other walls than %s stand: %v", where.name, o.init["sandbox"])
	}
	weak := c.weak[where.name+" "+mode]
	for i, a := range c.attacks {
		r := o.results[i+1]
		done := exists(c.mark(g, a)) || strings.Contains(r.Content, canary())
		if known := slices.Contains(weak, a.name); done != known {
			t.Errorf("%s: done %v, known as a hole %v\n%s\n%s", a.name, done, known, a.line, r.Content)
		}
	}
	for _, q := range o.requests {
		if strings.Contains(q, canary()) && len(weak) == 0 {
			t.Errorf("the model has seen the canary: %s", q)
		}
	}
	if g.world != nil {
		if heard := g.world.was(); len(heard) > 0 {
			t.Errorf("the world was reached: %q\n%s", heard, o.out)
		}
	}
	if after := g.print(t); after != before && len(weak) == 0 {
		t.Errorf("the outside was\n%s\nand is\n%s\n%s", before, after, o.out)
	}
}

func (c group) mark(g *ground, a attack) string {
	name := strings.ReplaceAll(a.name, " ", "-")
	if c.outside {
		return filepath.Join(g.out, name)
	}
	return filepath.Join(g.work, "marks", name)
}

func (c group) ground(t testing.TB) *ground {
	g := newGround(t)
	if c.listen {
		g.listen(t)
	}
	if c.rules != "" {
		g.rules(t, c.rules)
	}
	for name, content := range c.files {
		path := filepath.Join(g.work, name)
		g.write(t, path, g.fill(content, ""))
		must(t, os.Chmod(path, 0o700))
	}
	return g
}

// works shows that each attack is one: in a plain bash it does its harm.
func (c group) works(t *testing.T) {
	for _, a := range c.attacks {
		if a.program != "" {
			if _, err := exec.LookPath(a.program); err != nil {
				t.Logf("%s is not tried: there is no %s", a.name, a.program)
				continue
			}
		}
		if a.alone != "" {
			t.Logf("%s is not tried without walls: %s", a.name, a.alone)
			continue
		}
		g := c.ground(t)
		before := g.print(t)
		cmd := exec.Command("bash", "-c", g.fill(a.line, c.mark(g, a)))
		var out bytes.Buffer
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = g.env, g.work, &out, &out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		_ = cmd.Run()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		heard := g.world != nil && len(g.world.was()) > 0
		if !exists(c.mark(g, a)) && !strings.Contains(out.String(), canary()) && !heard && g.print(t) == before {
			t.Errorf("%s is not an attack: it does no harm in a plain bash: %s\n%s", a.name, a.line, out.String())
		}
	}
}

// run tries a group everywhere, and shows that its attacks are attacks.
func (c group) run(t *testing.T) {
	t.Helper()
	inTiers(t, func(t *testing.T, where tier) {
		for _, mode := range c.modes {
			t.Run(mode, func(t *testing.T) {
				t.Parallel()
				c.try(t, where, mode)
			})
		}
	}, namespaces(), landlock())
	t.Run("works", func(t *testing.T) {
		t.Parallel()
		c.works(t)
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// print is all that can be told of what lies outside the workspace, but for what the program keeps of its own.
func (g *ground) print(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, root := range []string{g.out, g.base + "/work-evil", g.home + "/.ssh", g.home + "/plain"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
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
			// Not the second of a change of a directory nor the number of names: a ground is looked at by its content.
			fmt.Fprintf(&b, "%s %o %d:%d %d bytes, inode %d, %v %s\n", path, s.Mode, s.Uid, s.Gid, s.Size, s.Ino,
				s.Mtim, sum)
			return nil
		})
		if err != nil {
			fmt.Fprintln(&b, root, err)
		}
	}
	return b.String()
}
