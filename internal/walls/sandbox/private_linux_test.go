package sandbox

import (
	"bytes"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
)

// plan runs a line of a shell.
func plan(line string, out *bytes.Buffer) process.Plan {
	return process.Plan{
		Argv: []string{"sh", "-c", line}, Path: "/bin/sh", Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Stdout: out,
		Stderr: out,
	}
}

// privately starts a program in namespaces of its own that goes on until its input ends.
func privately(t *testing.T) Spaces {
	t.Helper()
	var out bytes.Buffer
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := plan("read x", &out)
	p.Stdin = in
	entry, err := Private{}.Enter(p)
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Start(entry.Plan)
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	s, err := entry.Spaces(child)
	t.Cleanup(func() {
		_ = hold.Close()
		child.Wait()
		s.Close()
	})
	if reason, _ := NamespaceSettings("user.max_net_namespaces"); err != nil && reason != "" {
		t.Skipf("there are no namespaces here: %s", reason)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return s
}

// A program that has ended before anyone asks for its namespaces was in them all the same.
func TestAShortProgramWasThere(t *testing.T) {
	s := privately(t)
	for range 3 {
		var out bytes.Buffer
		entry, err := Join(plan("echo here", &out), s)
		if err != nil {
			t.Fatal(err)
		}
		child, err := process.Start(entry.Plan)
		if err != nil {
			t.Fatal(err)
		}
		ending := child.Wait()
		if _, err := entry.Spaces(child); err != nil || ending.ExitCode != 0 || out.String() != "here\n" {
			t.Errorf("%v %+v %q", err, ending, out.String())
		}
	}
	var out bytes.Buffer
	missing := plan("", &out)
	missing.Path = "/nowhere"
	entry, err := Join(missing, s)
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Start(entry.Plan)
	if err != nil {
		t.Fatal(err)
	}
	child.Wait()
	if _, err := entry.Spaces(child); err == nil || err.Error() == errNotMade.Error() {
		t.Errorf("a missing program: %v", err)
	}
}

// A signal that comes before the program does is not lost: the program would run on, though it was asked to end.
func TestASignalBeforeTheProgram(t *testing.T) {
	s := privately(t)
	var out bytes.Buffer
	entry, err := Private{}.Enter(plan("echo ran", &out))
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Start(entry.Plan)
	if err != nil {
		t.Fatal(err)
	}
	made, err := entry.await(child)
	if err != nil {
		t.Fatal(err)
	}
	defer made.Close()
	child.Signal(os.Interrupt)
	entry.run.using(func(control int) { _ = unix.Sendmsg(control, []byte("go"), nil, nil, unix.MSG_NOSIGNAL) })
	if ending := child.Wait(); out.Len() > 0 || ending.ExitCode == 0 && ending.Signal == "" {
		t.Errorf("new namespaces: %+v %q", ending, out.String())
	}
	for after := range 12 { // moments of the way into the fork, whichever they are
		entry, err := Join(plan("exec sleep 30", &out), s)
		if err != nil {
			t.Fatal(err)
		}
		child, err := process.Start(entry.Plan)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(after) * time.Millisecond)
		child.Signal(os.Interrupt)
		if ending := child.Wait(); ending.ExitCode == 0 && ending.Signal == "" {
			t.Errorf("after %d ms: %+v", after, ending)
		}
	}
}

// A connection through a process that was killed is an error. Its descriptor may belong to another file by now.
func TestADialerThatEnded(t *testing.T) {
	d, err := privately(t).Dial("127.0.0.1:3000")
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if conn, err := d.Connect(); err == nil {
		_ = conn.Close()
		t.Error("it has a connection")
	}
}
