package agents

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/testkit/hermetic"
)

// paces are models that are slow. Other tests have one that answers at once, which no real one does.
func paces() map[string]string {
	return map[string]string{
		"the first byte after 10 s":     `{"first":"10s"}`,
		"10 s of silence in mid-answer": `{"after":"10s"}`,
		"a piece a second":              `{"piece":"1s"}`,
	}
}

// slowly is a script with one answer at a pace.
func slowly(pace string) string {
	const words = "The answer is forty two, and zebras agree with that, " + slowAnswer + "."
	return `{"slow":` + pace + `,"steps":[{"say":"` + words + `"}]}`
}

const slowAnswer = "all of them in a row"

// TestSlowModel has one turn with each agent through each host, on a slow model: it is neither asked about nor given
// up, and on a terminal the clock moves.
func TestSlowModel(t *testing.T) {
	needAgents(t)
	t.Parallel()
	type slow struct{ agent, host, pace string }
	var all []slow
	for pace := range slices.Values(slices.Sorted(maps.Keys(paces()))) {
		for host := range slices.Values(slices.Sorted(maps.Keys(slowHosts()))) {
			for _, s := range subjects() {
				all = append(all, slow{s.driver.Name(), host, pace})
			}
		}
	}
	for _, c := range hermetic.InTurn(t, all, 8) {
		t.Run(c.agent+"/"+c.host+"/"+c.pace, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.agent)
			b.allowed()
			began := time.Now()
			slowHosts()[c.host](b, slowly(paces()[c.pace]))
			t.Logf("it took %v", time.Since(began).Round(time.Second))
		})
	}
}

// slowHosts are the ways to have a turn, on that script.
func slowHosts() map[string]func(b *bench, script string) {
	hosts := map[string]func(b *bench, script string){
		"start": func(b *bench, script string) {
			d := b.drives(script)
			d.say(`{"type":"user","message":{"role":"user","content":"go"}}`)
			result := d.until("result")
			d.ends()
			b.answered(fmt.Sprint(result["result"]), fmt.Sprint(d.heard))
		},
		"acp": func(b *bench, script string) {
			e := &editor{driven: b.runs(scripted(b.t, script), "acp", "--agent", b.agent)}
			e.greet()
			place := map[string]any{"cwd": b.work, "mcpServers": []any{}}
			session, _ := e.call("session/new", place)["sessionId"].(string)
			end := e.prompt(session, "go")
			e.ends()
			if end != "end_turn" {
				b.t.Errorf("the turn ended with %s", end)
			}
			b.answered(e.said.String(), e.errors.String())
		},
		"mcp": func(b *bench, script string) {
			d := b.runs(scripted(b.t, script), "mcp")
			d.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
				`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
			d.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			d.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_agent",`+
				`"arguments":{"agent":%q,"prompt":"go"}}}`, b.agent))
			answer := d.untilOne("answer", func(l map[string]any) bool { return l["id"] == float64(2) })
			d.ends()
			b.answered(fmt.Sprint(answer["result"]), fmt.Sprint(answer))
		},
		"review": func(b *bench, script string) {
			b.commits()
			cmd := exec.Command(program, "review", "--agent", b.agent, "--output", "json")
			cmd.Dir, cmd.Env = b.work, b.wired(scripted(b.t, script).URL())
			out, _ := cmd.CombinedOutput()
			// It answers with no finding in the form that a review asks for, which is told, and nothing else.
			if strings.Contains(string(out), `"NEEDS_INPUT"`) || strings.Contains(string(out), `"STALLED"`) ||
				strings.Contains(string(out), `"TIMEOUT"`) {
				b.t.Errorf("%d %s", cmd.ProcessState.ExitCode(), out)
			}
		},
		"chat": func(b *bench, script string) { b.watches(script) },
	}
	for _, mode := range []string{"yolo", "auto-edit", "read-only"} {
		hosts["run --"+mode] = func(b *bench, script string) {
			r := b.hands(script, "--"+mode)
			if r.code != 0 || r.Data.Status != "succeeded" || r.Data.Attempts != 1 {
				b.t.Errorf("%s", r)
			}
			b.answered(r.Data.Text.Value, r.String())
		}
	}
	return hosts
}

// answered looks for the answer.
func (b *bench) answered(answer, all string) {
	b.t.Helper()
	if !strings.Contains(answer, slowAnswer) {
		b.t.Errorf("the answer is %.500q\n%.3000s", answer, all)
	}
}

// watches has a turn on a terminal, and looks at the clock.
func (b *bench) watches(script string) {
	b.t.Helper()
	// the time of a turn, as the screen paints it: only what changes in a row
	clock := regexp.MustCompile(`\x1b\[2m (\d+)(?:s|\x1b)`)
	cmd := exec.Command(program, "chat", "--agent", b.agent)
	cmd.Dir, cmd.Env = b.work, b.wired(scripted(b.t, script).URL())
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 160})
	if err != nil {
		b.t.Fatal(err)
	}
	over := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer over.Stop()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = terminal.Close()
	}()
	var seen strings.Builder
	seconds, sent := map[string]bool{}, false
	for buffer := make([]byte, 64<<10); !strings.Contains(seen.String(), "1 turn"); {
		n, err := terminal.Read(buffer)
		if err != nil {
			b.t.Fatalf("%v: %s", err, seen.String())
		}
		seen.Write(buffer[:n])
		switch text := seen.String(); {
		case !sent && strings.Contains(text, "/help"):
			sent = true
			_, err = terminal.WriteString("go\r")
		case sent && strings.Contains(text, slowAnswer):
			_, err = terminal.WriteString("\x04")
		}
		if err != nil {
			b.t.Fatal(err)
		}
		for _, at := range clock.FindAllStringSubmatch(string(buffer[:n]), -1) {
			seconds[at[1]] = true
		}
	}
	if len(seconds) < 5 {
		b.t.Errorf("the clock showed only %v\n%q", slices.Sorted(maps.Keys(seconds)), seen.String())
	}
}

// commits makes a commit, and a change after it.
func (b *bench) commits() {
	b.t.Helper()
	sh := exec.Command("/bin/sh", "-ec", `echo one >a.txt; git add -A
		git -c user.name=a -c user.email=a@b commit -qm one; echo TWO >>a.txt`)
	sh.Dir, sh.Env = b.work, b.environ()
	if out, err := sh.CombinedOutput(); err != nil {
		b.t.Fatalf("%v %s", err, out)
	}
}
