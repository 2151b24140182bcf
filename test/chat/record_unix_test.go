//go:build unix

package chat

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/emulator"
	"omniagent/internal/modelserver"
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
			xnlCall("t1", `SysBuiltIn.todo_write({ items: [{ content: "A", status: "in_progress", activeForm: "a" }] })`)),
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
	for file, name := range map[string]string{"history.xnl": "history.xnl", "history.json": "history.json"} {
		data, err := os.ReadFile(filepath.Join(dirs[0], file))
		if err != nil {
			t.Fatal(err)
		}
		emulator.Golden(t, *update, name, strings.ReplaceAll(string(data), p.work, "WORKSPACE"))
	}
}
