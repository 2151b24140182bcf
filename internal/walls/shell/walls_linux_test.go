package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/sandbox"
)

const wallsVariable = "SHELL_TEST_WALLS" // the tier

// behindWalls wraps what a Starter makes, where the tests are run again behind walls.
func behindWalls(o *Options) (done func() error, err error) {
	tier := sandbox.Tier(len(os.Getenv(wallsVariable)))
	if tier == sandbox.None {
		return func() error { return nil }, nil
	}
	temp, err := os.MkdirTemp("", "walls-")
	if err != nil {
		return nil, err
	}
	w, err := sandbox.Open(sandbox.Policy{Root: o.Root, Temp: temp, Protected: []string{".git/hooks", ".mcp.json"}},
		sandbox.Report{Tier: tier},
		sandbox.Options{State: filepath.Join(filepath.Dir(temp), "state")})
	if err != nil {
		return nil, err
	}
	inner := o.Starter
	if inner == nil {
		inner = Plain
	}
	o.Starter = func(line, dir string, env []string) (process.Plan, error) {
		p, err := inner(line, dir, env)
		if err != nil {
			return p, err
		}
		return w.Plan(p)
	}
	return w.Close, nil
}

// TestBehindWalls runs the tests of this package again, with every command behind walls.
func TestBehindWalls(t *testing.T) {
	hermetic.Long(t)
	if os.Getenv(wallsVariable) != "" {
		t.Skip("this is such a run already")
	}
	report := sandbox.Probe(t.Context(), sandbox.Options{Self: []string{"/bin/true"}})
	for _, tier := range []sandbox.Tier{sandbox.Namespaces, sandbox.Landlock} {
		t.Run(tier.String(), func(t *testing.T) {
			if report.Tier == sandbox.None || tier < report.Tier {
				t.Skipf("this system has walls of the tier %s", report.Tier)
			}
			base, err := os.Getwd()
			check(t, err)
			if strings.HasPrefix(base, "/tmp/") || strings.HasPrefix(base, "/var/tmp/") {
				t.Skip("commands have a /tmp of their own, and the source lies there")
			}
			dir, err := os.MkdirTemp(base, ".test-") // commands have a /tmp of their own
			check(t, err)
			t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
			exe, err := os.Executable()
			check(t, err)
			cmd := exec.Command(exe, "-test.v", "-test.run",
				"^(TestCommands|TestTheDirectoryStays|TestNothingIsThereToAsk|TestTimeIsLimited|TestTheCallerMayStopIt|"+
					"TestTheEndOfTheConversationStopsIt|TestLinesThatCannotBeStarted|TestLongOutput.*|"+
					"TestJob.*|TestBackground.*|TestNothing.*)$")
			cmd.Env = append(os.Environ(), wallsVariable+"="+strings.Repeat("x", int(tier)), "TMPDIR="+dir,
				"OMNIAGENT_TEST_MOMENTS=4")
			if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "--- PASS") < 10 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
