package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/redact"
	"omniagent/internal/talk/session"
)

const hiddenKey = "canary-of-a-key-4711"

// parrot is a model that says what it is told to, in small pieces, and keeps what it was asked.
type parrot struct {
	answers []model.Answer
	fail    error
	fall    string // it fails inside, and says this
	asked   []model.Request
}

func (p *parrot) Ask(_ context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	p.asked = append(p.asked, q)
	if p.fall != "" {
		panic(p.fall)
	}
	if p.fail != nil && len(p.asked) > len(p.answers) {
		return nil, p.fail
	}
	a := p.answers[min(len(p.asked), len(p.answers))-1]
	for _, b := range a.Blocks {
		for i := 0; b.Kind == model.Text && i < len(b.Text); i += 3 {
			hear(model.Piece{Kind: model.Text, Text: b.Text[i:min(i+3, len(b.Text))]})
		}
	}
	return &a, nil
}

func (p *parrot) Count(context.Context, model.Request) (int64, bool, error) { return 0, false, nil }
func (p *parrot) Profile() model.Profile                                    { return model.Profile{Window: 200_000} }

// TestSecretsStayInside: a known secret, said by the user, a tool, the model or an error of the API, is in no
// event, no record and no request.
func TestSecretsStayInside(t *testing.T) {
	dir := t.TempDir()
	store := session.Open(dir)
	kept, err := store.Create(t.Context(), session.Begin{Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	call := model.Answer{Stop: model.Calls, Blocks: []model.Block{
		{Kind: model.Text, Text: "I have " + hiddenKey + ", c"}, {
			Kind: model.Call, ID: "1", Name: "Look", Input: json.RawMessage(`{"q":"` + hiddenKey + `"}`),
		},
	}}
	client := &parrot{answers: []model.Answer{call}, fail: &model.Error{Trouble: model.NoLogin, Message: "wrong key " +
		hiddenKey}}
	look := tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result {
		old := "old " + hiddenKey
		return tool.Result{
			Text: "A=" + hiddenKey + "\nghp_" + strings.Repeat("A1b2", 9),
			Change: &event.Change{Path: "/a", Old: &old, New: "new " + hiddenKey + " ghp_" +
				strings.Repeat("A1b2", 9)},
		}
	}}
	s := begin(t, engine.Options{
		Client: client, System: []string{"the project says " + hiddenKey}, Journal: kept,
		Secrets: redact.Known(hiddenKey),
	}, kit("Look", look))
	events := turn(t, s, "my key is "+hiddenKey, nil)
	said := ""
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == event.Text {
			said += e.Text
		}
		if e.Kind == event.ToolResult && !strings.Contains(e.Result.Output, "2 secrets that are not shown") {
			t.Errorf("%q", e.Result.Output)
		}
		if e.Kind == event.ToolResult && (e.Result.Change == nil || *e.Result.Change.Old != "old "+redact.Mask ||
			!strings.HasPrefix(e.Result.Change.New, "new "+redact.Mask)) {
			t.Errorf("%+v", e.Result.Change)
		}
		if text := fmt.Sprintf("%s %+v", data, e.Fault); strings.Contains(text, hiddenKey) ||
			strings.Contains(text, "A1b2A1b2") {
			t.Errorf("%s", text)
		}
	}
	if want := "I have " + redact.Mask + ", c"; said != want {
		t.Errorf("said %q", said)
	}
	if len(client.asked) != 2 {
		t.Fatalf("%d requests", len(client.asked))
	}
	for _, q := range client.asked {
		if data, _ := json.Marshal(q); strings.Contains(string(data), hiddenKey) ||
			strings.Contains(string(data), "A1b2A1b2") {
			t.Errorf("%s", data)
		}
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
	for _, text := range filesIn(t, dir) {
		if strings.Contains(text, hiddenKey) || !strings.Contains(text, redact.Mask) {
			t.Errorf("%s", text)
		}
	}
}

// TestSecretsOfAFall: what fails inside may quote anything.
func TestSecretsOfAFall(t *testing.T) {
	s := begin(t, engine.Options{Client: &parrot{fall: "slice of " + hiddenKey}, Secrets: redact.Known(hiddenKey)})
	failed := false
	for _, e := range turn(t, s, "go", nil) {
		if e.Fault != nil {
			failed = strings.Contains(e.Fault.Message, "slice of "+redact.Mask)
		}
	}
	if !failed {
		t.Error("the failure is not told, or with the secret")
	}
}

// TestMaskIsNotWritten: what a model was not shown, it does not overwrite with the mask; where nothing was hidden, the
// mask is a word like others.
func TestMaskIsNotWritten(t *testing.T) {
	wrote := 0
	write := tool.Action{Kind: event.Write, Run: func(context.Context) tool.Result {
		wrote++
		return tool.Result{Text: "written"}
	}}
	for _, tt := range []struct {
		answer string
		wrote  int
	}{{"k = " + hiddenKey, 0}, {"k = " + redact.Mask, 1}} {
		wrote = 0
		look := reads(tt.answer)
		client, _ := scripted(t,
			script(call("Look", `{}`), call("Put", `{"content":"k = [REDACTED]"}`), `{"say":"${result}"}`))
		s := begin(t, engine.Options{Client: client, Mode: setting.Yolo, Secrets: redact.Known(hiddenKey)},
			kit("Look", look), kit("Put", write))
		events := turn(t, s, "go", nil)
		end := events[len(events)-1].End
		if wrote != tt.wrote || (tt.wrote == 0) != strings.Contains(end.Text, "put the mask in place") {
			t.Errorf("%q: written %d times, %q", tt.answer, wrote, end.Text)
		}
	}
}

// filesIn is what the files of a directory have.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	var texts []string
	for _, name := range names {
		if data, err := os.ReadFile(name); err != nil {
			t.Error(err)
		} else if len(data) > 0 {
			texts = append(texts, string(data))
		}
	}
	return texts
}

// TestSecretInTheTextOfACall: what is kept of a call so that it can be sent again has no secret; what an API signed is
// as it was.
func TestSecretInTheTextOfACall(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	known := redact.Known(secret)
	signed := json.RawMessage(`"` + secret + `"`)
	before := []model.Message{{Role: model.Assistant, Blocks: []model.Block{
		{Kind: model.Call, ID: "a", Opaque: json.RawMessage(`{"raw":"echo ` + secret + `"}`), Wire: "xnl"},
		{Kind: model.Thinking, Text: secret, Opaque: signed, Wire: "anthropic"},
	}}}
	blocks := engine.RedactMessages(known, before)[0].Blocks
	if strings.Contains(string(blocks[0].Opaque), secret) || string(blocks[1].Opaque) != string(signed) ||
		!strings.Contains(string(before[0].Blocks[0].Opaque), secret) {
		t.Errorf("%s, %s", blocks[0].Opaque, blocks[1].Opaque)
	}
}
