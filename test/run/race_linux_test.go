package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/measure"
)

// contest is the answer of a race or a batch.
type contest struct {
	answer
	Winner string
	ID     string
	Status string
	Runs   []contestant
}

type contestant struct {
	ID             string `json:"run_id"`
	Fork           string
	Agent          string
	Task           string
	Status         string
	Reason         string
	Check          *int
	Passed         bool
	Files          *int
	Added, Removed int
	Error          string
}

func (p *place) contest(want int, args ...string) (c contest) {
	p.t.Helper()
	c.answer = p.call(append([]string{"run", "--yolo"}, args...)...)
	lines := strings.Split(strings.TrimSpace(c.Stdout), "\n")
	var d struct {
		Data *struct {
			ID     string `json:"run_id"`
			Status string
			Winner string
			Runs   []contestant
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &d); err != nil || c.Code != want || d.Data == nil {
		p.t.Fatalf("%v: want %d: %v\n%s", args, want, err, c.answer)
	}
	c.Winner, c.ID, c.Status, c.Runs = d.Data.Winner, d.Data.ID, d.Data.Status, d.Data.Runs
	return c
}

// untouched remembers the workspace, and checks that it is the same to the byte.
func (p *place) untouched() (check func()) {
	p.t.Helper()
	was, err := measure.Oracle(p.work, p.env)
	if err != nil {
		p.t.Fatal(err)
	}
	return func() {
		p.t.Helper()
		if is, err := measure.Oracle(p.work, p.env); err != nil || is != was {
			p.t.Errorf("the workspace is %s\nand was %s: %v", is, was, err)
		}
	}
}

// TestARace lets four agents do a task: one fails the check, one fails itself, and one writes more than another.
func TestARace(t *testing.T) {
	t.Parallel()
	p := newPlace(t).
		agent("wordy", `cat >/dev/null; printf '1\n2\n3\n' >done.txt; echo ok`).
		agent("brief", `cat >/dev/null; echo 1 >done.txt; echo ok`).
		agent("wrong", `cat >/dev/null; echo 1 >else.txt; echo ok`).
		agent("broken", `cat >/dev/null; echo no >&2; exit 1`)
	p.put("a.txt", "a\n")
	unchanged := p.untouched()
	c := p.contest(0, "--race", "wordy,wrong,brief,broken", "--check", "test -f done.txt", "-p", "Do it.")
	unchanged()
	if len(c.Runs) != 4 || c.Winner == "" || c.Winner != c.Runs[2].ID || c.ID != c.Winner || c.Status != "succeeded" {
		t.Fatalf("%+v", c)
	}
	for i, want := range []contestant{
		{Agent: "wordy", Status: "succeeded", Reason: "done", Passed: true, Added: 3},
		{Agent: "wrong", Status: "failed", Reason: "check_failed", Added: 1},
		{Agent: "brief", Status: "succeeded", Reason: "done", Passed: true, Added: 1},
		{Agent: "broken", Status: "failed", Reason: "crashed"},
	} {
		is := c.Runs[i]
		if is.Agent != want.Agent || is.Status != want.Status || is.Reason != want.Reason || is.Passed != want.Passed ||
			is.Added != want.Added || is.Fork == "" || is.ID == "" || (is.Check == nil) != (i == 3) {
			t.Errorf("%d: %+v", i, is)
		}
	}
	if k := c.Runs[1].Check; k == nil || *k != 1 {
		t.Errorf("%+v", c.Runs[1])
	}
	cmd := p.command("run", "--yolo", "--race", "wordy,brief", "-p", "Do it.", "--output", "plain")
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "\n*  brief  done") {
		t.Errorf("%v\n%s", err, out)
	}
	p.fork(0, "runs", "apply", c.Winner)
	if p.read("done.txt") != "1\n" {
		t.Error("the winner did not come home")
	}
	p.fork(0, "undo")
	unchanged()
	p.nothing()
}

