package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// abandon kills the owner of a run and the guard of its agent, so that nobody ends what the agent has started.
func (p *place) abandon(owner int) {
	p.t.Helper()
	if err := syscall.Kill(owner, syscall.SIGSTOP); err != nil { // it would replace the guard
		p.t.Fatal(err)
	}
	p.stopped(owner)
	guards := withText("stat", "(omniagent-guard) S "+strconv.Itoa(owner)+" ")
	if len(guards) == 0 {
		p.t.Fatal("there is no guard")
	}
	for _, pid := range guards {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := syscall.Kill(owner, syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	for _, pid := range append(guards, owner) { // dying takes time where the processors are busy
		p.dead(pid)
	}
}

// TestCleanupEndsOrphans: what an agent has started outlives all of ours where there is no namespace. cleanup shows it,
// and --live ends it and closes the run; a stranger's process is left alone.
func TestCleanupEndsOrphans(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("hermit", `setsid sh -c 'touch "$1/began"; while :; do sleep 0.01; done' sh "$PWD" &
		sleep 1000`).configured("[run]\nnamespace = \"off\"\n")
	if doctor := p.call("doctor"); !strings.Contains(doctor.Stdout, `"name":"agents end with us","ok":false`) ||
		!strings.Contains(doctor.Stdout, "config unset run.namespace --global") {
		t.Errorf("doctor does not name what is lost: %s", doctor)
	}
	live := p.run("hermit", "--yolo", "--detach") // its owner lives all the time
	a := p.run("hermit", "--yolo", "--detach")
	for _, id := range []string{live.Data.ID, a.Data.ID} {
		p.reaches(id, "running")
	}
	for began := filepath.Join(p.work, "began"); len(withText("cmdline", "sh\x00"+p.work)) < 2 ||
		os.Remove(began) != nil; {
		time.Sleep(time.Millisecond)
	}
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	// a record of a dead owner, with a number that has been given to somebody else since
	space, _ := os.Readlink("/proc/self/ns/pid")
	p.put(filepath.Join(p.home, ".local/state/omniagent/sessions/old.jsonl"), `{"pid":`+
		strconv.Itoa(stranger.Process.Pid)+`,"argv0":"x","identity":"b:1","owner":2147480000,"owner_identity":"b:1",`+
		`"pid_namespace":"`+space+"\"}\n")
	p.abandon(a.Data.PID)

	shown := p.call("cleanup", "--min-age", "0")
	if shown.Code != 0 || !strings.Contains(shown.Stdout, `"runs":["`+a.Data.ID+`"]`) ||
		!strings.Contains(shown.Stdout, `"pids":[`) || len(shown.Data.Ended) > 0 {
		t.Errorf("%s", shown)
	}
	if len(withText("cmdline", "sh\x00"+p.work)) < 2 {
		t.Fatal("what would be ended is dead before")
	}
	done := p.call("cleanup", "--scope", "processes", "--live")
	if done.Code != 0 || len(done.Data.Ended) != 1 || done.Data.Ended[0].Program != "hermit" ||
		len(done.Data.Closed) != 1 || done.Data.Closed[0].ID != a.Data.ID ||
		done.Data.Closed[0].Status != "unknown_outcome" {
		t.Errorf("%s", done)
	}
	if left := withText("cmdline", "sh\x00"+p.work); len(left) != 1 {
		t.Errorf("%v run, and only that of the other run should", left)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger is dead: %v", err)
	}
	if shown := p.call("runs", "show", live.Data.ID); shown.Data.Status != "running" {
		t.Errorf("%s", shown)
	}
	if again := p.call("cleanup", "--scope", "processes", "--live"); !strings.Contains(again.Stdout, `"noop"`) {
		t.Errorf("%s", again)
	}
	p.call("runs", "cancel", live.Data.ID)
	p.nothing()
}

// TestNamespaceSwitch: the record says whether the agent had a PID namespace, which run.namespace decides.
func TestNamespaceSwitch(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("seer", `readlink /proc/self/ns/pid; readlink /proc/self/ns/user`)
	has := !strings.Contains(p.call("doctor").Stdout, `"name":"agents end with us","ok":false`)
	ours, _ := os.Readlink("/proc/self/ns/pid")
	users, _ := os.Readlink("/proc/self/ns/user")
	for setting, want := range map[string]bool{"": has, "auto": has, "off": false} {
		if p.configured(""); setting != "" {
			p.configured("[run]\nnamespace = \"" + setting + "\"\n")
		}
		a := p.run("seer", "--yolo")
		apart := !strings.Contains(a.Data.Text.Value, ours)
		if shown := p.call("runs", "show", a.Data.ID); apart != want || shown.Data.Namespace == nil ||
			*shown.Data.Namespace != want || !want && !strings.Contains(a.Data.Text.Value, users) {
			t.Errorf("%q: %s", setting, shown)
		}
	}
}
