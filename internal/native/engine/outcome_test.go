package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/walls/guard"
)

// TestAllowRulesForFiles make calls free in the modes that ask, and in none that denies; an answer that is remembered
// does so too.
func TestAllowRulesForFiles(t *testing.T) {
	place := guard.Place{Root: "/w", Dir: "/w", Home: "/h"}
	write := func(path string) tool.Action {
		return tool.Action{
			Kind: event.Write, Changes: true, Paths: []string{path},
			Input: json.RawMessage(`{"file_path":"` + path + `"}`),
		}
	}
	always := &guard.Memory{}
	always.Remember(engine.Described("Write", write("b")), guard.Allow)
	for _, c := range []struct {
		mode   setting.Approval
		rules  []string // allow
		memory *guard.Memory
		path   string
		want   string
	}{
		{setting.Prompt, []string{"Edit(src/**)"}, nil, "src/a", engine.Runs},
		{setting.Prompt, []string{"Write"}, nil, "a", engine.Runs},
		{setting.Prompt, []string{"*"}, nil, "a", engine.Runs},
		{setting.Prompt, []string{"Edit(src/**)"}, nil, "a", engine.Asks},
		{setting.Prompt, []string{"Edit(src/**)"}, nil, "src/../a", engine.Asks},
		{setting.Prompt, []string{"Read(src/**)"}, nil, "src/a", engine.Asks},
		{setting.AskAll, []string{"Edit(src/**)"}, nil, "src/a", engine.Asks},
		{setting.DenyAll, []string{"Edit(src/**)"}, nil, "src/a", engine.Denied},
		{setting.Prompt, []string{"Edit"}, nil, "/etc/a", engine.Denied},
		{setting.Prompt, []string{"Edit"}, nil, ".git/hooks/a", engine.Asks},
		{setting.Yolo, []string{"Edit"}, nil, ".git/hooks/a", engine.Asks},
		{setting.Prompt, []string{"Edit(.git/hooks/**)"}, nil, ".git/hooks/a", engine.Runs},
		{setting.Prompt, nil, always, "b", engine.Runs},
		{setting.Prompt, nil, always, "c", engine.Asks},
	} {
		var rules guard.Rules
		for _, text := range c.rules {
			r, err := guard.Known(tool.Ours().Specs()).Rule(guard.Allow, text, "here")
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, r)
		}
		what, why := engine.Outcome(c.mode, guard.Judge{
			Known: tool.Ours().Specs(), Rules: rules, Memory: c.memory, Place: place,
		}, engine.Whole,
			"Write", write(c.path), true)
		if what != c.want {
			t.Errorf("%+v: %s (%s)", c, what, why)
		}
	}
}

// TestWithoutTheWallsThatWereWanted no mode runs a command but those that are approved by themselves, and auto is not
// stricter than prompt.
func TestWithoutTheWallsThatWereWanted(t *testing.T) {
	rules := guard.Judge{Known: tool.Ours().Specs(), Place: guard.Place{Root: "/w", Dir: "/w", Home: "/h"}}
	for line, want := range map[string]string{
		"ls": engine.Runs, "touch x": engine.Asks, "sh x.sh": engine.Asks,
		"ls; touch x": engine.Asks, "rm -rf x": engine.Asks,
		"cat /etc/shadow": engine.Denied,
	} {
		a := tool.Action{Kind: event.Shell, Changes: true, Command: line}
		for _, mode := range []setting.Approval{setting.Prompt, setting.Default, setting.AutoEdit, setting.Yolo} {
			for _, canAsk := range []bool{true, false} {
				if what, why := engine.Outcome(mode, rules, engine.Missing, "Bash", a, canAsk); what != want {
					t.Errorf("%s %s %v: %s (%s)", mode, line, canAsk, what, why)
				}
			}
		}
	}
}

// TestInTheBackground: what goes on between two turns is in no snapshot, so that the mode default asks about it. Where
// nobody is there, the walls hold it.
func TestInTheBackground(t *testing.T) {
	t.Parallel()
	place := guard.Place{Root: "/w", Dir: "/w", Home: "/h"}
	place.Containment.Cover.Roots = []string{"/w"}
	rules := guard.Judge{Known: tool.Ours().Specs(), Place: place}
	for _, c := range []struct {
		line   string
		mode   setting.Approval
		canAsk bool
		want   string
	}{
		{"npm run dev", setting.Default, true, engine.Asks},
		{"npm run dev", setting.Default, false, engine.Runs},
		{"sleep 9; rm -rf x", setting.Default, false, engine.Asks},
		{"npm run dev", setting.Yolo, false, engine.Runs},
		{"npm run dev", setting.AutoEdit, true, engine.Runs},
		{"ls", setting.Default, true, engine.Runs},
	} {
		a := tool.Action{Kind: event.Shell, Changes: true, Command: c.line, Lasts: true}
		what, why := engine.Outcome(c.mode, rules, engine.Whole, "Bash", a, c.canAsk)
		if what != c.want || what == engine.Asks && !strings.Contains(why, "when the turn has ended") {
			t.Errorf("%+v: %s (%s)", c, what, why)
		}
		if a.Lasts = false; c.mode == setting.Default {
			if what, why := engine.Outcome(c.mode, rules, engine.Whole, "Bash", a, c.canAsk); what != engine.Runs {
				t.Errorf("%+v in the turn: %s (%s)", c, what, why)
			}
		}
	}
}
