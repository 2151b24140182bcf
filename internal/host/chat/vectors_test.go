package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/term/lineedit"
)

// vectors are what the original does. Of insert_submit the case /demolition is left out: there the name of a command is
// taken for the beginning of a longer one.
type vectors struct {
	Insert []struct {
		Input, Command string
		Content        *string
		User           string   `json:"userInput"`
		Systems        []string `json:"extraSystems"`
	} `json:"insert_submit"`
	Space []struct{ Input, Output string } `json:"append_space"`
	Lines []struct{ Text, Output string }  `json:"truncate_lines"`
	Chars []struct {
		Value  string
		Repeat struct {
			Char  string
			Count int
		} `json:"value_repeat"`
		Output string
		Prefix struct {
			Char  string
			Count int
		} `json:"output_repeat_prefix"`
		Suffix string `json:"output_suffix"`
	} `json:"truncate_for_cli"`
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestTruncated: what is shown of a result is what the original shows.
func TestTruncated(t *testing.T) {
	v := readVectors(t)
	outputs := map[string]string{}
	for _, c := range v.Lines {
		outputs[c.Text] = c.Output
	}
	for _, c := range v.Chars {
		outputs[c.Value+strings.Repeat(c.Repeat.Char, c.Repeat.Count)] =
			c.Output + strings.Repeat(c.Prefix.Char, c.Prefix.Count) + c.Suffix
	}
	for output, want := range outputs {
		if got := strings.Join(folded(event.Event{Result: &event.Result{Output: output}}, 0), "\n"); got != want {
			t.Errorf("%q:\n got %q\nwant %q", output, got, want)
		}
	}
	long := strings.Repeat("ä", 600)
	got := folded(event.Event{Result: &event.Result{Output: long + "\n" + long + "\nlast"}}, 7)
	want := strings.Repeat("ä", 400) + "... (truncated 205 chars), /show 7"
	if len(got) != 2 || got[0] != long || got[1] != want {
		t.Errorf("got %q", got)
	}
}

// TestInserted: a command of a file is its text and, behind it, what was typed after the name.
func TestInserted(t *testing.T) {
	for _, c := range readVectors(t).Insert {
		name, rest, is := commandIn(c.Input)
		if is = is && "/"+name == c.Command; is != (c.Content != nil) {
			t.Errorf("%q: a command: %v", c.Input, is)
		}
		want, got := strings.Join(append(c.Systems, c.User), "\n\n"), c.Input
		if is {
			got = inserted(*c.Content, rest)
		}
		if got != strings.TrimSpace(want) {
			t.Errorf("%q: %q, not %q", c.Input, got, want)
		}
	}
}

// TestFirstFilesByName: of a large directory the first names are offered, in whatever order it is read.
func TestFirstFilesByName(t *testing.T) {
	c := &Chat{World: World{List: func(_ context.Context, _ string, take func([]string)) {
		for n := 2999; n >= 0; n -= 500 {
			var names []string
			for i := range 500 {
				names = append(names, fmt.Sprintf("f%04d", n-i))
			}
			take(names)
		}
	}}}
	var last []lineedit.Candidate
	c.Complete(t.Context(), "@file:f", func(o lineedit.Offer) { last = o.Candidates })
	if len(last) != mostCandidates || last[0].Text != "f0000 " || last[1].Text != "f0001 " {
		t.Errorf("%+v", last)
	}
}

// TestSpaceBehindCommand: a completed command is followed by one space.
func TestSpaceBehindCommand(t *testing.T) {
	c := &Chat{World: World{Prompts: func(context.Context) eidolon.Prompts {
		return eidolon.Prompts{Commands: []eidolon.Prompt{{Name: "demo"}}}
	}}}
	for _, one := range readVectors(t).Space {
		line := one.Input
		c.Complete(t.Context(), one.Input, func(o lineedit.Offer) {
			for _, found := range o.Candidates {
				line = one.Input[:o.From] + found.Text
			}
		})
		if line != one.Output {
			t.Errorf("%q: %q, not %q", one.Input, line, one.Output)
		}
	}
}
