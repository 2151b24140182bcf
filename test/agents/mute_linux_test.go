package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"omniagent/internal/hermetic"
	"omniagent/internal/modelserver"
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

const mute = `[{"stall":"headers"}]`

// mutelyTimed ends a run by its clock.
func (b *bench) mutelyTimed() {
	r := b.hands(mute, "--yolo", "--timeout", "15s")
	if r.code != 10 || r.Data.Status != "timed_out" || r.Data.Reason != "max_duration" {
		b.t.Errorf("%s", r)
	}
	b.gone()
}

// mutelyInterrupted interrupts a turn in the silence, as a person does.
func (b *bench) mutelyInterrupted() {
	m := scripted(b.t, mute)
	d := b.runs(m, "start", "--agent", b.agent, "--input-format", "stream-json")
	d.say(`{"type":"user","content":"go"}`)
	b.reaches(m)
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
	m := scripted(b.t, mute)
	d := b.runs(m, "start", "--agent", b.agent, "--input-format", "stream-json")
	d.say(`{"type":"user","content":"go"}`)
	b.reaches(m)
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

// reaches waits until the model was asked.
func (b *bench) reaches(m *modelserver.Server) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); len(m.Requests()) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatal("the model is never asked")
		}
	}
}

// gone waits until nothing is left that was started here.
func (b *bench) gone() {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		left := b.left()
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("left alive: %s", left)
		}
	}
}

// left lists the processes with this home.
func (b *bench) left() string {
	var left strings.Builder
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte("HOME="+b.home+"\x00")) {
			line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			left.WriteString(e.Name() + " " + strings.ReplaceAll(string(line), "\x00", " ") + "\n")
		}
	}
	return left.String()
}
