//go:build unix

package chat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/emulator"
)

// counts are estimated from texts with the paths of temporary directories.
var counts = regexp.MustCompile(`[0-9.]+k? tokens`)

// TestSeed goes through what seed 2 asks for as a person does: under the name eidolon, with a profile of ~/.eidolon, a
// model that calls tools in its text, typed keys in, and screens of three widths out.
func TestSeed(t *testing.T) {
	t.Parallel()
	const key = "key-of-the-environment"
	for _, columns := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			look := emulator.Xterm(t, columns, 60)
			p := &place{t: t, home: t.TempDir(), work: t.TempDir()}
			server, err := modelserver.Start(writer{
				"I look.\n" + xnlBlock(xnlCall("r1", `SysBuiltIn.read_file({ path: "hello.txt" })`),
					xnlCall("r2", `SysBuiltIn.read_file({ path: "../secret" })`),
					xnlCall("b1", `SysBuiltIn.bash({ command: "sudo ls" })`), xnlCall("n1", `SysBuiltIn.nothing({})`)),
				"Then a list.\n" + xnlBlock(xnlCall("t1", `SysBuiltIn.todo_write({ items: [`+
					`{ id: "1", content: "read", status: "completed", activeForm: "reading" }, `+
					`{ id: "2", content: "write", status: "in_progress", activeForm: "writing" }] })`)),
				"Two of four were refused.",
				xnlBlock(xnlCall("b2", `SysBuiltIn.bash({ command: "printf 'out\n'; printf 'err\n' >&2; exit 3" })`)),
				"It failed.",
				"I have read it.",
				"It is tidy.",
			}, modelserver.Options{Hurry: true, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			p.model = server
			t.Cleanup(func() { _ = server.Close() })
			p.env = []string{
				"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "TERM=xterm-256color",
				"LANG=C.UTF-8", "SILICONFLOW_API_KEY=" + key,
			}
			p.write(filepath.Join(p.home, ".eidolon/config.json"),
				fmt.Sprintf(`{"models":{"active":"missing","profiles":[`+
					`{"name":"one","provider":"siliconflow","model":"m-1","apiKey":"a key that is not accepted","apiKind":"openai",`+
					`"baseUrl":"%[1]s/v1"},{"name":"two","provider":"minimax","model":"m-2","apiKind":"anthropic","apiKey":"k",`+
					`"baseUrl":"%[1]s"}]}}`, server.URL()))
			p.write(filepath.Join(p.home, ".eidolon/agents/reviewer.md"), "You review.\n")
			p.write(filepath.Join(p.home, ".eidolon/commands/tidy.md"), "Tidy up.\n")
			p.write("hello.txt", "one\ntwo\n")
			cmd := exec.Command(program)
			cmd.Args[0] = "eidolon"
			w := p.startBefore(look, cmd, uint16(columns), 60)
			var k keeper
			k.keep("S9, S10, S11, S21: the profile", w.shows("/help lists", false), "m-1 of")
			w.shows("missing,", false) // the notice, however it is broken
			w.types("look\r")
			k.keep("S1 to S7: calls", w.shows("were refused.", false), "> look")
			w.types("/permissions prompt\r/permissions\r")
			w.shows("mode is prompt", false)
			w.types("run it\r")
			k.keep("S22: a question before a command", w.shows("y yes", true), "> run")
			w.types("yes\r")
			k.keep("S2: both streams and the exit code", w.shows("It failed.", false), "> run")
			w.types("@!echo by hand\r")
			k.keep("S15: a command of the person", w.shows("\nby hand", false), "> @!echo")
			w.types("see @file:he")
			k.keep("S17: completion of a path", w.shows("\n  hello.txt", false), "> see")
			w.types("\t@agent:r")
			k.keep("S18: completion of an agent", w.shows("reviewer", false), "> see")
			w.types("\tdo\r")
			k.keep("S8, S16, S19, S20: file and agent", w.shows("I have read it.", false), "> see")
			w.types("/ti")
			w.shows("tidy", false)
			w.types("\tnow\r")
			k.keep("S23: a command of a file", w.shows("It is tidy.", false), "> /tidy")
			w.types("exit\r")
			if code := w.leaves(); code != 0 {
				t.Errorf("exit %d", code)
			}
			k.keep("the end", w.look.Look(), "> exit")
			emulator.Golden(t, *update, fmt.Sprintf("seed-%d.txt", columns),
				counts.ReplaceAllString(k.b.String(), "N tokens"))
			p.kept(columns)
		})
	}
}

// kept checks what is on the disk after it: S12, S13, S14.
func (p *place) kept(columns int) {
	p.t.Helper()
	for name, wants := range map[string][]string{
		"history.xnl":  {"SysBuiltIn.read_file", "Path escapes workspace", "I have read it."},
		"history.json": {"It is tidy."},
		"todos.json":   {"in_progress"},
		"app.log":      {"provider=siliconflow", "apiKind=openai"},
	} {
		files, err := filepath.Glob(filepath.Join(p.home, ".eidolon/projects/*/sessions/*", name))
		if err != nil || len(files) != 1 {
			p.t.Errorf("%d: %s: %q %v", columns, name, files, err)
			continue
		}
		data, err := os.ReadFile(files[0])
		for _, want := range wants {
			if err != nil || !strings.Contains(string(data), want) {
				p.t.Errorf("%d: %s has no %s: %v\n%s", columns, name, want, err, data)
			}
		}
	}
	last := p.requests()[len(p.requests())-1]
	for _, want := range []string{"Tidy up.", "You review.", "hello.txt"} {
		if !strings.Contains(fmt.Sprint(last.Messages), want) {
			p.t.Errorf("%d: the model was not told %q", columns, want)
		}
	}
}
