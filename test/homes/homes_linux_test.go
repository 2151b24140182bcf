package homes

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// earlier is the version that left the files.
const earlier = "0.1"

// run is what the program says of a run.
type run struct {
	ID                   string `json:"run_id"`
	Status, Reason, Task string
	Files                []struct{ Path, Status string }
}

// runs returns the runs by their tasks.
func (p *place) runs() map[string]run {
	p.t.Helper()
	var list struct{ Runs []run }
	p.json(0, &list, "runs", "list")
	all := map[string]run{}
	for _, r := range list.Runs {
		all[r.Task] = r
	}
	return all
}

// TestRuns lists and shows the runs.
func TestRuns(t *testing.T) {
	t.Parallel()
	p := open(t, earlier, `[]`)
	runs, states := p.runs(), map[string]string{}
	for task, r := range runs {
		states[task] = r.Status
	}
	if diff := cmp.Diff(map[string]string{
		"Look around.": "succeeded", "Write a poem.": "succeeded", "Fail.": "failed",
		"Choose a colour.": "needs_input", "Write what is asked.": "needs_input", "Make a directory.": "needs_input",
		"first: with a colour": "needs_input", "Work for long.": "unknown_outcome",
	}, states); diff != "" {
		t.Error(diff)
	}
	poem := runs["Write a poem."].ID
	has(t, p.call(0, "runs", "show", poem, "--output", "plain"), "Task: Write a poem.", "I wrote a poem.",
		"done after 600ms", "9478 tokens in, 39 out", "deleted  notes.txt  +0 -1", "added    poem.txt  +1 -0")
	has(t, p.call(0, "runs", "logs", poem), "I wrote a poem.", `"command": "rm notes.txt"`)
	has(t, p.call(0, "runs", "diff", poem), "--- a/notes.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "+roses\n")
	has(t, p.call(0, "runs", "show", runs["Work for long."].ID, "--output", "plain"), "half.txt")
	has(t, p.call(0, "runs", "logs", runs["Look around."].ID, "--raw", "stdout"), "I looked.")
	has(t, p.call(0, "runs", "show", runs["Fail."].ID), "no such thing (HTTP 400)")
	var shown run
	p.json(0, &shown, "runs", "retry", runs["Look around."].ID)
	if shown.Status != "succeeded" || shown.ID == runs["Look around."].ID {
		t.Errorf("%+v", shown)
	}
}

// answer answers a run and returns what came of it.
func (p *place) answer(code int, r run, args ...string) (after run) {
	p.t.Helper()
	p.json(code, &after, append([]string{"answer", r.ID}, args...)...)
	if after.ID != r.ID {
		p.t.Errorf("another run was answered: %+v", after)
	}
	return after
}

// TestAnswers answers each kind of question that a run waits with.
func TestAnswers(t *testing.T) {
	t.Parallel()
	t.Run("a text", func(t *testing.T) {
		t.Parallel()
		p := open(t, earlier, `[{"write":{"path":"colour.txt","content":"blue\n"}},{"say":"I wrote it."}]`)
		after := p.answer(0, p.runs()["Choose a colour."], "--text", "blue")
		if after.Status != "succeeded" || p.file("colour.txt") != "blue\n" {
			t.Errorf("%+v, and the file has %q", after, p.file("colour.txt"))
		}
		body := p.asked()
		has(t, body, "Choose a colour.", "before.txt", "blue") // the conversation went on
	})
	t.Run("what was missing", func(t *testing.T) {
		t.Parallel()
		p := open(t, earlier, `[{"say":"It is blue."}]`)
		after := p.answer(0, p.runs()["first: with a colour"], "blue")
		if after.Status != "succeeded" {
			t.Errorf("%+v", after)
		}
		has(t, p.asked(), "first: with a colour", "Which colour?", "blue")
	})
	t.Run("yes to a command", func(t *testing.T) {
		t.Parallel()
		p := open(t, earlier, `[{"shell":"mkdir asked && echo x > asked/for"},{"say":"I made it."}]`)
		after := p.answer(0, p.runs()["Make a directory."], "--approve")
		if after.Status != "succeeded" || p.file("asked/for") != "x\n" {
			t.Errorf("%+v, and the file has %q", after, p.file("asked/for"))
		}
	})
	t.Run("no to a command", func(t *testing.T) {
		t.Parallel()
		p := open(t, earlier, `[{"shell":"mkdir asked && echo x > asked/for"},{"say":"I did not."}]`)
		after := p.answer(7, p.runs()["Make a directory."], "--reject", "not here")
		if after.Status != "blocked" || p.file("asked/for") != "none" {
			t.Errorf("%+v, and the file has %q", after, p.file("asked/for"))
		}
	})
	// Nobody recorded the file that the person saw with the question, so it is asked again.
	t.Run("yes to a write", func(t *testing.T) {
		t.Parallel()
		p := open(t, earlier, `[{"write":{"path":"asked.txt","content":"asked\n"}},{"say":"I wrote it."}]`)
		asked := p.runs()["Write what is asked."]
		again := p.answer(4, asked, "--approve")
		if again.Status != "needs_input" || p.file("asked.txt") != "none" {
			t.Errorf("%+v, and the file has %q", again, p.file("asked.txt"))
		}
		has(t, p.call(0, "runs", "show", asked.ID), "it is not known whether the file has changed since this was allowed")
		after := p.answer(0, asked, "--approve")
		if after.Status != "succeeded" || p.file("asked.txt") != "asked\n" {
			t.Errorf("%+v, and the file has %q", after, p.file("asked.txt"))
		}
	})
}

// TestSessions lists, shows and exports the conversations, and continues one.
func TestSessions(t *testing.T) {
	t.Parallel()
	p := open(t, earlier, `[{"say":"I am back."}]`)
	type row struct {
		ID, Title, Agent, Model string
		Messages                int
		Damaged                 int
		Unfinished              []int `json:"unfinished_turns"`
	}
	var list struct{ Sessions []row }
	p.json(0, &list, "session", "list")
	ids := map[string]string{}
	for _, s := range list.Sessions {
		ids[s.Title] = s.ID
		p.json(0, &s, "session", "show", s.ID)
		if s.Damaged > 0 || s.Messages == 0 || (len(s.Unfinished) > 0) != (s.Title == "Work for long.") {
			t.Errorf("%+v", s)
		}
	}
	if len(list.Sessions) != 10 {
		t.Errorf("%d sessions: %v", len(list.Sessions), ids)
	}
	first := ids["first: greet"]
	var shown row
	p.json(0, &shown, "session", "show", first)
	if diff := cmp.Diff(row{
		ID: first, Title: "first: greet", Agent: "native", Model: "test-model", Messages: 4,
		Unfinished: []int{},
	}, shown); diff != "" {
		t.Error(diff)
	}
	text := p.call(0, "session", "export", first, "--form", "markdown", "--output", "plain")
	has(t, text, "first: greet", "greeting.txt", "I wrote a greeting.")
	if strings.Count(text, "I wrote a greeting.") != 1 {
		t.Errorf("the answer is there more than once:\n%s", text)
	}
	has(t, p.typed(0, "are you there?\n", "chat", "--plain", "--resume", first), "I wrote a greeting.", "I am back.")
	body := p.asked()
	has(t, body, "first: greet", "Successfully wrote 6 characters", "I wrote a greeting.", "are you there?")
	p.json(0, &shown, "session", "show", first)
	if shown.Messages != 6 || shown.Damaged != 0 {
		t.Errorf("%+v", shown)
	}
	has(t, p.call(0, "usage", "--output", "plain"), "test-model")
}

// TestUndo takes turns back, and takes that back.
func TestUndo(t *testing.T) {
	t.Parallel()
	p := open(t, earlier, `[]`)
	var list struct {
		Turns []struct {
			ID      string
			Changed []struct{ Value string }
		}
	}
	p.json(0, &list, "undo", "--list")
	turn := func(path string) string {
		for _, one := range list.Turns {
			if slices.ContainsFunc(one.Changed, func(c struct{ Value string }) bool { return c.Value == path }) {
				return one.ID
			}
		}
		t.Errorf("no turn has changed %s: %+v", path, list)
		return "none"
	}
	files := func(want ...string) {
		t.Helper()
		var got []string
		for _, name := range []string{"greeting.txt", "src/a.txt", "notes.txt", "made/by-command.txt", "half.txt"} {
			got = append(got, p.file(name))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if len(list.Turns) != 6 {
		t.Errorf("%+v", list)
	}
	files("none", "other\n", "two", "x", "half\n")
	p.call(0, "undo", turn("src/a.txt"))
	files("hello\n", "a\n", "two", "x", "half\n")
	p.call(0, "undo", turn("notes.txt"))
	files("hello\n", "a\n", "none", "none", "half\n")
	p.call(0, "redo")
	files("hello\n", "a\n", "two", "x", "half\n")
	p.call(3, "undo", list.Turns[0].ID) // its process died, and its record does not explain the file
	files("hello\n", "a\n", "two", "x", "half\n")
	p.call(0, "undo", list.Turns[0].ID, "--take-all")
	files("hello\n", "a\n", "two", "x", "none")
}

// TestAllowed: what a person trusted and allowed counts, and so does the configuration.
func TestAllowed(t *testing.T) {
	t.Parallel()
	p := open(t, earlier, `[]`)
	var list struct {
		Trusted []struct{ Path, State string }
		Agents  []struct{ Name, Allowed string }
	}
	p.json(0, &list, "trust", "list")
	if len(list.Trusted) != 1 || list.Trusted[0].State != "current" {
		t.Errorf("%+v", list)
	}
	has(t, p.call(0, "config", "get", "timeout"), "5m")
	has(t, p.call(0, "config", "get", "native.model"), "test-model")
	p.json(0, &list, "agents", "list")
	if !slices.ContainsFunc(list.Agents, func(a struct{ Name, Allowed string }) bool {
		return a.Name == "stub" && a.Allowed == "yes"
	}) {
		t.Errorf("%+v", list)
	}
	var r run
	p.json(0, &r, "run", "--agent", "stub", "-p", "Look again.")
	if r.Status != "succeeded" {
		t.Errorf("%+v", r)
	}
}
