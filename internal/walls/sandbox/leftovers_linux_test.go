package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

const cookie = "SANDBOX_TEST_COOKIE="

// withCookie are the living processes that have it in their environment. A stage cannot be looked into by everybody, so
// its command line counts.
func withCookie(value string) (all []string) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, _ := os.ReadFile("/proc/" + entry.Name() + "/environ")
		line, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if bytes.Contains(env, []byte(cookie+value)) || bytes.Contains(line, []byte(value)) {
			all = append(all, fmt.Sprintf("%d %q", pid, line))
		}
	}
	return all
}

func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	over := time.Now().Add(20 * time.Second)
	for gap := time.Millisecond; !yes(); gap = min(2*gap, 20*time.Millisecond) {
		if time.Now().After(over) {
			t.Errorf("waited too long for %s", what)
			return
		}
		time.Sleep(gap)
	}
}

// sight is what may not grow.
func sight(g ground) string {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	fds, _ := os.ReadDir("/proc/self/fd")
	var names []string
	_ = filepath.WalkDir(g.dir, func(path string, _ os.DirEntry, _ error) error {
		if !strings.Contains(path, "/.git/objects/") {
			names = append(names, path)
		}
		return nil
	})
	return fmt.Sprintf("%d mounts, %d descriptors, %q", bytes.Count(mounts, []byte("\n")), len(fds), names)
}

