//go:build unix

package run

import (
	"slices"
	"strings"
	"testing"
)

// TestAChoice: the options of a question are its own in every form in which they are told. An approval is not one.
func TestAChoice(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"call":{"name":"AskUserQuestion","input":{"questions":[{"question":"Which colour?",
		"header":"Colour","options":[{"label":"red","description":""},{"label":"dark blue","description":""}],
		"multiSelect":false}]}}},{"say":"it was ${result}"}]`)
	a := p.call("run", "--agent", "native", "-m", "m", "--provider", "openai", "-p", "go", "--detach")
	asked := p.reaches(a.Data.ID, "needs_input")
	if q := asked.Data.Questions; len(q) != 1 || !slices.Equal(q[0].Options, []string{"red", "dark blue"}) {
		t.Fatalf("%s", asked)
	}
	for _, wrong := range [][]string{{"allow"}, {"always"}, {"deny"}, {"--approve"}} {
		b := p.call(append([]string{"answer", a.Data.ID}, wrong...)...)
		if b.Code != 2 || b.Error == nil || !strings.Contains(b.Error.Message, "one of: red, dark blue") {
			t.Errorf("%v: %s", wrong, b)
		}
	}
	b := p.call("answer", a.Data.ID, "dark blue")
	b.is(t, 0, "succeeded", "done_unchanged")
	if !strings.Contains(b.Data.Text.Value, "dark blue") {
		t.Errorf("%s", b)
	}
	events, err := p.command("runs", "watch", a.Data.ID).Output()
	if err != nil || !strings.Contains(string(events), `"options":["red","dark blue"]`) {
		t.Errorf("%v %s", err, events)
	}
	p.nothing()
}
