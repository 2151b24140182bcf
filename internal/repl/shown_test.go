package repl

import (
	"bytes"
	"strings"
	"testing"

	"omniagent/internal/event"
)

// TestWhatIsAskedAboutIsShownAsItWillRun: a terminal takes a sequence for its own, a shell runs what stands in it.
func TestWhatIsAskedAboutIsShownAsItWillRun(t *testing.T) {
	for _, call := range []event.Call{
		{Name: "Bash", Command: "echo ok \x1b]0;\nrm -r important\n\x07"},
		{Name: "Bash", Command: "echo ok # \u009d; rm -r important \u009c"},
		{Name: "Write\x1b[2J\nforged", Path: "a\n? Look at it", Input: []byte("{\"file_path\":\"\u202eimportant\"}")},
	} {
		var out bytes.Buffer
		p := &Plain{Out: &out}
		p.hear(event.Event{Kind: event.ToolCall, Call: &call})
		p.hear(event.Event{Kind: event.Question, Ask: &event.Ask{Text: "Run\nit\x1b[8m", Tool: &call}})
		got := out.String()
		if !strings.Contains(got, "important") || strings.ContainsAny(got, "\x1b\x07\u009d\u202e") || !strings.Contains(got, `? Run\nit\x1b[8m`+"\n") ||
			strings.Contains(got, "\nforged") || strings.Contains(got, "\n? Look") {
			t.Errorf("%q", got)
		}
	}
}
