package run

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// withText returns the processes that have a text in this file of theirs, by their numbers.
func withText(file, text string) (found []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/" + file)
	for _, path := range all {
		data, err := os.ReadFile(path)
		if pid, _ := strconv.Atoi(strings.Split(path, "/")[2]); err == nil && strings.Contains(string(data), text) {
			found = append(found, pid)
		}
	}
	return found
}

// TestAllOfOursAreKilled kills the owner of a run and what guards its agent at the same moment. What the agent has
// started has left its session, its parents and its environment.
func TestAllOfOursAreKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("hermit", `
		setsid env -i sh -c '(while :; do sleep 0.01; done) & touch "$1/began"; while :; do sleep 0.01; done' sh "$PWD" &
		sleep 1000`)
	if doctor := p.call("doctor"); !strings.Contains(doctor.Stdout, `"name":"agents end with us","ok":true`) {
		t.Skip("doctor says that agents may outlive us here")
	}
	for range 5 {
		a := p.run("hermit", "--yolo", "--detach")
		p.reaches(a.Data.ID, "running")
		for began := filepath.Join(p.work, "began"); os.Remove(began) != nil; {
			time.Sleep(time.Millisecond)
		}
		if len(withText("cmdline", "sh\x00"+p.work)) < 2 {
			t.Error("there is nobody to kill")
		}
		guards := withText("stat", "(omniagent-guard) S "+strconv.Itoa(a.Data.PID)+" ")
		if err := syscall.Kill(a.Data.PID, syscall.SIGSTOP); err != nil { // or it would see how the others end
			t.Fatal(err)
		}
		for _, pid := range append(guards, a.Data.PID) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		p.reaches(a.Data.ID, "unknown_outcome")
		p.nothing()
		for deadline := time.Now().Add(patience); len(withText("cmdline", "sh\x00"+p.work)) > 0; {
			if time.Now().After(deadline) {
				t.Fatal("what the agent started lives")
			}
			time.Sleep(time.Millisecond)
		}
	}
}