// TestNothingIsLeft runs many commands, several at a time.
func TestNothingIsLeft(t *testing.T) {
	hermetic.Long(t)
	count := hermetic.Often(t, "OMNIAGENT_WALLS_COMMANDS", 80)
	tier := tiers(t)[0]
	g := newGround(t)
	g.repository(t)
	w := g.walls(t, tier)
	g.sh(t, w, "true")
	before, value := sight(g), filepath.Base(g.dir)+"-many"
	var busy sync.WaitGroup
	for worker := range 4 {
		busy.Go(func() {
			for i := range count / 4 {
				var out bytes.Buffer
				p, err := w.Plan(process.Plan{
					Argv: []string{
						"bash", "-c",
						"(setsid sleep 1000 &); echo evil 2>/dev/null > .mcp.json || mkdir .claude/x 2>/dev/null || " +
							"echo $1; exit $1", "x", strconv.Itoa(i % 7),
					},
					Path: "/bin/bash", Dir: g.root, Env: []string{cookie + value, "PATH=/usr/bin:/bin"}, Stdout: &out,
					Stderr: &out,
				})
				if err != nil {
					t.Error(err)
					return
				}
				c, err := process.Start(p)
				if err != nil {
					t.Error(err)
					return
				}
				if e := c.Wait(); e.ExitCode != i%7 || out.String() != fmt.Sprintln(i%7) {
					t.Errorf("worker %d: %+v %q", worker, e, out.String())
				}
			}
		})
	}
	busy.Wait()
	if after := sight(g); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
	if left := withCookie(value); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// holder opens walls and runs a line behind them, until it is killed.
func holder(dir, line, value string) error {
	g := groundIn(dir)
	w, err := Open(g.policy(), Report{Tier: Namespaces}, Options{State: g.state})
	if err != nil {
		return err
	}
	for {
		p, err := w.Plan(process.Plan{
			Argv: []string{"bash", "-c", line, value}, Path: "/bin/bash", Dir: g.root,
			Env: []string{cookie + value, "PATH=/usr/bin:/bin"}, Stdout: os.Stdout, Stderr: os.Stderr,
		})
		if err != nil {
			return err
		}
		c, err := process.Start(p)
		if err != nil {
			return err
		}
		c.Wait()
	}
}

// TestKilled kills those who hold walls at random moments. Nothing lives on, and the next one removes what they have
// made.
func TestKilled(t *testing.T) {
	hermetic.Long(t)
	if tiers(t)[0] != Namespaces {
		t.Skip("there is nothing to sweep in this tier")
	}
	rounds := hermetic.Often(t, "OMNIAGENT_KILLS", 12)
	g := newGround(t)
	g.repository(t)
	must(t, g.walls(t, Namespaces).Close())
	before := sight(g)
	stages := 0
	for round := range rounds {
		value := fmt.Sprintf("%s-kill-%d-", filepath.Base(g.dir), round)
		cmd := exec.Command(g.attacker, "holds", g.dir, "(setsid sleep 1000 &); sleep 0.0$((RANDOM % 9))", value)
		cmd.Env = append(os.Environ(), cookie+value)
		stderr, err := cmd.StderrPipe()
		must(t, err)
		must(t, cmd.Start())
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond) // the random moment
		if round%3 == 0 {
			for _, line := range withCookie(value) {
				var pid int
				if _, err := fmt.Sscan(line, &pid); err == nil && strings.Contains(line, stageName) {
					stages++
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		}
		must(t, cmd.Process.Kill())
		text, _ := io.ReadAll(stderr)
		_ = cmd.Wait()
		if strings.Contains(string(text), "walls do not stand") {
			t.Errorf("%s", text)
		}
		eventually(t, "the end of all", func() bool { return len(withCookie(value)) == 0 })
	}
	t.Logf("%d stages were killed as well", stages)
	w := g.walls(t, Namespaces)
	must(t, w.Close())
	if after := sight(g); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// TestPlacesCannotBeMoved: what a policy is about stays where it is also within another directory that may be written.
func TestPlacesCannotBeMoved(t *testing.T) {
	if tiers(t)[0] != Namespaces {
		t.Skip("this tier does not hold names")
	}
	g := newGround(t)
	must(t, os.MkdirAll(g.root+"/a/b", 0o700))
	must(t, os.WriteFile(g.root+"/a/b/key", []byte("secret"), 0o600))
	must(t, os.Symlink("a/b/key", g.root+"/link"))
	must(t, os.MkdirAll(g.root+"/deep/project/.git/hooks", 0o700))
	w := g.walls(t, Namespaces, func(p *Policy) {
		p.Root = g.root + "/deep/project"
		p.Write = []string{g.root}
		p.Hidden = []string{g.root + "/link"}
	})
	for _, line := range []string{
		"mv ../../a ../../c", "mv ../../a/b ../../c", "cat ../../a/b/key", "rm ../../link; cat ../../a/b/key",
		"mv ../../deep ../../d2", "mv ../project ../p2",
	} {
		if r := g.run(t, w, "bash", "-c", "cd deep/project; "+line); r.ending.ExitCode == 0 {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// TestAPipeDoesNotHoldUsUp: a command may leave a pipe where git has a file.
func TestAPipeDoesNotHoldUsUp(t *testing.T) {
	g := newGround(t)
	must(t, unix.Mkfifo(g.root+"/pipe", 0o600))
	if text, ok := lineOf(g.root+"/pipe", ""); ok {
		t.Errorf("%q", text)
	}
}

// TestOpenRefuses what no policy can be.
func TestOpenRefuses(t *testing.T) {
	g := newGround(t)
	must(t, os.Symlink(g.root, g.dir+"/link"))
	must(t, os.Mkdir(g.dir+"/open", 0o700))
	must(t, os.Chmod(g.dir+"/open", 0o755))
	for name, change := range map[string]func(*Policy){
		"everything":        func(p *Policy) { p.Root = "/" },
		"a relative path":   func(p *Policy) { p.Root = "root" },
		"a link":            func(p *Policy) { p.Root = g.dir + "/link" },
		"nothing":           func(p *Policy) { p.Root = g.dir + "/none" },
		"a file":            func(p *Policy) { p.Write = []string{g.outside + "/file"} },
		"a name outside":    func(p *Policy) { p.Protected = []string{"../outside"} },
		"all of it":         func(p *Policy) { p.Protected = []string{"."} },
		"an open directory": func(p *Policy) { p.Temp = g.dir + "/open" },
		"no directory":      func(p *Policy) { p.Temp = "" },
		"its own record": func(p *Policy) {
			p.Write, p.Homes = []string{g.state + "/walls"}, []string{g.outside}
		},
		"hidden and relative": func(p *Policy) { p.Hidden = []string{"secret"} },
	} {
		must(t, os.MkdirAll(g.state+"/walls", 0o700))
		p := g.policy()
		change(&p)
		if w, err := Open(p, Report{Tier: Namespaces}, Options{State: g.state}); err == nil {
			t.Errorf("%s: %+v", name, w.Enforced())
		}
	}
	_, err := Open(g.policy(),
		Report{OS: "linux", Facts: []Fact{{Name: FactLandlock, Detail: "switched off at boot", Fix: "add landlock"}}},
		Options{State: g.state})
	if err == nil || !strings.Contains(err.Error(), "landlock: switched off") {
		t.Errorf("%v", err)
	}
	if w, err := Open(g.policy(), Report{Tier: Landlock}, Options{Tier: Namespaces, State: g.state}); err == nil {
		t.Errorf("stronger than what is there: %+v", w.Enforced())
	}
}

// TestTheRecordInTheWorkspace of a home directory, for one: the walls stand all the same, and nobody behind them comes
// to it.
func TestTheRecordInTheWorkspace(t *testing.T) {
	if tiers(t)[0] != Namespaces {
		t.Skip("only namespaces can hide it there")
	}
	g := newGround(t)
	g.state = g.root + "/.local/state/own"
	must(t, errors.Join(os.MkdirAll(g.root+"/.keys", 0o700), os.Mkdir(g.dir+"/home", 0o700)))
	must(t, os.WriteFile(g.root+"/.keys/key", []byte("secret"), 0o600))
	w := g.walls(t, Namespaces, func(p *Policy) {
		p.Hidden, p.Homes = append(p.Hidden, g.root+"/.keys"), []string{g.dir + "/home"}
	})
	must(t, os.WriteFile(g.state+"/walls/canary", []byte("alive"), 0o600))
	for _, line := range []string{
		"cat .keys/key", "ls .local/state/own/walls", "echo x >> .local/state/own/walls/made",
		"echo x > .local/state/own/walls/canary", "rm -rf .local/state/own/walls",
		"mv .local/state/own .local/state/other",
		"mv .local/state .local/other", "mv .local other", "ln -sfn / .local", "mkdir .local/state/own/walls/x",
		"rm .local/state/own/walls/lease-*",
	} {
		if r := g.sh(t, w, line); r.ending.ExitCode == 0 {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if r := g.sh(t, w,
		"echo x > file && mkdir -p .local/state/other/x && rm -r .local/state/other"); r.ending.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	if text, err := os.ReadFile(g.state + "/walls/canary"); err != nil || string(text) != "alive" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestTheTemporaryDirectoryInTheWorkspace beside files of the caller, which are hidden.
func TestTheTemporaryDirectoryInTheWorkspace(t *testing.T) {
	if tiers(t)[0] != Namespaces {
		t.Skip("only namespaces hide what lies in the workspace")
	}
	g := newGround(t)
	private := g.root + "/private"
	g.temp = private + "/tmp"
	must(t, os.MkdirAll(g.temp, 0o700))
	must(t, os.WriteFile(private+"/output", []byte("long"), 0o600))
	w := g.walls(t, Namespaces, func(p *Policy) { p.Hidden = append(p.Hidden, private) })
	for _, line := range []string{
		"cat private/output", "mv private other", "rm -r private", "touch private/x",
		"touch private/tmp/x",
	} {
		if r := g.sh(t, w, line); r.ending.ExitCode == 0 {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if r := g.sh(t, w, "echo x > $TMPDIR/a && cat $TMPDIR/a && echo y > b"); r.ending.ExitCode != 0 || r.out != "x\n" {
		t.Errorf("%+v", r)
	}
}

// TestRecordElsewhere: a directory for state that cannot be written is replaced by one below the temporary directory,
// always the same, which nobody else may have made or can write.
func TestRecordElsewhere(t *testing.T) {
	temp, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	t.Setenv("TMPDIR", temp)
	must(t, os.WriteFile(file, nil, 0o600))
	own := filepath.Join(temp, fmt.Sprintf("omniagent-state-%d", os.Geteuid()))
	for _, state := range []string{file, ""} {
		if dir, err := recordDir(state); err != nil || dir != filepath.Join(own, "walls") {
			t.Errorf("%q: %s, %v", state, dir, err)
		}
	}
	must(t, os.Chmod(own, 0o777))
	if dir, err := recordDir(file); err == nil {
		t.Errorf("%s can be written by others", dir)
	}
	must(t, os.Remove(own))
	must(t, os.Symlink(t.TempDir(), own))
	if dir, err := recordDir(file); err == nil {
		t.Errorf("%s is a link", dir)
	}
}