// TestEightVandals lets eight contestants destroy everything at a time, each serving the same port.
func TestEightVandals(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	up := filepath.Join(p.home, "up")
	p.put(filepath.Join(up, "readme"), "")
	p.agent("vandal", "cat >/dev/null; "+serving+"="+up+" "+os.Args[0]+" || exit 1\n"+
		"git reset -q --hard; git gc -q --prune=now; rm -rf ./* .git .gitignore; echo done").
		configured("[run]\nparallel = 8\n")
	p.put("src/a.txt", "a\n")
	p.put("b.txt", "b\n")
	p.git("init", "-q")
	p.git("add", ".")
	p.git("commit", "-q", "-m", "first")
	p.put("b.txt", "changed\n")
	p.put("new.txt", "new\n")
	unchanged := p.untouched()
	c := p.contest(0, "--race", "vandal*8", "--check", "! test -e b.txt", "-p", "Do it.")
	unchanged()
	for _, r := range c.Runs {
		if !r.Passed || r.Files == nil || *r.Files != 3 {
			t.Errorf("%+v", r)
		}
	}
	if len(c.Runs) != 8 {
		t.Errorf("%d contestants", len(c.Runs))
	}
	p.nothing()
}

// TestNobodyWins checks the exit codes of a race in which nobody passes, and that a question holds nobody up.
func TestNobodyWins(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("wrong", `cat >/dev/null; echo ok`).
		agent("asks", `cat >/dev/null; echo "Which colour do you want?"`)
	for _, k := range []struct {
		race, check string
		code        int
		fault       string
	}{
		{"wrong*2", "echo seen; exit 7", 1, "CHECK_FAILED"},
		{"wrong,asks", "false", 4, "NEEDS_INPUT"},
		{"wrong,nobody", "false", 5, "NOT_FOUND"},
	} {
		a := p.call("run", "--yolo", "--race", k.race, "--check", k.check, "-p", "Do it.")
		if a.Code != k.code || a.Error == nil || a.Error.Code != k.fault {
			t.Errorf("%v: %s", k, a)
		}
	}
	c := p.contest(0, "--race", "asks,wrong", "--check", "true", "-p", "Do it.")
	if c.Winner != c.Runs[1].ID || c.Runs[0].Status != "needs_input" {
		t.Errorf("%+v", c)
	}
	c = p.contest(4, "--race", "wrong,asks", "--check", "false", "-p", "Do it.")
	if c.Status != "needs_input" {
		t.Errorf("the race is %s", c.Status)
	}
	next := strings.Join(c.Data.Summary.Next, "; ") // who asks goes on in its fork
	if !strings.Contains(next, "answer "+c.Runs[1].ID) ||
		!strings.HasSuffix(next, "fork delete "+c.Runs[0].Fork+" --confirm-destructive") {
		t.Errorf("next is %s", next)
	}
	for _, bad := range [][]string{
		{"--race", "wrong*0", "-p", "x"},
		{"--race", "wrong", "--agent", "wrong", "-p", "x"},
		{"--race", ",", "-p", "x"},
		{"--network", "off", "-p", "x"},
		{"--race", "wrong", "--detach", "-p", "x"},
		{"--race", "wrong", "--check", "", "-p", "x"},
		{"--agent", "wrong", "--check=", "-p", "x"},
		{"--agent", "wrong", "--check", " \t", "-p", "x"},
	} {
		if a := p.call(append([]string{"run"}, bad...)...); a.Code != 2 {
			t.Errorf("%v: %s", bad, a)
		}
	}
	single := p.run("wrong", "--yolo", "--check", "echo seen; exit 7")
	single.is(t, 1, "failed", "check_failed")
	if !strings.Contains(single.Stdout, `"exit_code":7`) || !strings.Contains(single.Stdout, "seen") {
		t.Errorf("%s", single)
	}
	p.put(filepath.Join(p.home, ".config/omniagent/config.toml"),
		"[agents]\nallow = [\"wrong\"]\n[run]\ncheck_timeout = \"200ms\"\n")
	p.run("wrong", "--yolo", "--check", "sleep 60").is(t, 1, "failed", "check_failed")
	p.nothing()
}

