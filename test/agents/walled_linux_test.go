package agents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWalled: what the tools of each agent reach behind our walls, and what they reach without.
func TestWalled(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		for _, flag := range []string{"--walls=false", "--walls"} {
			t.Run(s.driver.Name()+" "+flag, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, s.driver.Name())
				secret := b.put(filepath.Join(b.home, ".ssh/id"), "a-secret")
				outside := filepath.Join(b.base, "outside")
				o := b.run(`[{"shell":"cat `+secret+` > found; echo x > `+outside+`; echo y > inside; true"},`+
					`{"say":"I am done."}]`, "--yolo", "--sandbox", "off", flag)
				inside, _ := os.ReadFile(filepath.Join(b.work, "inside"))
				found, _ := os.ReadFile(filepath.Join(b.work, "found"))
				_, err := os.Stat(outside)
				if bare := flag != "--walls"; o.code != 0 || string(inside) != "y\n" ||
					(string(found) == "a-secret") != bare || (err == nil) != bare || (o.report.Walls == nil) != bare {
					t.Errorf("inside %q, found %q, outside: %v: %+v", inside, found, err, o)
				}
			})
		}
	}
}

// TestWalledFromItsRepository: what a repository brings does not exist for an agent behind walls. The control is the
// same agent without.
func TestWalledFromItsRepository(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, name := range []string{"claude", "opencode"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, name)
			mark := filepath.Join(b.work, "mark")
			b.put(".claude/settings.json", `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch `+
				mark+`"}]}]}}`)
			b.put(".opencode/plugin/x.js", `import fs from "fs"; fs.writeFileSync("`+mark+
				`", "x"); export const P = async () => ({}); export default {id: "p", setup() {}}`)
			for _, flag := range []string{"--walls=false", "--walls"} {
				o := b.run(`[{"say":"I am done."}]`, "--yolo", "--sandbox", "off", flag)
				if ran := b.took(mark); o.code != 0 || ran != (flag != "--walls") {
					t.Errorf("%s: it ran: %v: %+v", flag, ran, o)
				}
			}
		})
	}
}

// TestWalledByMode: a program that runs in every mode, the user's own hook, can write the workspace only while the mode
// lets the agent do that, from one message to the next.
func TestWalledByMode(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	b.put(filepath.Join(b.home, ".claude/settings.json"), `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command",`+
		`"command":"touch `+b.home+`/.claude/ran; touch `+filepath.Join(b.work, "mark")+` || true"}]}]}}`)
	d := b.drives(`[{"say":"one"},{"say":"two"},{"say":"three"},{"say":"four"}]`, "--permission-mode", "plan")
	for _, mode := range []string{"plan", "default", "plan", "auto-edit"} {
		d.say(`{"type":"set_permission_mode","mode":"` + mode + `"}`)
		d.say(`{"type":"user","content":"go"}`)
		r := d.until("result")
		if ran, wrote := b.took(filepath.Join(b.home, ".claude/ran")), b.took("mark"); r["is_error"] != false || !ran ||
			wrote != (mode != "plan") {
			t.Errorf("%s: it ran: %v, it wrote: %v: %v\n%s", mode, ran, wrote, d.heard, d.errors.String())
		}
	}
	d.ends()
}

// TestWalledOwnSandbox: the sandbox of Claude Code holds its commands behind our walls too, and leaves nothing.
func TestWalledOwnSandbox(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	outside := filepath.Join(b.home, ".claude/outside")
	o := b.run(`[{"shell":"echo y > inside; echo x > `+outside+`; true"},{"say":"I am done."}]`,
		"--auto-edit", "--sandbox", "workspace-write", "--walls")
	if o.code != 0 || !b.took("inside") || b.took(outside) || b.took(".mcp.json") || o.report.Walls == nil {
		t.Errorf("%+v", o)
	}
}

// TestWalledCaches: what Copilot compiles of itself outlives its temporary directory, so its next start is as fast as
// without walls.
func TestWalledCaches(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "copilot")
	compiled := func() (files []string) {
		t.Helper()
		o := b.run(`[{"say":"I am done."}]`, "--yolo", "--sandbox", "off", "--walls")
		if o.code != 0 || o.report.Walls == nil {
			t.Fatalf("%+v", o)
		}
		files, _ = filepath.Glob(filepath.Join(b.home, ".local/state/omniagent/walls/home-*/*/v*/*"))
		return files
	}
	first := compiled()
	if second := compiled(); len(first) == 0 || !slices.Equal(first, second) {
		t.Errorf("%d compiled files, then %d", len(first), len(second))
	}
}

// TestWalledSettings: an agent finds and changes its own settings, also where a repository's of that name are hidden.
func TestWalledSettings(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	b.claudeLogin(`[{"say":"done"}]`)
	before, _ := os.ReadFile(filepath.Join(b.home, ".claude.json"))
	o := b.start(nil, "-p", "hello there", "--walls")
	text, _ := os.ReadFile(filepath.Join(b.home, ".claude.json"))
	if o.code != 0 || o.report.Walls == nil || bytes.Equal(text, before) || strings.Contains(o.stderr, ".claude.json") {
		t.Errorf("%+v\n%s", o, text)
	}
}

// TestWalledLogin: where a login fails, the message names what walls keep out of reach.
func TestWalledLogin(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, sandbox := range []string{"workspace-write", "off"} {
		t.Run(sandbox, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "codex")
			d := b.drives(`[{"error":401}]`, "--sandbox", sandbox)
			d.say(`{"type":"user","content":"go"}`)
			r := d.until("result")
			if told := fmt.Sprint(r, d.heard); strings.Contains(told, "keyring") != (sandbox != "off") {
				t.Errorf("%s\n%s", told, d.errors.String())
			}
		})
	}
}

// TestWalledSaysWhatIsNotKept: each agent's command writes to /tmp and to the home directory, and is told that this
// worked. The end of the turn lists it, and nothing of the agent's own.
func TestWalledSaysWhatIsNotKept(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		t.Run(s.driver.Name(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, s.driver.Name())
			notes := filepath.Join(b.home, "notes.txt")
			d := b.drives(`[{"shell":"echo x > /tmp/report.md; mkdir /tmp/d; echo x > /tmp/d/e; echo x > `+notes+
				`; echo y > inside"},{"say":"one"},{"say":"two"}]`, "--permission-mode", "yolo")
			for _, want := range [][]any{{"/tmp/d/", "/tmp/report.md", notes}, nil} {
				d.say(`{"type":"user","content":"go"}`)
				r := d.until("result")
				if got, _ := r["not_kept"].([]any); r["is_error"] != false || !slices.Equal(got, want) {
					t.Errorf("%v, not %v: %v", got, want, r)
				}
			}
			d.ends()
			if !b.took("inside") || b.took(notes) {
				t.Error("what was listed was kept, or the workspace was not")
			}
			if want := "not kept: /tmp/d/, /tmp/report.md, " + notes; !strings.Contains(d.errors.String(), want) {
				t.Errorf("standard error lacks %q: %s", want, d.errors.String())
			}
		})
	}
}
