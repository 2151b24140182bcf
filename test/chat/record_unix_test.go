//go:build unix

package chat

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/emulator"
)

// writer says one text after the other, each in answer to one request of the conversation.
type writer []string

// Answer implements modelserver.Backend.
func (s writer) Answer(_ context.Context, r *modelserver.Request, w modelserver.Writer) error {
	n := 0
	for _, m := range r.Messages {
		if m.Role == modelserver.Assistant {
			n++
		}
	}
	return w.Text(s[min(n, len(s)-1)])
}

// xnlCall is a call of a tool as a model writes it, and xnlBlock is several of them.
func xnlCall(id, code string) string {
	return "<tool_call id=\"" + id + "\" lang=\"javascript\" #>\n" + code + "\n</#>"
}

func xnlBlock(calls ...string) string {
	return "!unquote_start\n" + strings.Join(calls, "\n") + "\n!unquote_end"
}

// TestRecordOfXNL: the record has the blocks as the model wrote them and the results as it was told them, in the layout
// of seed 2.
func TestRecordOfXNL(t *testing.T) {
	t.Parallel()
	p := newPlaceOf(t, writer{
		"I look.\n" + xnlBlock(xnlCall("r1", `SysBuiltIn.read_file({ path: "a.txt" })`),
			xnlCall("t1",
				`SysBuiltIn.todo_write({ items: [{ content: "A", status: "in_progress", activeForm: "a" }] })`)),
		"Again:\n!unquote_start\n<tool_call id=\"x\" lang=\"javascript\" #>\nSysBuiltIn.read_file({",
		xnlBlock(xnlCall("r2", `SysBuiltIn.read_file({ path: "none.txt" })`)) + "\nThat was it.\n",
		"Done.",
	})
	p.write("a.txt", "one\ntwo\n")
	w := p.open("--tool-protocol", "xnl")
	w.await("test-model")
	w.enters("go")
	w.await("Done.")
	w.quits()
	dirs, err := filepath.Glob(filepath.Join(p.home, ".eidolon/projects/*/sessions/*"))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	const reminder = "If this takes two or more steps"
	for name, first := range map[string]string{
		"history.xnl": "<system {\n  content = \"" +
			reminder, "history.json": "  {\n    \"role\": \"system\",\n    \"content\": \"" + reminder,
	} {
		data, err := os.ReadFile(filepath.Join(dirs[0], name))
		if err != nil {
			t.Fatal(err)
		}
		instructions, turn, found := strings.Cut(strings.ReplaceAll(string(data), p.work, "WORKSPACE"), first)
		if !found {
			t.Fatalf("%s: no turn in %s", name, data)
		}
		emulator.Golden(t, *update, name, first+turn)
		if name == "history.json" {
			p.instructed(instructions + "{}]")
		}
	}
}

// instructed checks that a record begins with all that the model read before the conversation.
func (p *place) instructed(record string) {
	p.t.Helper()
	var list []struct{ Role, Content string }
	if err := json.Unmarshal([]byte(record), &list); err != nil {
		p.t.Fatal(err)
	}
	var texts []string
	for _, m := range list[:len(list)-1] {
		if m.Role != "system" {
			p.t.Errorf("%+v", m)
		}
		texts = append(texts, m.Content)
	}
	got, want := strings.Join(texts, "\n"), strings.ReplaceAll(p.requests()[0].System, p.work, "WORKSPACE")
	if got != want || !strings.Contains(got, "SysBuiltIn.edit_text") {
		p.t.Errorf("the record has\n%s\nand the model got\n%s", got, want)
	}
}
