package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// offered waits until the client knows the commands of a session that was opened.
func (c *client) offered() object {
	c.t.Helper()
	m, _ := c.await(0, func(m object) bool {
		return dig(m, "params", "update", "sessionUpdate") == "available_commands_update"
	})
	return m
}

// TestUndo: the client is offered /undo and /redo, which take back and restore what a turn of that session did. The
// agent does not hear of them.
func TestUndo(t *testing.T) {
	t.Parallel()
	for version, name := range map[int]string{1: "version 1", 2: "version 2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, `[{"write":{"path":"a.txt","content":"new\n"}},{"say":"heard: ${input}"}]`)
			p.write(t, "a.txt", "old\n")
			c := p.launch(t, "--yolo")
			id := c.begin(version, p.work, object{})
			offered := c.offered()
			if dig(offered, "params", "update", "availableCommands", 0, "name") != "undo" ||
				dig(offered, "params", "update", "availableCommands", 1, "name") != "redo" {
				t.Error(offered)
			}
			idle := func(from int) int {
				if version == 1 {
					return from
				}
				_, at := c.await(from, func(m object) bool { return dig(m, "params", "update", "state") == "idle" })
				return at + 1
			}
			at := 0
			for _, step := range []struct{ message, says, left string }{
				{"write it", "heard: write it", "new\n"},
				{"/undo", "Took back the turn of native from ", "old\n"},
				{"/undo", "Nothing was taken back: there is no turn to take back of session " + id, "old\n"},
				{" /redo\n", "Took back the undo of native from ", "new\n"},
				{"go on", "heard: go on", "new\n"},
			} {
				before := len(c.said("agent_message_chunk"))
				result := c.prompt(id, step.message)
				if version == 1 && result["stopReason"] != "end_turn" {
					t.Errorf("%q: %v", step.message, result)
				}
				at = idle(at)
				text, err := os.ReadFile(filepath.Join(p.work, "a.txt"))
				said := c.said("agent_message_chunk")[before:]
				if err != nil || string(text) != step.left || !strings.HasPrefix(said, step.says) {
					t.Errorf("%q: %q is left (%v), and it said %q", step.message, text, err, said)
				}
			}
		})
	}
}

// TestUndoDuringATurn: while the agent works, nothing is taken back, and the client is told why.
func TestUndoDuringATurn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"echo begun > begun; until test -e go; do sleep 0.05; done"},{"say":"done"}]`)
	c := p.launch(t, "--yolo")
	id := c.begin(1, p.work, object{})
	turn := c.send("session/prompt", object{"sessionId": id, "prompt": text("go")})
	until(t, func() bool { return p.read("begun") == "begun\n" })
	c.prompt(id, "/undo")
	if said := c.said("agent_message_chunk"); !strings.HasPrefix(said, "Nothing was taken back: the agent is at work") {
		t.Error(said)
	}
	if p.read("begun") != "begun\n" {
		t.Error("the file of the turn is gone")
	}
	p.write(t, "go", "")
	c.reply(turn)
	c.prompt(id, "/undo")
	if p.read("begun") != "no file" {
		t.Error("the turn was not taken back")
	}
}

// TestUndoOff: without snapshots there is no command, and the message is the agent's.
func TestUndoOff(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"heard: ${input}"}]`)
	c := p.launch(t, "--undo", "off")
	id := c.begin(1, p.work, object{})
	c.prompt(id, "/undo")
	if said := c.said("agent_message_chunk"); said != "heard: /undo" ||
		len(c.updates("available_commands_update")) > 0 {
		t.Errorf("%q %s", said, c.shown())
	}
}
