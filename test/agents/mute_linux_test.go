package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
)

// TestMuteModel: of a model that says nothing at all a clock makes an end, a person, or the death of the host; none of
// it is taken for a question, and nothing is left.
func TestMuteModel(t *testing.T) {
	needAgents(t)
	t.Parallel()
	type mute struct{ agent, how string }
	var all []mute
	ways := map[string]func(*bench){
		"a clock": (*bench).mutelyTimed, "a person": (*bench).mutelyInterrupted,
		"kill -9": (*bench).mutelyKilled,
	}
	for _, how := range []string{"a clock", "a person", "kill -9"} {
		for _, s := range subjects() {
			all = append(all, mute{s.driver.Name(), how})
		}
	}
	for _, c := range hermetic.InTurn(t, all, 4) {
		t.Run(c.agent+"/"+c.how, func(t *testing.T) {
			t.Parallel()
			ways[c.how](newBench(t, c.agent))
		})
	}
}

// mutelyTimed ends a run by its clock.
func (b *bench) mutelyTimed() {
	r := b.hands(`[{"stall":"headers"}]`, "--yolo", "--timeout", "15s")
	if r.code != 10 || r.Data.Status != "timed_out" || r.Data.Reason != "max_duration" {
		b.t.Errorf("%s", r)
	}
	b.gone()
}

// mutelyInterrupted interrupts a turn in the silence, as a person does.
func (b *bench) mutelyInterrupted() {
	d := b.asked()
	d.say(`{"type":"interrupt"}`)
	if r := d.until("result"); r["is_error"] != true {
		b.t.Errorf("%v\n%s", r, d.errors.String())
	}
	if code := d.ends(); code != 0 {
		b.t.Errorf("exit code %d: %s", code, d.errors.String())
	}
	b.gone()
}

// mutelyKilled kills the host in the silence. The conversation goes on when it is opened again.
func (b *bench) mutelyKilled() {
	d := b.asked()
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	b.gone()
	list := exec.Command(program, "session", "list", "--output", "json")
	list.Dir, list.Env = b.work, b.wired("")
	out, err := list.Output()
	var answer struct {
		Data struct{ Sessions []struct{ ID string } }
	}
	if err != nil || json.Unmarshal(out, &answer) != nil || len(answer.Data.Sessions) != 1 {
		b.t.Fatalf("%v: %s", err, out)
	}
	again := b.drives(`[{"say":"I go on."}]`, "--resume", answer.Data.Sessions[0].ID)
	again.say(`{"type":"user","content":"go on"}`)
	if r := again.until("result"); r["is_error"] != false || !strings.Contains(again.errors.String(), "died") {
		b.t.Errorf("%v\n%s", r, again.errors.String())
	}
	again.ends()
}

// muteModel answers no request. It says when the first one arrives.
type muteModel struct{ asked chan struct{} }

func (m muteModel) Answer(ctx context.Context, _ *modelserver.Request, _ modelserver.Writer) error {
	select {
	case m.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// asked begins a turn of start, and returns when its model has been asked.
func (b *bench) asked() *driven {
	b.t.Helper()
	m := muteModel{make(chan struct{}, 1)}
	server, err := modelserver.Start(m, modelserver.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = server.Close() })
	d := b.runs(server, "start", "--agent", b.agent, "--input-format", "stream-json")
	d.say(`{"type":"user","content":"go"}`)
	select {
	case <-m.asked:
	case <-time.After(patience):
		b.t.Fatal("the model is never asked")
	}
	return d
}

// gone waits until none of the processes that were started here is left.
func (b *bench) gone() {
	b.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for left := b.left(); len(left) > 0; left = b.left() {
		for pid, line := range left {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue // it has ended
			}
			wait := max(0, time.Until(deadline).Milliseconds())
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait))
			_ = unix.Close(fd)
			if n == 0 {
				b.t.Fatalf("left alive: %d %s", pid, line)
			}
		}
	}
}

// left returns the processes with this home, and their command lines.
func (b *bench) left() map[int]string {
	left := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte("HOME="+b.home+"\x00")) {
			line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			left[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return left
}
