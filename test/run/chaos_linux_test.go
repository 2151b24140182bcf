package run

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// trials is how many runs are shot at; OMNIAGENT_KILLS sets it.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("OMNIAGENT_KILLS")); err == nil && n > 0 {
		return n
	}
	return 12
}

// TestChaos kills the processes of a run at random moments. Whatever died: nothing of the run is alive soon after, the
// next command knows the true state, and the record has one end that nothing changes.
func TestChaos(t *testing.T) {
	const script = `cat >/dev/null
for i in 1 2 3; do echo "line $i"; sleep 0.05; done
setsid sh -c 'sleep 1000' &
touch worked
sleep 0.1
echo done
`
	for _, target := range []string{"supervisor", "guard", "agent", "watcher"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).agent("busy", script)
			for range trials() {
				p.trial(target)
				if t.Failed() {
					return
				}
			}
		})
	}
}

func (p *place) trial(target string) {
	p.t.Helper()
	_ = os.Remove(filepath.Join(p.work, "worked"))
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
	began := time.Now()
	_ = watch.Wait()
	if target == "watcher" {
		p.reaches(a.Data.ID, "succeeded")
	}
	shown := p.over(a.Data.ID)
	if took := time.Since(began); took > patience/2 {
		p.t.Errorf("known after %s", took)
	}
	want := map[string][]string{
		"supervisor": {"unknown_outcome", "succeeded", "failed"},
		"guard":      {"succeeded", "failed"}, // before it is the agent, a process looks like its guard
		"agent":      {"failed", "succeeded"}, "watcher": {"succeeded"},
	}[target]
	if !strings.Contains(strings.Join(want, " "), shown.Data.Status) {
		p.t.Errorf("%s of %d was killed: %s", target, victims, shown)
	}
	record := filepath.Join(p.home, ".local/state/omniagent/runs", a.Data.ID, "run.json")
	first, _ := os.ReadFile(record)
	if again := p.call("runs", "cancel", a.Data.ID); again.Code != 0 {
		p.t.Errorf("%s", again)
	}
	if second, _ := os.ReadFile(record); !bytes.Equal(first, second) {
		p.t.Errorf("an end was changed:\n%s\n%s", first, second)
	}
	p.nothing()
	// The watcher's lines are the beginning of what another one gets, whenever it was ended.
	whole, _ := p.command("runs", "watch", a.Data.ID).Output()
	if got := lines.Bytes(); target == "watcher" && !bytes.HasPrefix(whole, got[:bytes.LastIndexByte(got, '\n')+1]) {
		p.t.Errorf("%s\nis not the beginning of\n%s", got, whole)
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
