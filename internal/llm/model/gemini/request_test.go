package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/modelserver"
)

// sent is what a client sends for a request, and where.
func sent(t *testing.T, o Options, q model.Request) (at *http.Request, body string) {
	t.Helper()
	o.HTTP = &http.Client{Transport: canned{
		body:  events(finish("STOP")),
		asked: func(q *http.Request, b []byte) { at, body = q, string(b) },
	}}
	if _, err := New(o).Ask(t.Context(), q, nil); err != nil {
		t.Fatal(err)
	}
	return at, body
}

func same(t *testing.T, got, want string) {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(got), &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// conversation has all that there is, of this wire and of others.
func conversation() model.Request {
	png := model.Block{Kind: model.Image, Media: "image/png", Data: []byte("png")}
	q := offering()
	q.System = []string{"be", "", "brief"}
	q.Messages = append(q.Messages,
		model.Message{Role: model.Assistant, Blocks: []model.Block{
			{Kind: model.Thinking, Text: "hm"},
			{Kind: model.Thinking, Text: "marked", Opaque: json.RawMessage(`{"signature":"t"}`), Wire: wireName},
			{Kind: model.Thinking, Text: "foreign", Opaque: json.RawMessage(`{"signature":"no"}`), Wire: "anthropic"},
			{Kind: model.Text, Text: "I look.", Opaque: json.RawMessage(`{"signature":"u"}`), Wire: wireName},
			{
				Kind: model.Thinking, Opaque: json.RawMessage(`{"part":{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB"}}}`),
				Wire: wireName,
			},
			{
				Kind: model.Call, ID: "a", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`),
				Opaque: json.RawMessage(`{"signature":"v"}`), Wire: wireName,
			},
			{Kind: model.Call, ID: "b", Name: "Now", Input: json.RawMessage(`{}`), Broken: `{"x`},
		}},
		model.Message{Role: model.User, Blocks: []model.Block{
			{Kind: model.Text, Text: "by the way"},
			{Kind: model.Result, ID: "a", Text: "x.png", Parts: []model.Block{png}},
			{Kind: model.Result, ID: "b", Name: "Now", Text: "no JSON", Failed: true},
			{Kind: model.Image, Media: "image/gif", Data: []byte("GIF")},
			{Kind: model.File, Media: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")},
			{Kind: model.File, Media: "text/plain", Name: "a.txt", Data: []byte("A")},
			{Kind: model.Text},
		}},
		model.Message{Role: model.Assistant, Blocks: []model.Block{
			{Kind: model.Call, ID: "toolu_1", Name: "Now", Opaque: json.RawMessage(`"x"`), Wire: "anthropic"},
			{Kind: model.Call, ID: "toolu_2", Name: "Now"},
		}},
		model.Message{Role: model.User, Blocks: []model.Block{
			{Kind: model.Result, ID: "toolu_1"},
			{Kind: model.Result, ID: "toolu_2", Text: "2"},
		}},
		model.Message{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Thinking, Text: "cut off"}}},
	)
	return q
}

func TestRequest(t *testing.T) {
	const want = `{"systemInstruction":{"parts":[{"text":"be"},{"text":"brief"}]},"contents":[
		{"role":"user","parts":[{"text":"hello"}]},
		{"role":"model","parts":[{"text":"marked","thought":true,"thoughtSignature":"t"},{"text":"I look.","thoughtSignature":"u"},
			{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB"}},
			{"functionCall":{"id":"a","name":"Bash","args":{"command":"ls"}},"thoughtSignature":"v"},
			{"functionCall":{"id":"b","name":"Now","args":{}}}]},
		{"role":"user","parts":[
			{"functionResponse":{"id":"a","name":"Bash","response":{"output":"x.png"}}},
			{"functionResponse":{"id":"b","name":"Now","response":{"error":"no JSON"}}},
			{"inlineData":{"mimeType":"image/png","data":"cG5n"}},
			{"text":"by the way"},
			{"text":"[A picture (image/gif) stood here; it cannot be shown to this model.]"},
			{"inlineData":{"mimeType":"application/pdf","data":"JVBERg=="}},
			{"text":"[The file a.txt:]\nA"}]},
		{"role":"model","parts":[{"functionCall":{"id":"toolu_1","name":"Now","args":{}}UNMARKED},{"functionCall":{"id":"toolu_2","name":"Now","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"toolu_1","name":"Now","response":{"output":""}}},{"functionResponse":{"id":"toolu_2","name":"Now","response":{"output":"2"}}}]}],
		"tools":[{"functionDeclarations":[{"name":"Bash","description":"run","parametersJsonSchema":{"type":"object","properties":{"command":{"type":"string"},"a":{}},"required":["command"],"additionalProperties":false}},{"name":"Now"}]}]THINKING}`
	const thinking = `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`
	for name, row := range map[string]struct{ unmarked, thinking string }{
		"gemini-3-pro-preview": {
			`,"thoughtSignature":"skip_thought_signature_validator"`,
			thinking,
		},
		"gemini-flash-latest": {
			`,"thoughtSignature":"skip_thought_signature_validator"`,
			thinking,
		},
		"gemini-2.5-flash-lite": {"", thinking},
		"gemini-2.0-flash":      {"", ""},
		"gemma-3-27b-it":        {"", ""},
	} {
		q, body := sent(t, Options{Model: name, Key: " k\n"}, conversation())
		same(t, body, strings.NewReplacer("UNMARKED", row.unmarked, "THINKING", row.thinking).Replace(want))
		if at := "https://generativelanguage.googleapis.com/v1beta/models/" + name +
			":streamGenerateContent?alt=sse"; q.URL.String() != at {
			t.Error(q.URL)
		}
		if q.Header.Get("X-Goog-Api-Key") != "k" ||
			q.Header.Get("Authorization") != "" {
			t.Error(q.Header)
		}
	}
}

func TestAddress(t *testing.T) {
	for base, want := range map[string]string{
		"http://h": "http://h/v1beta/models/m:", "http://h/": "http://h/v1beta/models/m:",
		"http://h/v1beta/": "http://h/v1beta/models/m:", "http://h/x/v1": "http://h/x/v1/models/m:",
	} {
		for _, name := range []string{"m", "models/m"} {
			q, _ := sent(t, Options{
				Base: base, Model: name, Key: "unused",
				Bearer: func(context.Context) (string, error) { return "tok", nil },
			}, hello())
			if !strings.HasPrefix(q.URL.String(), want) || q.Header.Get("Authorization") != "Bearer tok" ||
				q.Header.Get("X-Goog-Api-Key") != "" {
				t.Error(q.URL, q.Header)
			}
		}
	}
	if q, _ := sent(t, Options{Base: "http://h", Model: "tunedModels/a b?c"},
		hello()); q.URL.String() != "http://h/v1beta/tunedModels/a%20b%3Fc:streamGenerateContent?alt=sse" {
		t.Error(q.URL)
	}
	_, err := New(Options{Base: "http://127.0.0.1:1", Bearer: func(context.Context) (string, error) {
		return "",
			errors.New("log in first")
	}}).Ask(t.Context(), hello(), nil)
	if e := trouble(t, err); e.Trouble != model.NoLogin || !strings.Contains(e.Message, "log in first") {
		t.Errorf("%+v", e)
	}
}

func TestSearch(t *testing.T) {
	const alone, beside = `"tools":[{"google_search":{}}]`,
		`{"google_search":{}}],"toolConfig":{"includeServerSideToolInvocations":true}`
	for _, row := range []struct {
		model string
		q     model.Request
		may   bool
		want  string
	}{
		{"gemini-2.5-pro", hello(), true, alone},
		{"gemini-2.5-pro", offering(), true, ""},
		{"gemini-3-pro", hello(), true, alone},
		{"gemini-3-pro", offering(), true, beside},
		{"gemini-3-pro", hello(), false, ""},
	} {
		row.q.Search = true
		_, body := sent(t, Options{Model: row.model, Profile: model.Profile{Search: row.may}}, row.q)
		if row.want == "" && strings.Contains(body, "search") || !strings.Contains(body, row.want) ||
			row.want == alone && strings.Contains(body, "toolConfig") {
			t.Errorf("%+v: %s", row, body)
		}
	}
	a, err := answer(t, events(
		parts(`{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]},"id":"1"},"thoughtSignature":"s"}`),
		parts(`{"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","response":{"search_suggestions":"<b>"},"id":"1"}},{"text":"found"}`), finish("STOP")))
	if err != nil || shown(a) != `() () "found" done` || a.Usage.Searches != 1 {
		t.Fatal(err, a)
	}
	q := hello()
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks}, hello().Messages[0])
	_, body := sent(t, Options{Model: "gemini-3-pro"}, q)
	if want := `{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]},"id":"1"},"thoughtSignature":"s"},{"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","response":{"search_suggestions":"<b>"},"id":"1"}},{"text":"found"}`; !strings.Contains(body, want) {
		t.Errorf("what the search did is not sent back as it came: %s", body)
	}
	a, err = answer(t,
		events(`{"candidates":[{"content":{"parts":[{"text":"found"}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["a","b"]}}]}`))
	if err != nil || a.Usage.Searches != 2 {
		t.Error(err, a)
	}
}

