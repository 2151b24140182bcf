//go:build unix

package acp

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestSignals end a turn in order, and say so in the exit code.
func TestSignals(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, `[{"shell":"echo begun > begun; sleep 1000"}]`)
			c := p.launch(t, "--permission-mode", "yolo")
			id := c.begin(1, p.work, nil)
			turn := c.send("session/prompt", object{"sessionId": id, "prompt": text("go")})
			until(t, func() bool { return p.read("begun") != "no file" })
			if err := c.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if got := c.wait(); got != code {
				t.Errorf("exit %d: %s", got, c.stderr.String())
			}
			if got := c.reply(turn); dig(got, "result", "stopReason") != "cancelled" {
				t.Error(got)
			}
			if left := sleepers(t, p.work); len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
		})
	}
}

// TestDoesNotRead: a client that does not read costs no memory, and a signal is heard all the same.
func TestDoesNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	cmd := exec.Command(program, p.args...)
	cmd.Env, cmd.Dir = p.env, p.home
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe() // never read
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan struct{})
	go func() { // until nothing more is taken
		defer close(wrote)
		w := bufio.NewWriter(in)
		for {
			if _, err := w.WriteString(strings.Repeat("garbage\n", 1000)); err != nil {
				return
			}
		}
	}()
	time.Sleep(300 * time.Millisecond) // both pipes are full long before
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var state *os.ProcessState
	go func() { state, _ = cmd.Process.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(hermetic.Patience):
		_ = cmd.Process.Kill()
		<-ended
		t.Error("the signal is not heard")
	}
	<-wrote
	if most := peak(state.SysUsage()); most > 200<<20 {
		t.Errorf("%d MB", most>>20)
	}
	_, _ = io.Copy(io.Discard, out)
}

// TestOutputGone: a client that reads no more and is gone ends the turn.
func TestOutputGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"echo begun > begun; sleep 1000"}]`)
	cmd := exec.Command(program, append(p.args, "--permission-mode", "yolo")...)
	cmd.Env, cmd.Dir = p.env, p.home
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"`+p.work+
		`","mcpServers":[]}}`+"\n")
	_, _ = lines.ReadString('\n')
	begun, _ := lines.ReadString('\n')
	id := strings.Split(strings.SplitAfter(begun, `"sessionId":"`)[1], `"`)[0]
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"`+id+
		`","prompt":[{"type":"text","text":"go"}]}}`+"\n")
	until(t, func() bool { return p.read("begun") != "no file" })
	_ = out.Close()
	_, _ = io.WriteString(in, "garbage\n") // whose error cannot be written
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(hermetic.Patience):
		_ = cmd.Process.Kill()
		t.Fatal("it does not end")
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit %d", code)
	}
	if left := sleepers(t, p.work); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}
