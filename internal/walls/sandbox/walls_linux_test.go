package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ground is a place with a workspace, a secret, and something outside that shall not change. It is not below /tmp,
// which commands do not see.
type ground struct{ dir, root, outside, secret, temp, state, attacker string }

func groundIn(dir string) ground {
	return ground{
		dir, dir + "/root", dir + "/outside", dir + "/secret", dir + "/temp", dir + "/state",
		dir + "/attacker",
	}
}

// groundVariable says where grounds may be made; it is set for those who are not the superuser.
const groundVariable = "SANDBOX_TEST_GROUND"

func newGround(t testing.TB) ground {
	t.Helper()
	here, _ := os.Getwd()
	home, _ := os.UserHomeDir()
	dir := ""
	for _, base := range []string{os.Getenv(groundVariable), here, home, "/var/lib"} {
		if made, err := os.MkdirTemp(base, ".test-"); base != "" && err == nil && !pathname.Within("/tmp", made) &&
			!pathname.Within("/var/tmp", made) {
			dir = made
			break
		} else if err == nil {
			must(t, os.Remove(made))
		}
	}
	if dir == "" {
		t.Skip("there is no place to write outside /tmp")
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	g := groundIn(dir)
	for _, d := range []string{g.root, g.outside, g.secret, g.temp, g.state} {
		must(t, os.Mkdir(d, 0o700))
	}
	must(t, os.WriteFile(g.secret+"/key", []byte("secret"), 0o600))
	must(t, os.WriteFile(g.outside+"/file", []byte("outside"), 0o600))
	program, err := os.Executable()
	must(t, err)
	if os.Link(program, g.attacker) != nil {
		text, err := os.ReadFile(program)
		must(t, err)
		must(t, hermetic.WriteProgram(g.attacker, text, 0o700))
	}
	return g
}

// tiers are those that this system has, the weaker ones too.
func tiers(t *testing.T) []Tier {
	t.Helper()
	o := self("ends")
	switch r := Probe(t.Context(), o); r.Tier {
	case Namespaces:
		return []Tier{Namespaces, Landlock}
	case Landlock:
		return []Tier{Landlock}
	}
	t.Skip("this system has no walls")
	return nil
}

func (g ground) policy() Policy {
	return Policy{
		Root: g.root, Temp: g.temp, Hidden: []string{g.secret, g.dir + "/absent"},
		Protected: []string{".git/hooks", ".git/config", ".claude", ".mcp.json"},
	}
}

func (g ground) repository(t testing.TB) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "-q"},
		{"config", "user.name", "a"},
		{"config", "user.email", "a@example.com"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = g.root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
}

// walls are of the tier that is asked for.
func (g ground) walls(t testing.TB, tier Tier, change ...func(*Policy)) *Walls {
	t.Helper()
	p := g.policy()
	for _, f := range change {
		f(&p)
	}
	w, err := Open(p, Report{OS: "linux", Tier: min(tier, Namespaces)}, Options{Tier: tier, State: g.state})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

type result struct {
	out    string
	ending process.Ending
}

func (g ground) run(t testing.TB, w *Walls, argv ...string) result {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	must(t, err)
	var out bytes.Buffer
	p, err := w.Plan(process.Plan{Argv: argv, Path: path, Dir: g.root, Env: os.Environ(), Stdout: &out, Stderr: &out})
	must(t, err)
	c, err := process.Start(p)
	must(t, err)
	e := c.Wait()
	return result{out.String(), e}
}

func (g ground) sh(t testing.TB, w *Walls, line string) result {
	t.Helper()
	return g.run(t, w, "bash", "-c", line)
}