// The marks of an answer go back on the parts that they came with.
func TestMarksGoBack(t *testing.T) {
	const came = `{"text":"a"},{"text":"b","thoughtSignature":"1"},{"text":"","thoughtSignature":"2"},{"functionCall":{"id":"x","name":"X","args":{"k":[1]}},"thoughtSignature":"3"},{"functionCall":{"id":"y","name":"Y","args":{}}}`
	a, err := answer(t, events(parts(`{"text":"hm","thought":true}`), parts(came), finish("STOP")))
	if err != nil {
		t.Fatal(err)
	}
	q := hello()
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks})
	_, body := sent(t, Options{Model: "gemini-3-pro"}, q)
	if !strings.Contains(body, `"parts":[`+came+`]`) {
		t.Errorf("%s", body)
	}
}

func TestIDsGoOnAcrossResumes(t *testing.T) {
	q := hello()
	for range 3 {
		q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: []model.Block{
			{Kind: model.Call, ID: "toolu_x", Name: "X"},
			{Kind: model.Text, Text: "t"},
		}})
	}
	q.Messages[1].Blocks[0].ID = "call_gemini_5" // of a conversation that was shortened since
	c := canned{
		body: events(
			parts(`{"functionCall":{"name":"X"}},{"functionCall":{"name":"X"}},{"functionCall":{"id":"own","name":"X"}},{"functionCall":{"name":"X"}}`), finish("STOP")),
	}
	for range 2 {
		a, err := c.client().Ask(t.Context(), q, nil)
		if err != nil || shown(a) != `[call_gemini_4 X {}] [call_gemini_6 X {}] [own X {}] [call_gemini_8 X {}] calls` {
			t.Fatal(err, shown(a))
		}
	}
}

