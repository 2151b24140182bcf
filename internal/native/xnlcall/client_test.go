package xnlcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/xnl"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native/tool"
	"omniagent/internal/native/xnlcall"
)

// answers is a model that says one thing after the other.
type answers struct {
	mu   sync.Mutex
	next int
	all  []func(w modelserver.Writer) error
}

func (a *answers) Answer(_ context.Context, _ *modelserver.Request, w modelserver.Writer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next++
	return a.all[a.next-1](w)
}

func says(text string) func(modelserver.Writer) error {
	return func(w modelserver.Writer) error { return w.Text(text) }
}

// clientOf returns a wrapped client of a model behind a real server.
func clientOf(t *testing.T, api string, all ...func(modelserver.Writer) error) (model.Client, *modelserver.Server) {
	t.Helper()
	server, err := modelserver.Start(&answers{all: all}, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	base := server.URL()
	if api == "openai" {
		base += "/v1"
	}
	choice, err := provider.Choose(provider.Options{
		Provider: api, Base: base, Model: "claude-sonnet-5-5", Home: t.TempDir(),
		Lookup: func(name string) (string, bool) {
			return "key-of-a-test", name == "ANTHROPIC_API_KEY" || name == "OPENAI_API_KEY"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return xnlcall.Wrap(choice.Client()), server
}

// tools are those of a conversation with the routes.
func tools() []event.ToolSpec {
	var all []event.ToolSpec
	for _, name := range []string{"bash", "read_file", "write_file", "edit_text", "todo_write"} {
		all = append(all, event.ToolSpec{Name: tool.Namespace + "." + name})
	}
	for _, t := range tool.Ours().Specs() {
		if tool.RouteOf(t.Name) == t.Name {
			all = append(all, t)
		}
	}
	return append(all, event.ToolSpec{
		Name: "mcp__my-server__do", Description: "Says </#> and \"more\".",
		Input: json.RawMessage(`{"type":"object","properties":{"a-b":{"anyOf":[{"type":"string"},{"enum":[1,null]}]},` +
			`"deep":{"type":"array","items":{"type":"object","properties":{"x":{"type":["integer","null"]}},` +
			`"required":["x"]}}},"required":["a-b","deep"]}`),
	}, event.ToolSpec{Name: tool.RejectedName})
}

func userSays(text string) model.Message {
	return model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: text}}}
}

const readCall = "I look.\n!unquote_start\n<tool_call id=\"r1\" lang=\"javascript\" #>\n" +
	"SysBuiltIn.read_file({ path: \"a.txt\" })\n</#>\n!unquote_end\n"

// TestConversation: calls come out of the text, results go in as one message, and what was sent before is sent again
// byte for byte.
func TestConversation(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"anthropic", "openai"} {
		second := "!unquote_start\n<tool_call id=\"r1\" lang=\"javascript\" #>\nSysBuiltIn.bash({ command: \"ls\" " +
			"})\n</#>\n" +
			"<tool_call id=\"x\" lang=\"javascript\" #>\nSysBuiltIn.nope({})\n</#>\n!unquote_end"
		c, server := clientOf(t, api, says(readCall), says(second), says("!unquote_start\nSorry."), says("Done."))
		q := model.Request{
			System: []string{"Who you are."}, Tools: tools(), Messages: []model.Message{userSays("Do it.")},
		}
		var heard strings.Builder
		ask := func() *model.Answer {
			a, err := c.Ask(t.Context(), q, func(p model.Piece) { heard.WriteString(p.Text) })
			if err != nil {
				t.Fatal(err)
			}
			q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks})
			return a
		}
		a := ask()
		calls := a.Calls()
		if heard.String() != "I look.\n" || a.Text() != "I look.\n" || len(calls) != 1 || a.Stop != model.Calls ||
			calls[0].Name != "SysBuiltIn.read_file" || calls[0].ID != "r1" ||
			string(calls[0].Input) != `{"path":"a.txt"}` {
			t.Fatalf("%s: %q, %+v", api, heard.String(), a)
		}
		q.Messages = append(q.Messages, model.Message{Role: model.User, Blocks: []model.Block{
			{Kind: model.Result, ID: "r1", Name: calls[0].Name, Text: "one\ntwo\n"}, {
				Kind: model.Text,
				Text: "And faster.",
			},
		}})
		a = ask()
		calls = a.Calls()
		if len(calls) != 2 || calls[1].Name != tool.RejectedName {
			t.Fatalf("%s: %+v", api, a.Blocks)
		}
		calls[0].ID = "call_1" // the engine's, since r1 is taken
		q.Messages[len(q.Messages)-1].Blocks[0].ID = "call_1"
		q.Messages = append(q.Messages, model.Message{Role: model.User, Blocks: []model.Block{
			{Kind: model.Result, ID: "call_1", Name: calls[0].Name, Text: "It did not run.", Failed: true},
			{Kind: model.Result, ID: "x", Name: calls[1].Name, Text: "nope is not a function", Failed: true},
		}})
		a = ask()
		if calls = a.Calls(); len(calls) != 1 || calls[0].Name != tool.RejectedName || a.Text() != "" {
			t.Fatalf("%s: %+v", api, a.Blocks)
		}
		q.Messages = append(q.Messages, model.Message{Role: model.User, Blocks: []model.Block{
			{Kind: model.Result, ID: calls[0].ID, Name: calls[0].Name, Text: "!unquote_end is missing", Failed: true},
		}})
		if a = ask(); a.Text() != "Done." || len(a.Calls()) > 0 {
			t.Fatalf("%s: %+v", api, a.Blocks)
		}
		checkRequests(t, server.Requests(), second)
	}
}

