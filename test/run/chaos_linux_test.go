package run

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// trials is how many runs are shot at.
func trials(t *testing.T) int { return hermetic.Often(t, "OMNIAGENT_KILLS", 12) }

// TestChaos kills the processes of a run at random moments. Whatever died: nothing of the run is alive soon after, the
// first command knows the true state, the agent was not started twice, no byte of it is lost, and the record has one
// end that nothing changes.
func TestChaos(t *testing.T) {
	const script = `cat >/dev/null
echo x >>starts
for i in 1 2 3; do echo "line $i"; sleep 0.05; done
setsid sh -c 'sleep 1000' &
sleep 0.1
echo done
`
	for _, target := range []string{"supervisor", "guard", "agent", "watcher", "all"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).agent("busy", script)
			var longest time.Duration
			for range trials(t) {
				longest = max(longest, p.trial(target))
				if t.Failed() {
					return
				}
			}
			t.Logf("the state was known after %s at the latest", longest)
		})
	}
}

// ends are the states in which a run may be after these processes were killed.
var ends = map[string][]string{
	"supervisor": {"unknown_outcome", "succeeded", "failed"},
	"guard":      {"succeeded", "failed"}, // before it is the agent, a process looks like its guard
	"agent":      {"failed", "succeeded"},
	"watcher":    {"succeeded"},
	"all":        {"unknown_outcome", "succeeded", "failed"},
}

// trial kills the processes of one run. It returns how long the first command after that took.
func (p *place) trial(target string) time.Duration {
	p.t.Helper()
	_ = os.Remove(filepath.Join(p.work, "starts"))
	a := p.run("busy", "--yolo", "--detach")
	if a.Code != 0 {
		p.t.Fatalf("%s", a)
	}
	watch := p.command("runs", "watch", a.Data.ID)
	var lines bytes.Buffer
	watch.Stdout = &lines
	if err := watch.Start(); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(rand.N(400 * time.Millisecond)) // the moment is the random part of the test
	victims := p.victims(target, a.Data.PID, watch.Process.Pid)
	for _, pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if target == "supervisor" || target == "all" {
		p.dead(a.Data.PID)
	}
	began := time.Now()
	first := p.call("runs", "show", a.Data.ID)
	took := time.Since(began)
	if s := first.Data.Status; (target == "supervisor" || target == "all") && (s == "starting" || s == "running") {
		p.t.Errorf("nobody carries it out: %s", first)
	}
	if took > patience/6 {
		p.t.Errorf("known after %s", took)
	}
	_ = watch.Wait()
	if target == "watcher" {
		p.reaches(a.Data.ID, "succeeded")
	}
	shown := p.over(a.Data.ID)
	if !slices.Contains(ends[target], shown.Data.Status) {
		p.t.Errorf("%s, %d, was killed: %s", target, victims, shown)
	}
	p.stays(a.Data.ID)
	p.nothing()
	if n := strings.Count(p.read("starts"), "x"); n > shown.Data.Attempts {
		p.t.Errorf("%d starts in %d attempts: %s", n, shown.Data.Attempts, shown)
	}
	p.whole(shown, target)
	// The watcher's lines are the beginning of what another one gets, whenever it was ended.
	rest, _ := p.command("runs", "watch", a.Data.ID).Output()
	if got := lines.Bytes(); !bytes.HasPrefix(rest, got[:bytes.LastIndexByte(got, '\n')+1]) && target != "supervisor" {
		p.t.Errorf("%s\nis not the beginning of\n%s", got, rest)
	}
	return took
}

// whole checks that what the agent wrote is kept, and told.
func (p *place) whole(shown answer, target string) {
	p.t.Helper()
	const output = "line 1\nline 2\nline 3\ndone\n"
	raw, _ := p.command("runs", "logs", shown.Data.ID, "--raw", "stdout").Output()
	told := ""
	if shown.Data.Session != "" {
		told = p.told(shown.Data.ID)
	}
	ours := target == "supervisor" || target == "all" // who would tell the rest
	if !strings.HasPrefix(output, string(raw)) || !strings.HasPrefix(string(raw), told) ||
		!ours && told != string(raw) || shown.Data.Status == "succeeded" && string(raw) != output {
		p.t.Errorf("kept %q, told %q: %s", raw, told, shown)
	}
}

// over waits until a run is over.
func (p *place) over(id string) answer {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		a := p.call("runs", "show", id)
		switch a.Data.Status {
		case "queued", "starting", "running", "needs_input":
		default:
			return a
		}
		// Its owner died before it began: any process may take it up.
		if a.Data.Status == "queued" && a.Data.Owner == nil {
			p.call("runs", "continue", id)
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("not over: %s", a)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// victims are the processes of that kind.
func (p *place) victims(target string, supervisor, watcher int) []int {
	switch target {
	case "supervisor":
		return []int{supervisor}
	case "all":
		return append(p.victims("guard", supervisor, watcher), supervisor, watcher)
	case "watcher":
		return []int{watcher}
	}
	var all []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == supervisor || pid == watcher {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		exe, _ := os.Readlink("/proc/" + e.Name() + "/exe")
		if !bytes.Contains(env, []byte("HOME="+p.home+"\x00")) || (exe == program) != (target == "guard") {
			continue
		}
		if group, err := syscall.Getpgid(pid); target == "guard" || err == nil && group == pid {
			all = append(all, pid)
		}
	}
	return all
}

// TestChaosQuestion kills the owner of a run that waits for an answer, before the question is open or while it is. An
// open question stays open, and its answer is taken once.
func TestChaosQuestion(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"ask":"Which colour?"},{"say":"it was ${result}"}]`)
	asked := 0
	for range max(4, trials(t)/3) {
		a := p.call("run", "--agent", "native", "-m", "m", "--provider", "openai", "-p", "go", "--detach")
		if a.Code != 0 {
			t.Fatalf("%s", a)
		}
		time.Sleep(rand.N(500 * time.Millisecond)) // the moment is the random part of the test
		open := p.call("runs", "show", a.Data.ID).Data.Status == "needs_input"
		_ = syscall.Kill(a.Data.PID, syscall.SIGKILL)
		p.dead(a.Data.PID)
		shown := p.call("runs", "show", a.Data.ID)
		if s := shown.Data.Status; s == "starting" || s == "running" || open && s != "needs_input" {
			t.Errorf("the question was open: %v: %s", open, shown)
		}
		if shown.Data.Status != "needs_input" {
			continue
		}
		if asked++; len(shown.Data.Questions) != 1 || shown.Data.Questions[0].Text != "Which colour?" {
			t.Errorf("%s", shown)
		}
		p.call("answer", a.Data.ID, "blue")
		if c := p.call("answer", a.Data.ID, "red"); c.Code != 6 {
			t.Errorf("%s", c)
		}
		if known := p.call("runs", "show", a.Data.ID).Data.Answered; len(known) != 1 || known[0].Answer != "blue" {
			t.Errorf("%v", known)
		}
	}
	p.nothing()
	t.Logf("%d questions were open", asked)
}
