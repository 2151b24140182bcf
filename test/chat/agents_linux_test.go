package chat

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
)

// directory is the variable that names where the agents' programs are.
const directory = "OMNIAGENT_TEST_AGENTS"

// parts are several scripts: the one whose word the person's last message has is played: agents put
// it into texts of their own.
type parts map[string]*modelserver.Script

// Answer implements modelserver.Backend.
func (p parts) Answer(ctx context.Context, r *modelserver.Request, w modelserver.Writer) error {
	at, found := -1, p[""]
	for i, m := range r.Messages {
		for _, b := range m.Blocks {
			for word, script := range p {
				if word != "" && m.Role == modelserver.User && strings.Contains(b.Text, word) && i >= at {
					at, found = i, script
				}
			}
		}
	}
	return found.Answer(ctx, r, w)
}

// agentsPlace is a place for an agent of others, which plays what a word of the message says.
func agentsPlace(t *testing.T, agent string, scripts map[string]string) *place {
	t.Helper()
	bin := os.Getenv(directory)
	if bin == "" {
		t.Skip("the agents are not here: " + directory + "=$(scripts/agents) go test ./test/chat")
	}
	backend := parts{}
	for word, script := range scripts {
		backend[word] = parsed(t, script)
	}
	// Not in the system's temporary directory, where codex lets commands write and makes no home.
	base, err := os.MkdirTemp("/var/tmp", "omniagent-chat-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 { // what was killed may still be writing
			if os.RemoveAll(base) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	p := &place{t: t, home: filepath.Join(base, "home"), work: filepath.Join(base, "work")}
	for _, dir := range []string{p.home, filepath.Join(p.work, ".git"), filepath.Join(base, "tmp")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	server, err := modelserver.Start(backend, modelserver.Options{Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	p.model = server
	t.Cleanup(func() { _ = server.Close() })
	more, err := hermetic.Wire(agent, p.home, p.work, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	p.env = append([]string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + p.home, "TERM=xterm-256color", "LANG=C.UTF-8",
		"IS_SANDBOX=1",
		"TMPDIR=" + filepath.Join(base, "tmp"), "SHELL=/bin/bash",
		"COPILOT_PKG_CACHE_HOME=" + filepath.Join(bin, "..", "..", "copilot-programs"), // 235 MB that it unpacks
		"OMNIAGENT_NATIVE_PROVIDER=anthropic", "OMNIAGENT_NATIVE_MODEL=test-model", "OMNIAGENT_NATIVE_API_BASE=" +
			server.URL(),
	}, more...)
	p.args = []string{"--agent", agent, "--approval", "prompt"}
	return p
}

// TestAgents: each agent of others in the same window, with the same keys.
func TestAgents(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "copilot", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			p := agentsPlace(t, agent, map[string]string{
				"":           `[{"say":"heard nothing"}]`,
				"ZEBRA":      `[{"say":"I know **the animal**."}]`,
				"run it":     `[{"shell":"python3 -c 'open(\"made\",\"w\")'"},{"say":"It was made."}]`,
				"and wait":   `[{"say":"I begin, and then there is nothing more.","stall":"middle"}]`,
				"once again": `[{"say":"I go on."}]`,
				"hand over":  `[{"say":"I took over."}]`,
				"ask me": `[{"call":{"name":"AskUserQuestion","input":{"questions":[{"question":"Which colour?",` +
					`"header":"Colour","multiSelect":false,"options":[{"label":"red","description":"warm"},` +
					`{"label":"blue","description":"cold"}]}]}}},{"say":"I heard ${result}"}]`,
			})
			w := p.open()
			w.await("/help")
			w.enters("remember ZEBRA")
			w.await("I know the animal.")
			w.enters("please run it")
			w.await("python3 -c")
			w.await("y yes")
			w.enters("y")
			w.await("It was made.")
			if _, err := os.Stat(filepath.Join(p.work, "made")); err != nil {
				t.Error(err)
			}
			w.enters("/undo")
			w.await("Took back the turn")
			if _, err := os.Stat(filepath.Join(p.work, "made")); err == nil {
				t.Error("what the turn made is still there")
			}
			if agent == "claude" {
				w.enters("ask me")
				w.await("2. blue")
				w.await("type a number or your own answer")
				w.enters("2")
				w.await(`"Which colour?"="blue"`)
			}
			w.enters("begin and wait")
			w.await("I begin")
			w.types("\x03")
			w.await("interrupted")
			w.quits()
			w.await("Go on with: omniagent chat --resume ")

			again := p.sized(80, 24, "chat", "--continue")
			again.await("> remember ZEBRA")
			again.await("I know the animal.")
			again.await("It was made.")
			again.enters("once again")
			again.await("I go on.")
			again.enters("/agent native")
			again.await("it gets this with your next message")
			again.await("remember ZEBRA")
			again.enters("hand over")
			again.await("I took over.")
			again.quits()
		})
	}
}

// TestChangedInAFork: where /undo does nothing, what brings the changes home is told in its place.
func TestChangedInAFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[]`)
	script := filepath.Join(p.home, "script.json")
	data := `[{"write":{"path":"one","content":"x"}},{"say":"Said."}]`
	if err := os.WriteFile(script, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	w := p.sized(120, 24, "chat", "--fork", "--rehearse", "--script", script)
	w.await("/help lists the commands")
	w.enters("first")
	w.await("Said.")
	w.await("changed without asking; only the fork has it: omniagent fork apply ")
	w.enters("/quit")
	for _, what := range []string{"omniagent fork diff ", " fork apply ", " fork delete "} {
		w.await(what)
	}
	if code := w.leaves(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestRehearsedInXNL: a script's calls are made by that protocol, too.
func TestRehearsedInXNL(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[]`)
	script := p.write("script.json", `[{"write":{"path":"one","content":"x"}},{"shell":"cat one one"},`+
		`{"say":"It said ${result}"}]`)
	w := p.sized(80, 24, "chat", "--tool-protocol", "xnl", "--yolo", "--rehearse", "--script", script)
	w.await("/help lists the commands")
	w.enters("first")
	w.await("It said xx")
	w.quits()
	if shown := w.text(); strings.Contains(shown, "unquote") {
		t.Error(shown)
	}
	if data, err := os.ReadFile(filepath.Join(p.work, "one")); string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
}