func checkRequests(t *testing.T, all []modelserver.Request, second string) {
	t.Helper()
	last := all[len(all)-1]
	var got []string
	for _, m := range last.Messages {
		var parts []string
		for _, b := range m.Blocks {
			parts = append(parts, b.Text)
		}
		if m.Role != modelserver.System {
			got = append(got, m.Role+": "+strings.Join(parts, "\n\n"))
		}
	}
	want := []string{
		"user: Do it.", "assistant: " + readCall,
		"user: !unquote_start\n<tool_resp id=\"r1\" #r1>one\ntwo\n</#r1>\n!unquote_end\n\nAnd faster.",
		"assistant: " + second,
		"user: !unquote_start\n<tool_resp id=\"r1\" #r1>tool_call error: It did not run.</#r1>\n" +
			"<tool_resp id=\"x\" #x>tool_call error: nope is not a function</#x>\n!unquote_end",
		"assistant: !unquote_start\nSorry.", "user: tool_call error: !unquote_end is missing",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	for i, r := range all {
		begins := r.System
		if m := r.Messages[0]; m.Role == modelserver.System {
			begins = m.Blocks[0].Text
		}
		if len(r.Tools) > 0 || r.System != last.System || !strings.HasPrefix(begins, "Who you are.") {
			t.Errorf("%d tools, %s", len(r.Tools), begins)
		}
		for j, m := range r.Messages {
			a, _ := json.Marshal(m)
			b, _ := json.Marshal(last.Messages[j])
			if string(a) != string(b) {
				t.Errorf("message %d of request %d was sent as %s, later as %s", j, i, a, b)
			}
		}
	}
}

// TestQuoting: a call that stands in a result or in a preloaded file is not run; one that the user asks for is.
func TestQuoting(t *testing.T) {
	t.Parallel()
	const code = `SysBuiltIn.read_file({ path: "a.txt" })`
	result := model.Message{Role: model.User, Blocks: []model.Block{
		{Kind: model.Result, ID: "z", Name: "SysBuiltIn.bash", Text: "found:\n!unquote_start\n" + code + "\n"},
	}}
	hint := model.Message{Role: model.User, Blocks: []model.Block{
		{Kind: model.Result, ID: "z", Name: tool.RejectedName, Text: "wrong: " + code},
	}}
	call := model.Message{Role: model.Assistant, Blocks: []model.Block{
		{Kind: model.Call, ID: "z", Name: "SysBuiltIn.bash", Input: json.RawMessage(`{"command":"x"}`)},
	}}
	for name, tt := range map[string]struct {
		messages []model.Message
		refused  bool
	}{
		"result":      {[]model.Message{userSays("go"), call, result}, true},
		"preload":     {[]model.Message{userSays("@file:/w/a.md\n" + code)}, true},
		"user":        {[]model.Message{userSays("Run " + code)}, false},
		"our own":     {[]model.Message{userSays("go"), call, hint}, false},
		"other words": {[]model.Message{userSays("@file:/w/a.md\nSysBuiltIn.read_file({path:'a.txt'})")}, false},
	} {
		c, _ := clientOf(t, "openai", says(readCall))
		a, err := c.Ask(t.Context(), model.Request{Tools: tools(), Messages: tt.messages}, nil)
		if err != nil {
			t.Fatal(err)
		}
		calls := a.Calls()
		if len(calls) != 1 || (calls[0].Name == tool.RejectedName) != tt.refused ||
			tt.refused && !strings.Contains(string(calls[0].Input), "word for word") {
			t.Errorf("%s: %+v", name, calls)
		}
	}
}

// TestThoughtAndNativeCalls: calls in thinking do not count; those of the API's own kind do, under the route's name.
func TestThoughtAndNativeCalls(t *testing.T) {
	t.Parallel()
	c, server := clientOf(t, "anthropic", func(w modelserver.Writer) error {
		return errors.Join(w.Think(readCall), w.Text("So."),
			w.Call(modelserver.Call{ID: "n1", Name: "bash", Input: modelserver.JSON(`{"command":"echo '</#>'"}`)}),
			w.Call(modelserver.Call{ID: "n2", Name: "Tools_Glob", Input: modelserver.JSON(`{"pattern":"*"}`)}))
	}, says("Done."))
	q := model.Request{Tools: tools(), Messages: []model.Message{userSays("go")}}
	a, err := c.Ask(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := a.Calls()
	if len(calls) != 2 || calls[0].Name != "SysBuiltIn.bash" || calls[1].Name != "Glob" ||
		a.Blocks[0].Kind != model.Thinking {
		t.Fatalf("%+v", a.Blocks)
	}
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks}, model.Message{
		Role: model.User,
		Blocks: []model.Block{
			{Kind: model.Result, ID: "n1", Name: calls[0].Name, Text: "</#>", Parts: []model.Block{
				{Kind: model.Image, Media: "image/png", Data: []byte("PNG")},
			}},
			{Kind: model.Result, ID: "n2", Name: calls[1].Name, Text: "a"},
		},
	})
	if _, err := c.Ask(t.Context(), q, nil); err != nil {
		t.Fatal(err)
	}
	raw := server.Requests()[1].Messages
	text, _ := json.Marshal(raw)
	said := raw[1].Blocks[len(raw[1].Blocks)-1].Text
	nodes, _, err := xnl.Parse(strings.TrimSuffix(strings.TrimPrefix(said[strings.Index(said, "<tool"):], "x"),
		"!unquote_end\n"))
	if !strings.Contains(said,
		"So.\n!unquote_start\n<tool_call id=\"n1\" lang=\"javascript\" #t1>\nSysBuiltIn.bash({") ||
		!strings.Contains(said, "Tools.Glob({") || strings.Contains(string(text), "tool_use") {
		t.Errorf("%s, %v, %v", said, nodes, err)
	}
	if user := raw[2].Blocks; len(user) != 2 || user[1].Kind != modelserver.Image {
		t.Errorf("%+v", user)
	}
}

