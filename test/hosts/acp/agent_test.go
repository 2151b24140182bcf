package acp

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// behind makes a person's file of agents with one that is called with these words.
func (p place) behind(t *testing.T, command string, args ...string) {
	t.Helper()
	p.target(t, "[targets.cli.modes.acp]\n", command, args...)
}

// target makes that file with these lines above the words.
func (p place) target(t *testing.T, lines, command string, args ...string) {
	t.Helper()
	list, _ := json.Marshal(args)
	dir := filepath.Join(p.home, ".config", "omniagent", "agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[[targets]]\nid = \"other\"\n\n%scommand = %q\nargs = %s\n", lines, command, list)
	if err := os.WriteFile(filepath.Join(dir, "omniagent.config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := p.hand(t, "agents", "allow", "other"); h.Error != nil {
		t.Fatal(h.Error.Message)
	}
}

const absent = "no file" // as place.read says

// handed is what omniagent says of a task that it hands to that agent.
type handed struct {
	Data struct {
		ID        string `json:"run_id"`
		Reason    string
		Text      struct{ Value string }
		Questions []struct{ ID string } `json:"questions"`
	}
	Error *struct{ Message string }
}

func (p place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = p.work, p.env
	return cmd
}

func (p place) hand(t *testing.T, args ...string) (h handed) {
	t.Helper()
	out, _ := p.command(append(args, "--output", "json")...).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &h); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return h
}

// said returns every byte that the agent of a run wrote.
func (p place) said(t *testing.T, run string) string {
	t.Helper()
	cmd := p.command("runs", "logs", run, "--raw", "stdout")
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v", run, err)
	}
	return string(out)
}

// TestAgentsOfOthers: agents on the protocol's own library, of both versions, behind one entry in a person's file.
func TestAgentsOfOthers(t *testing.T) {
	t.Parallel()
	dir := hosts(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	node, err := filepath.Abs(filepath.Join(dir, ".bin", "node"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, agent, task string
		flags             []string
		answers           []string // words behind omniagent answer RUN
		reason, file      string
	}{
		{"approved", "agent1.mjs", "write", nil, []string{"--approve"}, "done", "hello\n"},
		{"rejected", "agent1.mjs", "write", nil, []string{"--reject"}, "denied", absent},
		{"edits", "agent1.mjs", "write", []string{"--auto-edit"}, nil, "done", "hello\n"},
		{"a form", "agent1.mjs", "form", []string{"--yolo"}, []string{"red"}, "done", "#f00"},
		{"version 2", "agent2.mjs", "write", nil, []string{"--approve"}, "done", "hello\n"},
		{"version 2, rejected", "agent2.mjs", "write", nil, []string{"--reject"}, "denied", absent},
		{"no such mode", "agent1.mjs", "write", []string{"--approval", "plan"}, nil, "unsupported", absent},
		{"not kept", "agent1.mjs", "write", []string{"--approval", "deny"}, nil, "unsupported", absent},
		{"no protocol", "lib.mjs", "write", nil, nil, "", absent},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, `[]`)
			p.behind(t, node, filepath.Join(here, c.agent), dir)
			h := p.hand(t, append([]string{"run", "--agent", "other", "-p", c.task}, c.flags...)...)
			for _, answer := range c.answers {
				if h.Data.Reason != "question" || p.read("made.txt") != absent {
					t.Fatalf("nothing was asked: %+v", h)
				}
				h = p.hand(t, "answer", h.Data.ID, answer)
			}
			if c.reason != "" && h.Data.Reason != c.reason || p.read("made.txt") != c.file || c.reason == "" &&
				h.Error == nil {
				t.Errorf("%+v %+v %q", h.Data, h.Error, p.read("made.txt"))
			}
			if c.reason == "denied" && h.Data.Text.Value != "I may not." {
				t.Errorf("%+v", h.Data)
			}
		})
	}
}

// TestOurselvesBehindIt: our own agent side behind our own client side, which agree on version 2.
func TestOurselvesBehindIt(t *testing.T) {
	t.Parallel()
	p := newPlace(t, work)
	p.behind(t, program, p.args...)
	h := p.hand(t, "run", "--agent", "other", "-p", "work", "--yolo")
	if h.Data.Reason != "done" || h.Data.Text.Value != "Done." || p.read("b.txt") != "one\n" {
		t.Errorf("%+v %+v", h.Data, h.Error)
	}
}

// TestAcpxBehindIt: a run hands its task to acpx, a client of the protocol that offers no agent's side, and acpx drives
// our own agent with it.
func TestAcpxBehindIt(t *testing.T) {
	t.Parallel()
	dir := hosts(t)
	p := newPlace(t, work)
	node, err := filepath.Abs(filepath.Join(dir, ".bin", "node"))
	if err != nil {
		t.Fatal(err)
	}
	p.target(t, "[targets.cli.prompt]\ntype = \"stdin\"\n[targets.cli.flags.approval.values]\nyolo = []\n"+
		"[targets.cli.modes.interactive]\ncommand = \"true\"\nargs = []\n[targets.cli.modes.oneShot]\n",
		node, filepath.Join(dir, "acpx", "dist", "cli.js"), "--agent", program+" "+strings.Join(p.args, " "),
		"--approve-all", "--format", "quiet", "exec", "--file", "-")
	settings := filepath.Join(p.home, ".config", "omniagent", "config.toml")
	if err := os.WriteFile(settings, []byte("[agents]\nenv = [\"ANTHROPIC_API_KEY\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := p.hand(t, "run", "--agent", "other", "-p", "work", "--yolo")
	if h.Data.Reason != "done" || strings.TrimSpace(h.Data.Text.Value) != "Done." || p.read("b.txt") != "one\n" {
		t.Errorf("%+v %+v %s", h.Data, h.Error, p.said(t, h.Data.ID))
	}
}
