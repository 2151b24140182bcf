package repl

import (
	"bytes"
	"strings"
	"sync/atomic"
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
		p := &Plain{screen: screen{out: &out, over: &atomic.Bool{}}}
		p.event(event.Event{Kind: event.ToolCall, Call: &call})
		p.event(event.Event{Kind: event.Question, Ask: &event.Ask{Text: "Run\nit\x1b[8m", Tool: &call}})
		got := out.String()
		if !strings.Contains(got, "important") || strings.ContainsAny(got, "\x1b\x07\u009d\u202e") ||
			!strings.Contains(got, `? Run\nit\x1b[8m`+"\n") ||
			strings.Contains(got, "\nforged") || strings.Contains(got, "\n? Look") {
			t.Errorf("%q", got)
		}
	}
}

// TestOneQuestionAtATime: the question that is shown is the one that a line answers; the next one is shown behind it.
func TestOneQuestionAtATime(t *testing.T) {
	var out bytes.Buffer
	p := &Plain{screen: screen{out: &out, over: &atomic.Bool{}}, turns: map[int64]string{}}
	for _, id := range []string{"q1.1", "q1.2", "q1.3"} {
		p.event(event.Event{Kind: event.Question, Ask: &event.Ask{ID: id, Text: "May " + id + " be"}})
	}
	if got := out.String(); !strings.Contains(got, "q1.1") || strings.Contains(got, "q1.2") ||
		p.questionsShown.Load() != 1 {
		t.Errorf("%q", got)
	}
	p.event(event.Event{Kind: event.Withdrawn, Ask: &event.Ask{ID: "q1.2"}})
	p.event(event.Event{Kind: event.Replied, Reply: &event.Reply{Question: "q1.1", Option: event.Allow}})
	if got := out.String(); strings.Contains(got, "q1.2 be") || !strings.Contains(got, "May q1.3 be") ||
		p.questionsShown.Load() != 2 || p.questions[0].ID != "q1.3" {
		t.Errorf("%q", got)
	}
}