func serve(t *testing.T, script string) *modelserver.Server {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(s, modelserver.Options{Key: "secret-key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func at(s *modelserver.Server) model.Client {
	return New(Options{
		Base: s.URL(), Key: "secret-key", Model: "gemini-3-flash", First: 5 * time.Second, Idle: 150 * time.Millisecond,
	})
}

func TestAScript(t *testing.T) {
	server := serve(t, `[
		{"think":"I think."}, {"say":"I look."},
		{"calls":[{"call":{"name":"Bash","input":{"command":"ls <a> & \"b\" é"}}},{"call":{"name":"Now"}}], "usage":{"input":20,"output":9,"cached":4}},
		{"say":"done: ${result}"}]`)
	c, q := at(server), offering()
	heard := ""
	a, err := c.Ask(t.Context(), q, func(p model.Piece) { heard += string(p.Kind) + ":" + p.Text + ";" })
	if err != nil {
		t.Fatal(err)
	}
	calls := a.Calls()
	if len(calls) != 2 || string(calls[0].Input) != `{"command":"ls <a> & \"b\" é"}` || a.Text() != "I look." ||
		a.Stop != model.Calls || a.Reason != "STOP" {
		t.Errorf("%+v", a)
	}
	if heard != "thinking:I think.;text:I look.;" || a.Usage != (model.Usage{Input: 20, CacheRead: 4, Output: 9}) ||
		a.Model != "gemini-3-flash" || a.ID == "" {
		t.Errorf("%q %+v", heard, a)
	}
	results := model.Message{Role: model.User}
	for i, call := range calls {
		results.Blocks = append(results.Blocks, model.Block{
			Kind: model.Result, ID: call.ID, Name: call.Name, Text: "result", Failed: i == 0,
		})
	}
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks}, results)
	if a, err = c.Ask(t.Context(), q, nil); err != nil || a.Text() != "done: result" || a.Stop != model.Done {
		t.Errorf("%v %+v", err, a)
	}
	last := server.Requests()[1]
	if strings.Count(string(last.Raw), `"thoughtSignature":"c2lnbmF0dXJl"`) != 2 {
		t.Errorf("the marks did not go back: %s", last.Raw)
	}
	if b := last.Messages[2].Blocks; !b[0].Error || b[1].Error {
		t.Errorf("%+v", b)
	}
}

