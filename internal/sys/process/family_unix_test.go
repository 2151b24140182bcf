//go:build unix

package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// familyThat is the leader of a family: "exits" leaves a grandchild behind, "escapes" one that has left the session,
// "stays" waits.
func familyThat(how, file string) error {
	attr := &syscall.SysProcAttr{Setsid: how == "escapes" || how == "escapes-stays"}
	if err := startGrandchild(file, attr); err != nil || how == "exits" || how == "escapes" {
		return err
	}
	return sleepForEver(nil)
}

func TestGrandchildIsDeadWhenRunReturns(t *testing.T) {
	file := temporary(t, "pid")
	r, err := Run(t.Context(), as(t, "family", "exits", file))
	check(t, err)
	if string(r.Stdout) != "family\n" || r.OutputTruncated {
		t.Fatalf("got %+v", r)
	}
	pid, err := awaitPID(t.Context(), file)
	check(t, err)
	if _, alive := identity(pid); alive { // at once, not soon
		t.Fatal("the grandchild lives")
	}
}

func TestWholeFamilyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	file := temporary(t, "pid")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = awaitPID(ctx, file); cancel() }()
	s := as(t, "family", "stays", file)
	s.Grace = 2 * time.Second // time enough for the leader to die of SIGTERM, which the grandchild ignores
	r, err := Run(ctx, s)
	wantCode(t, err, fault.Interrupted)
	if r.Signal != "SIGTERM" {
		t.Fatalf("got %+v", r)
	}
	pid, err := awaitPID(t.Context(), file)
	check(t, err)
	if _, alive := identity(pid); alive {
		t.Fatal("the grandchild lives")
	}
}

func TestGrandchildMayUseTheGrace(t *testing.T) {
	dir := t.TempDir()
	// The shell dies of SIGTERM at once; what it started takes its time over a file.
	script := `(trap 'echo done >"$1/tidied"; exit' TERM; echo $$ >"$1/ready"; while :; do sleep 0.01; done) & wait`
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = awaitFile(ctx, filepath.Join(dir, "ready")); cancel() }()
	_, err := Run(ctx, Spec{Argv: []string{"sh", "-c", script, "sh", dir}, Grace: 10 * time.Second})
	wantCode(t, err, fault.Interrupted)
	if _, err := os.Stat(filepath.Join(dir, "tidied")); err != nil {
		t.Fatal(err)
	}
}

func awaitFile(ctx context.Context, path string) (found bool, err error) {
	pollUntilDone(ctx, func() bool {
		info, err := os.Stat(path)
		found = err == nil && info.Size() > 0
		return found
	})
	return found, ctx.Err()
}

func TestWhoLeavesTheGroupIsDeadToo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a parent for orphans, and /proc")
	}
	file := temporary(t, "pid")
	r, err := Run(t.Context(), as(t, "family", "escapes", file))
	check(t, err)
	pid, err := awaitPID(t.Context(), file)
	check(t, err)
	if _, alive := identity(pid); alive { // at once, not soon
		t.Fatal("the grandchild lives")
	}
	if string(r.Stdout) != "family\n" || r.OutputTruncated || r.Duration > 10*time.Second {
		t.Fatalf("got %+v", r)
	}
}

func TestOnlyThreeDescriptorsAreInherited(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	f, err := os.Open("/dev/zero") // something of ours that is open
	check(t, err)
	defer f.Close()
	inherited, err := syscall.Dup(int(f.Fd())) // as a parent process may leave it: dup does not set close-on-exec
	check(t, err)
	defer syscall.Close(inherited)
	r, err := Run(t.Context(), Spec{Argv: []string{"ls", "-l", "/proc/self/fd"}})
	check(t, err)
	seen := 0
	for _, line := range linesOf(r.Stdout) {
		name, to, isEntry := strings.Cut(line, " -> ")
		if !isEntry || strings.HasPrefix(to, "/proc/") { // the directory that ls itself reads
			continue
		}
		seen++
		if n := name[strings.LastIndexByte(name, ' ')+1:]; n != "0" && n != "1" && n != "2" {
			t.Errorf("inherited %s", line)
		}
	}
	if seen < 3 {
		t.Fatalf("got %q", r.Stdout)
	}
}

func TestChildHasNoTerminalToAskOn(t *testing.T) {
	r, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "read x </dev/tty && echo asked; exit 3"}})
	check(t, err)
	if r.ExitCode != 3 || len(r.Stdout) > 0 {
		t.Fatalf("got %+v", r)
	}
}