// TestARaceOfModelsHere races agents whose model is on the loopback of this machine.
func TestARaceOfModelsHere(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"write":{"path":"new.txt","content":"x\n"}},{"say":"I wrote it."}]`)
	c := p.contest(0, "--race", "native*2", "-m", "m", "--provider", "openai", "--check", "grep x new.txt", "-p", "go")
	for _, r := range c.Runs {
		if !r.Passed {
			t.Errorf("%+v", r)
		}
	}
	p.nothing()
}

// race starts a race of agents that wait, and returns when all are at work.
func (p *place) race(agents int) (*exec.Cmd, *bytes.Buffer) {
	p.t.Helper()
	cmd := p.command("run", "--yolo", "--race", fmt.Sprintf("waits*%d", agents), "-p", "Do it.", "--output", "json",
		"--timeout", "0", "--idle-timeout", "0s")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if at, _ := filepath.Glob(filepath.Join(p.home, "at-*")); len(at) == agents {
			return cmd, &out
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("they do not work: %s", out.String())
		}
	}
}

func waiting(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	return p.agent("waits", "cat >/dev/null; echo 1 >new.txt; : >"+p.home+"/at-$$; mkfifo w; read x <w").
		configured("[run]\nnamespace = \"off\"\n") // in one of its own each has the same number
}

// TestARaceIsCancelled presses Ctrl-C: all end, each with its record, and the forks stay.
func TestARaceIsCancelled(t *testing.T) {
	t.Parallel()
	p := waiting(t)
	cmd, out := p.race(3)
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || strings.Count(out.String(), `"status":"cancelled"`) != 4 {
		t.Errorf("exit %d: %s", code, out.String())
	}
	p.recorded(3, "cancelled")
}

// TestARaceIsKilled kills the supervisor: nobody saw how the runs ended, and the forks stay.
func TestARaceIsKilled(t *testing.T) {
	t.Parallel()
	p := waiting(t)
	cmd, _ := p.race(3)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	p.nothing()
	p.recorded(3, "unknown_outcome")
}

// recorded checks that there are so many runs in a state, each with a fork that has its work.
func (p *place) recorded(n int, status string) {
	p.t.Helper()
	a := p.call("runs", "list", "--status", status)
	if strings.Count(a.Stdout, `"status":"`+status) != n {
		p.t.Errorf("%s", a)
	}
	for i := range n {
		d := p.fork(0, "fork", "diff", fmt.Sprintf("work-%d", i+1))
		found := false
		for _, f := range d.Data.Files {
			found = found || filepath.Base(f.Path) == "new.txt"
		}
		if !found {
			p.t.Errorf("%+v", d)
		}
	}
	p.nothing()
}

// TestTheSecondOfTwoThatDidTheSame undoes the first of two forks with the same changes, and applies the second.
func TestTheSecondOfTwoThatDidTheSame(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("same", `cat >/dev/null; echo r >>fast.txt; echo f >>a.txt; echo ok`)
	p.put("a.txt", "a\n")
	c := p.contest(0, "--race", "same*2", "-p", "Do it.")
	for _, r := range c.Runs {
		p.printed("runs", "apply", r.ID)
	}
	p.printed("undo")
	if out := p.printed("fork", "diff", c.Runs[1].Fork, "--output", "plain"); !strings.Contains(out, "fast.txt") {
		t.Errorf("the fork's work is not shown: %q", out)
	}
	p.printed("runs", "apply", c.Runs[1].ID)
	for name, want := range map[string]string{"a.txt": "a\nf\n", "fast.txt": "r\n"} {
		if got, err := os.ReadFile(filepath.Join(p.work, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
