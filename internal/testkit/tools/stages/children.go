package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// children are the processes that run, each with a group of its own.
type children struct {
	patience time.Duration // how long what is left of a group has to end by itself

	mu     sync.Mutex
	groups map[int]bool // by the id of the leader, which is the child
}

// run starts a child and waits for it, and for the rest of its group.
func (c *children) run(cmd *exec.Cmd) error {
	ownGroup(cmd)
	c.mu.Lock()
	err := cmd.Start()
	if err == nil {
		c.groups[cmd.Process.Pid] = true
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	err = cmd.Wait()
	c.end(cmd.Process.Pid)
	c.mu.Lock()
	delete(c.groups, cmd.Process.Pid)
	c.mu.Unlock()
	return err
}

// stop passes a signal on to all children and waits for their end. No other child begins: it keeps the lock.
func (c *children) stop(s syscall.Signal) {
	c.mu.Lock()
	for group := range c.groups {
		signalGroup(group, s)
	}
	for group := range c.groups {
		c.end(group)
	}
}

// end waits until a group is gone, and kills what is left of it. It looks again and again, because the system tells
// nobody when a process ends that is not a child. A number is not given to another process as long as its group has
// members.
func (c *children) end(group int) {
	for over := time.Now().Add(c.patience); inGroup(group) && time.Now().Before(over); {
		time.Sleep(20 * time.Millisecond)
	}
	if inGroup(group) {
		signalGroup(group, syscall.SIGKILL)
	}
}

// program is a child that prints where we print. Its standard input is empty.
func (r *runner) program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = r.out, r.out
	return cmd
}

// with sets variables of a child.
func with(cmd *exec.Cmd, variables ...string) *exec.Cmd {
	cmd.Env = append(cmd.Environ(), variables...) // the last one counts
	return cmd
}

// do runs a child and reports whether it succeeded. If it cannot be started, that is said.
func (r *runner) do(cmd *exec.Cmd) bool {
	err := r.children.run(cmd)
	if err != nil && !exited(err) {
		fmt.Fprintf(r.out, "FAIL  %s: %v\n", cmd.Args[0], err)
	}
	return err == nil
}

// output runs a child and returns what it prints on its standard output; with both, on its standard error too.
func (r *runner) output(cmd *exec.Cmd, both bool) ([]byte, error) {
	// A file, because a pipe is open as long as anything holds it that the child has left behind.
	file, err := os.CreateTemp(r.tmp, "output")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd.Stdout = file
	if both {
		cmd.Stderr = file
	}
	err = r.children.run(cmd)
	text, readErr := os.ReadFile(file.Name())
	return text, errors.Join(err, readErr)
}

// line is what a program has printed, without the end of its last line.
func line(text []byte) string { return strings.TrimRight(string(text), "\r\n") }

// succeeds passes if a child succeeds, and shows what it has printed if it does not.
func (r *runner) succeeds(name string, cmd *exec.Cmd) bool {
	text, err := r.output(cmd, true)
	if err != nil {
		return r.fails(name, "", text, err)
	}
	fmt.Fprintf(r.out, "ok    %s\n", name)
	return true
}

// quiet passes if a child succeeds and prints nothing.
func (r *runner) quiet(name string, cmd *exec.Cmd) bool {
	text, err := r.output(cmd, true)
	if err != nil || len(text) > 0 {
		return r.fails(name, fmt.Sprintf(" (exit status %d)", cmd.ProcessState.ExitCode()), text, err)
	}
	fmt.Fprintf(r.out, "ok    %s\n", name)
	return true
}

func (r *runner) fails(name, status string, text []byte, err error) bool {
	fmt.Fprintf(r.out, "FAIL  %s%s\n", name, status)
	indent(r.out, text)
	if err != nil && !exited(err) {
		indent(r.out, []byte(err.Error()))
	}
	return false
}

// exited reports whether an error is no more than the exit status of a child, which has said why.
func exited(err error) bool {
	exit := (*exec.ExitError)(nil)
	return errors.As(err, &exit)
}

// indent prints a text so that no line of it can be taken for one of ours.
func indent(out io.Writer, text []byte) {
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return
	}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		fmt.Fprintf(out, "      %s\n", line)
	}
}

// all reports whether everything passed. Its arguments run one after the other, also after a failure.
func all(passed ...bool) bool {
	for _, p := range passed {
		if !p {
			return false
		}
	}
	return true
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