func TestFailures(t *testing.T) {
	for step, want := range map[string]model.Trouble{
		`{"error":400}`: model.Rejected, `{"error":401}`: model.NoLogin, `{"error":403}`: model.Forbidden,
		`{"error":404}`:                 model.Unknown,
		`{"error":429,"retry_after":2}`: model.Limited, `{"error":500}`: model.Broken,
		`{"error":503}`: model.Overloaded, `{"error":529}`: model.Overloaded,
		`{"error":"context_full"}`: model.Overflow,
		`{"cut":"headers"}`:        model.Cut, `{"cut":"start"}`: model.Cut,
		`{"say":"half of it, and more","cut":"middle"}`:   model.Cut,
		`{"stall":"start"}`:                               model.Stalled,
		`{"say":"half of it, and more","stall":"middle"}`: model.Stalled,
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			heard := false
			_, err := at(serve(t, "["+step+"]")).Ask(t.Context(), offering(), func(model.Piece) { heard = true })
			e := trouble(t, err)
			if e.Trouble != want || e.Emitted != heard || heard && len(e.Partial) != 1 {
				t.Errorf("%s: %+v", step, e)
			}
			if strings.Contains(step, "retry_after") && e.After != 2*time.Second {
				t.Errorf("after %s", e.After)
			}
		})
	}
}

func TestSlowStoppedAndLate(t *testing.T) {
	server := serve(t, `[{"say":"one two three four five six seven eight nine ten eleven twelve", "slow":"60ms"}]`)
	if a, err := at(server).Ask(t.Context(), offering(), nil); err != nil || !strings.HasSuffix(a.Text(), "twelve") {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := at(serve(t, `[{"say":"half of it, and more","stall":"middle"}]`)).Ask(ctx, offering(),
		func(model.Piece) { stop() })
	if e := trouble(t, err); e.Trouble != model.Stopped || !e.Emitted || e.Again() {
		t.Errorf("%+v", e)
	}
	late, err := modelserver.Start(halves{}, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	_, err = at(late).Ask(t.Context(), hello(), nil)
	if e := trouble(t, err); e.Trouble != model.Overloaded || e.Partial[0].Text != "half" {
		t.Errorf("%+v", e)
	}
}

// halves says something and fails then.
type halves struct{}

func (halves) Answer(_ context.Context, _ *modelserver.Request, w modelserver.Writer) error {
	if err := w.Text("half"); err != nil {
		return err
	}
	return w.Fail(modelserver.Failure{Status: 529})
}

func TestCount(t *testing.T) {
	server := serve(t, `[]`)
	n, exact, err := at(server).Count(t.Context(), conversation())
	if err != nil || !exact || n < 300 { // it counts four bytes a token
		t.Error(n, exact, err)
	}
	var body string
	count := func(status int, answer string) (int64, bool, error) {
		c := New(Options{
			Model: "gemini-3-pro",
			HTTP: &http.Client{Transport: canned{
				status: status, body: []byte(answer), asked: func(_ *http.Request, b []byte) { body = string(b) },
			}},
		})
		return c.Count(t.Context(), hello())
	}
	if n, exact, err := count(200, `{"totalTokens":31}`); n != 31 || !exact || err != nil {
		t.Error(n, exact, err)
	}
	if !strings.HasPrefix(body, `{"generateContentRequest":{"model":"models/gemini-3-pro","contents":[`) {
		t.Error(body)
	}
	if n, exact, err := count(404, ``); n != 2 || exact || err != nil {
		t.Error(n, exact, err)
	}
	if n, exact, err := count(200, `{}`); n != 2 || exact || err != nil {
		t.Error(n, exact, err)
	}
	if _, _, err := count(401, ``); trouble(t, err).Trouble != model.NoLogin {
		t.Error(err)
	}
}
