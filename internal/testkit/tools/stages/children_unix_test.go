//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newRunner(t *testing.T, out *strings.Builder) *runner {
	return &runner{
		out: out, tmp: t.TempDir(), ran: map[string][]byte{},
		children: children{groups: map[int]bool{}, patience: 50 * time.Millisecond},
	}
}

// TestNothingOfAChildIsLeft: what a child leaves behind is killed, even if it ignores signals.
func TestNothingOfAChildIsLeft(t *testing.T) {
	r := newRunner(t, &strings.Builder{})
	cmd, held := holding(t, r.program("sh", "-c", `trap "" HUP INT TERM; sleep 600 & echo >&3; exit 3`))
	if _, err := r.output(cmd, true); err == nil || !exited(err) {
		t.Errorf("error %v, want exit status 3", err)
	}
	awaitEnd(t, cmd, held)
}

// TestStopEndsChildren: after an interruption no child is left, and no other begins.
func TestStopEndsChildren(t *testing.T) {
	r := newRunner(t, &strings.Builder{})
	cmd, held := holding(t, exec.Command("sh", "-c", `trap "" TERM; sleep 600 & echo >&3; wait; exec sleep 600`))
	go func() { _ = r.children.run(cmd) }() // it does not return: the program exits meanwhile
	if _, err := held.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	r.children.stop(syscall.SIGTERM)
	awaitEnd(t, cmd, held)
	if r.children.mu.TryLock() {
		t.Error("another child may begin")
	}
}

// holding gives a child a pipe as its descriptor 3. It is open as long as one of its group lives.
func holding(t *testing.T, cmd *exec.Cmd) (*exec.Cmd, *os.File) {
	t.Helper()
	held, holder, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	cmd.ExtraFiles = []*os.File{holder}
	return cmd, held
}

func awaitEnd(t *testing.T, cmd *exec.Cmd, held *os.File) {
	t.Helper()
	_ = cmd.ExtraFiles[0].Close()
	if err := held.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, held); err != nil {
		t.Errorf("a member of the group of the child lives: %v", err)
	}
}

func TestAProgramThatIsMissingFails(t *testing.T) {
	var out strings.Builder
	r := newRunner(t, &out)
	if r.succeeds("first", r.program("/nowhere/program")) || r.quiet("second", r.program("/nowhere/program")) ||
		r.do(r.program("/nowhere/program")) || r.tests("test", exec.Command("/nowhere/program")) {
		t.Error("it passed")
	}
	if n := strings.Count(out.String(), "/nowhere/program: no such file"); n != 4 {
		t.Errorf("the reason is given %d times:\n%s", n, out.String())
	}
}