func TestDirectoryOfTheChild(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	check(t, hermetic.WriteProgram(filepath.Join(dir, "here"), []byte("#!/bin/sh\npwd -P\n"), 0o700))
	check(t, hermetic.WriteProgram(filepath.Join(dir, "orphan"), []byte("#!/no/such/interpreter\n"), 0o700))
	r, err := Run(t.Context(), Spec{Argv: []string{"./here"}, Dir: dir})
	check(t, err)
	if string(r.Stdout) != dir+"\n" {
		t.Fatalf("got %q", r.Stdout)
	}
	_, err = Run(t.Context(), Spec{Argv: []string{"./orphan"}, Dir: dir})
	wantCode(t, err, fault.NotInstalled)
}

func TestRecordLastsAsLongAsTheChild(t *testing.T) {
	dir := t.TempDir()
	record := filepath.Join(dir, "session.pid")
	register := NewRegister(record)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			file := filepath.Join(t.TempDir(), fmt.Sprint(n))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				defer cancel()
				pid, err := awaitPID(ctx, file)
				check := func() bool {
					children, _ := Registers(dir)
					return slices.ContainsFunc(children, func(c Registered) bool {
						return c.PID == pid && c.Alive && c.File == record && c.Argv0 != "" &&
							time.Since(c.Started) < time.Minute
					})
				}
				soon, stop := context.WithTimeout(ctx, hermetic.Patience)
				defer stop()
				pollUntilDone(soon, check) // a child may be quicker than its record
				if err != nil || !check() {
					t.Errorf("%d is not on record: %v", pid, err)
				}
			}()
			s := as(t, "polite", file)
			s.Register = register
			if _, err := Run(ctx, s); fault.Of(err).Code != fault.Interrupted {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	left, err := os.ReadDir(dir)
	check(t, err)
	if len(left) > 0 {
		t.Fatalf("left %v", left)
	}
	_, err = Run(t.Context(), Spec{Argv: []string{"true"}, Register: NewRegister(filepath.Join(dir, "none", "x"))})
	wantCode(t, err, fault.FileMissing)
	_, err = Run(t.Context(), Spec{Argv: []string{"true"}, Dir: record, Register: register})
	wantCode(t, err, fault.FileMissing)
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Fatalf("a child that was not started left %v", err)
	}
}

func TestChildrenOfAKilledParentDie(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the parent-death signal and /proc")
	}
	for _, how := range []string{"stays", "escapes-stays"} {
		dir := t.TempDir()
		record, file := filepath.Join(dir, "session.pid"), temporary(t, "pid")
		cmd := startParent(t, "family", record, how, file)
		pid, err := awaitPID(t.Context(), file)
		check(t, err)
		children, err := Registers(dir)
		check(t, err)
		if len(children) != 1 || !children[0].Alive {
			t.Fatalf("got %+v", children)
		}
		check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		wantGone(t, children[0].PID)
		wantGone(t, pid)
		children, err = Registers(dir) // nobody was left to take it away
		check(t, err)
		if len(children) != 1 || children[0].Alive {
			t.Fatalf("got %+v", children)
		}
	}
}

func TestAnotherProcessWithTheNumberIsLeftAlone(t *testing.T) {
	file := temporary(t, "pid")
	s := as(t, "polite", file)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan Result)
	go func() { r, _ := Run(ctx, s); done <- r }()
	pid, err := awaitPID(t.Context(), file)
	check(t, err)
	dir := t.TempDir()
	record := filepath.Join(dir, "session.pid")
	lines := fmt.Sprintf("not json\n{\"pid\":%d,\"argv0\":\"x\",\"identity\":\"boot:1\"}\n"+
		"{\"pid\":1,\"argv0\":\"init\"}\n{\"pid\":-1,\"argv0\":\"all\"}\n{\"pid\":%d,\"ar", pid, pid)
	check(t, os.WriteFile(record, []byte(lines), 0o600))
	children, err := Registers(dir)
	check(t, err)
	for _, c := range children {
		if c.Alive {
			t.Errorf("taken for alive: %+v", c)
		}
	}
	if len(children) != 3 {
		t.Fatalf("got %v", children)
	}
	cancel()
	if r := <-done; string(r.Stdout) != "goodbye\n" {
		t.Fatalf("got %+v", r)
	}
}