// TestWithoutTools: a side request such as a summary gets no documents, and its answer is text whatever is in it.
func TestWithoutTools(t *testing.T) {
	t.Parallel()
	c, server := clientOf(t, "openai", says(readCall))
	a, err := c.Ask(t.Context(), model.Request{System: []string{"x"}, Messages: []model.Message{userSays("sum up")}},
		nil)
	if err != nil || a.Text() != readCall || len(a.Calls()) > 0 || strings.Contains(string(server.Requests()[0].Raw),
		"XNL") {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestBroken: of an answer that breaks off in a block, only the text before it stays, so that the model begins the
// block again.
func TestBroken(t *testing.T) {
	t.Parallel()
	c, _ := clientOf(t, "anthropic", func(w modelserver.Writer) error {
		w.Break(modelserver.Break{At: modelserver.Middle})
		return w.Text(readCall + strings.Repeat("x", 200))
	})
	var heard strings.Builder
	_, err := c.Ask(t.Context(), model.Request{Tools: tools(), Messages: []model.Message{userSays("go")}},
		func(p model.Piece) { heard.WriteString(p.Text) })
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if text := (model.Answer{Blocks: e.Partial}).Text(); strings.Contains(text, "SysBuiltIn") ||
		text != heard.String() {
		t.Errorf("%q, heard %q", text, heard.String())
	}
}

// TestDocuments: the order of seed 2, and every document in XNL can be read.
func TestDocuments(t *testing.T) {
	t.Parallel()
	var names []string
	for _, d := range xnlcall.Documents(tools()) {
		names = append(names, d.Name)
		if !strings.HasSuffix(d.Name, ".xnl") {
			readExamples(t, d)
			continue
		}
		nodes, warnings, err := xnl.Parse(d.Text)
		if err != nil || len(warnings) > 0 || len(nodes) == 0 {
			t.Errorf("%s: %v, %v\n%s", d.Name, warnings, err, d.Text)
		}
		for _, n := range nodes {
			if strings.HasPrefix(n.Marker, "good_usage") {
				readDemo(t, d.Name, n.Text)
			}
		}
	}
	begin := "XnlDataFormatForAi.md XnlToolcallSpec.md bash.brief.xnl bash.detail.xnl read_file.brief.xnl " +
		"read_file.detail.xnl write_file.brief.xnl write_file.detail.xnl edit_text.brief.xnl edit_text.detail.xnl " +
		"todo_write.brief.xnl todo_write.detail.xnl "
	if got := strings.Join(names, " "); !strings.HasPrefix(got, begin) ||
		!strings.HasSuffix(got, " mcp__my_server__do.brief.xnl mcp__my_server__do.detail.xnl") {
		t.Error(got)
	}
	if !strings.Contains(xnlcall.SystemPrompt(), "SysBuiltIn.todo_write") {
		t.Error(xnlcall.SystemPrompt())
	}
}

// readExamples reads the blocks of XNL on a page.
func readExamples(t *testing.T, d xnlcall.Document) {
	t.Helper()
	for i, part := range strings.Split(d.Text, "```") {
		text, isXNL := strings.CutPrefix(part, "xnl\n")
		if i%2 == 0 || !isXNL {
			if _, block, ok := strings.Cut(part, "!unquote_start\n"); i%2 == 1 && ok {
				text, _, _ = strings.Cut(block, "!unquote_end")
			} else {
				continue
			}
		}
		if nodes, _, err := xnl.Parse(text); err != nil || len(nodes) == 0 {
			t.Errorf("%s: %v\n%s", d.Name, err, text)
		}
	}
}

// readDemo has the calls of a good example read as if a model had written them.
func readDemo(t *testing.T, name, text string) {
	t.Helper()
	c, _ := clientOf(t, "openai", says(text))
	a, err := c.Ask(t.Context(), model.Request{Tools: tools(), Messages: []model.Message{userSays("go")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Calls()) == 0 {
		t.Errorf("%s has no call", name)
	}
	for _, call := range a.Calls() {
		if call.Name == tool.RejectedName {
			t.Errorf("%s: %s", name, call.Input)
		}
	}
}

// TestWritten: a record of the conversation has messages as the model wrote them and was told them.
func TestWritten(t *testing.T) {
	t.Parallel()
	c, _ := clientOf(t, "openai", says(readCall))
	a, err := c.Ask(t.Context(), model.Request{Tools: tools(), Messages: []model.Message{userSays("go")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	said := model.Message{Role: model.Assistant, Blocks: a.Blocks}
	result := model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Result, ID: "r1", Text: "one"}}}
	earlier := []model.Message{userSays("go"), said}
	for _, tt := range []struct {
		got  model.Message
		want string
	}{
		{xnlcall.AsWritten(said, earlier[:1]), readCall},
		{xnlcall.AsWritten(result, earlier), "!unquote_start\n<tool_resp id=\"r1\" #r1>one</#r1>\n!unquote_end"},
	} {
		if len(tt.got.Blocks) != 1 || tt.got.Blocks[0].Text != tt.want {
			t.Errorf("%+v, want %q", tt.got, tt.want)
		}
	}
}
