package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
)

// sent is what a client sends for a request, and where.
func sent(t *testing.T, w wireOf, o Options, q model.Request) (*http.Request, string) {
	t.Helper()
	var got *http.Request
	var body []byte
	o.HTTP = &http.Client{Transport: tripper(func(q *http.Request) (*http.Response, error) {
		got = q
		body, _ = io.ReadAll(q.Body)
		return canned{body: events(finish("stop"), `{"type":"response.completed"}`)}.RoundTrip(q)
	})}
	if _, err := w.make(o).Ask(t.Context(), q, nil); err != nil {
		t.Fatal(err)
	}
	return got, string(body)
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

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
func conversation(own string) model.Request {
	png := model.Block{Kind: model.Image, Media: "image/png", Data: []byte("png")}
	opaque := map[string]string{
		chatWire:      `"reasoning_content"`,
		responsesWire: `{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"}`,
	}[own]
	return model.Request{
		System: []string{"be", "brief"},
		Tools:  tools(),
		Messages: []model.Message{
			{Role: model.User, Blocks: []model.Block{
				{Kind: model.Text, Text: "look"},
				{Kind: model.Text, Text: "here"},
			}},
			{Role: model.Assistant, Blocks: []model.Block{
				{Kind: model.Thinking, Text: "hm", Opaque: json.RawMessage(opaque), Wire: own},
				{Kind: model.Thinking, Text: "foreign", Opaque: json.RawMessage(`"x"`), Wire: "anthropic"},
				{Kind: model.Text, Text: "I look."},
				{Kind: model.Call, ID: "a", Name: "Bash", Input: json.RawMessage(`{"command": "ls"}`)},
				{
					Kind: model.Call, ID: "b", Name: "Now", Input: json.RawMessage(`{}`), Broken: `{"x`,
					Opaque: json.RawMessage(`{"signature":"s"}`), Wire: "gemini",
				},
			}},
			{Role: model.User, Blocks: []model.Block{
				{Kind: model.Text, Text: "by the way"},
				{Kind: model.Result, ID: "a", Name: "Bash", Text: "x.png", Parts: []model.Block{png}},
				{Kind: model.Result, ID: "b", Name: "Now", Text: "no JSON", Failed: true},
				png,
				{Kind: model.Image, Media: "image/svg+xml", Data: []byte("<svg/>")},
				{Kind: model.File, Media: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")},
				{Kind: model.File, Media: "text/plain", Name: "a.txt", Data: []byte("A")},
			}},
			{
				Role: model.Assistant,
				Blocks: []model.Block{{
					Kind: model.Thinking, Text: "cut off", Opaque: json.RawMessage(opaque), Wire: own,
				}},
			},
		},
		Search: true,
	}
}

const toolA = `{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`

func TestChatRequest(t *testing.T) {
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}`
	const want = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"LIMIT":99,"messages":[
		{"role":"system","content":"be\n\nbrief"},
		{"role":"user","content":"look\n\nhere"},
		{"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[
			{"id":"a","type":"function","function":{"name":"Bash","arguments":"{\"command\": \"ls\"}"}},
			{"id":"b","type":"function","function":{"name":"Now","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"x.png"},
		{"role":"tool","tool_call_id":"b","content":"no JSON"},
		{"role":"user","content":[{"type":"text","text":"[What the call a returned beside its text:]"},` + image + `,
			{"type":"text","text":"by the way"},` + image + `,
			{"type":"text","text":"[A picture (image/svg+xml) stood here; it cannot be shown to this model.]"},
			PDF,
			{"type":"text","text":"[The file a.txt:]\nA"}]}],
		"tools":[{"type":"function","function":{"name":"Bash","description":"run","parameters":` + toolA + `}},
			{"type":"function","function":{"name":"Now","parameters":{"type":"object","properties":{}}}}]}`
	const pdf = `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}}`
	const noPDF = `{"type":"text","text":"[The file a.pdf (application/pdf) stood here; it cannot be shown to this model.]"}`
	for base, row := range map[string]struct{ at, limit, pdf string }{
		"":                          {"https://api.openai.com/v1/chat/completions", "max_completion_tokens", pdf},
		"http://127.0.0.1:8080/v1/": {"http://127.0.0.1:8080/v1/chat/completions", "max_tokens", noPDF},
		"https://me.openai.azure.com/openai/deployments/d?api-version=1": {
			"https://me.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", "max_completion_tokens",
			pdf,
		},
	} {
		q, body := sent(t, both()[0],
			Options{Base: base, Key: " k\n", Model: "m", Profile: model.Profile{Limit: 99}}, conversation(chatWire))
		same(t, body, strings.NewReplacer("LIMIT", row.limit, "PDF", row.pdf).Replace(want))
		if q.URL.String() != row.at || q.Method != http.MethodPost {
			t.Errorf("%s: %s %v", base, q.URL, q.Header)
		}
		name, value := "Authorization", "Bearer k"
		if strings.Contains(base, "azure") {
			name, value = "Api-Key", "k"
		}
		if q.Header.Get(name) != value || name == "Api-Key" && q.Header.Get("Authorization") != "" {
			t.Errorf("%s: %v", base, q.Header)
		}
	}
}

func TestChatThinkingGoesNowhereElse(t *testing.T) {
	q := conversation("openai-responses")
	_, body := sent(t, both()[0], Options{Base: "http://h", Model: "m"}, q)
	if strings.Contains(body, "reasoning_content") || strings.Contains(body, "hm") ||
		strings.Contains(body, "encrypted") {
		t.Error(body)
	}
	// A call without thinking needs the member where the others have it.
	q = conversation(chatWire)
	q.Messages = append(q.Messages,
		model.Message{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Call, ID: "c", Name: "Now"}}},
		model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Result, ID: "c", Text: "1"}}},
		model.Message{Role: model.Assistant, Blocks: []model.Block{
			{Kind: model.Thinking, Text: "zz", Wire: chatWire},
			{Kind: model.Text, Text: "said"},
		}})
	_, body = sent(t, both()[0], Options{Base: "http://h", Model: "m"}, q)
	if !strings.Contains(body, `{"role":"assistant","content":null,"reasoning_content":"","tool_calls":[{"id":"c"`) ||
		strings.Contains(body, "zz") {
		t.Error(body)
	}
}

func TestResponsesRequest(t *testing.T) {
	const image = `{"type":"input_image","image_url":"data:image/png;base64,cG5n"}`
	const want = `{"model":"m","instructions":"be\n\nbrief","stream":true,"store":false,"include":["reasoning.encrypted_content"],
		"reasoning":{"summary":"auto"},"input":[
		{"type":"message","role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_text","text":"here"}]},
		{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
		{"type":"function_call","call_id":"a","name":"Bash","arguments":"{\"command\": \"ls\"}"},
		{"type":"function_call","call_id":"b","name":"Now","arguments":"{}"},
		{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x.png"},` + image + `]},
		{"type":"function_call_output","call_id":"b","output":"no JSON"},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"by the way"},` + image + `,
			{"type":"input_text","text":"[A picture (image/svg+xml) stood here; it cannot be shown to this model.]"},
			{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="},
			{"type":"input_text","text":"[The file a.txt:]\nA"}]}],
		"tools":[{"type":"function","name":"Bash","description":"run","parameters":` + toolA + `,"strict":false},
			{"type":"function","name":"Now","parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search"}]}`
	q, body := sent(t, both()[1], Options{Model: "m", Profile: model.Profile{Search: true}, Bearer: token("tok", nil)},
		conversation(responsesWire))
	same(t, body, want)
	if q.URL.String() != "https://api.openai.com/v1/responses" || q.Header.Get("Authorization") != "Bearer tok" {
		t.Errorf("%s %v", q.URL, q.Header)
	}
	_, body = sent(t, both()[1], Options{Model: "gpt-4.1-mini"}, conversation("other"))
	if strings.Contains(body, "reasoning") || strings.Contains(body, "include") ||
		strings.Contains(body, "web_search") {
		t.Error(body)
	}
}

func token(value string, err error) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, err }
}

func TestNoToken(t *testing.T) {
	for _, w := range both() {
		_, err := w.make(Options{
			Base:   "http://127.0.0.1:1",
			Bearer: token("", errors.New("log in first")),
		}).Ask(t.Context(), hello(), nil)
		if e := trouble(t, err); e.Trouble != model.NoLogin || !strings.Contains(e.Message, "log in first") {
			t.Errorf("%+v", e)
		}
	}
}

func TestProfileAndCount(t *testing.T) {
	for _, w := range both() {
		c := w.make(Options{Model: "m"})
		if p := c.Profile(); p.Provider != "openai" || p.Model != "m" {
			t.Errorf("%+v", p)
		}
		if p := w.make(Options{
			Model:   "m",
			Profile: model.Profile{Provider: "codex", Model: "n"},
		}).Profile(); p.Provider != "codex" || p.Model != "n" {
			t.Errorf("%+v", p)
		}
		if n, exact, err := c.Count(t.Context(), hello()); n != 2 || exact || err != nil {
			t.Error(n, exact, err)
		}
	}
}

func TestReasons(t *testing.T) {
	for name, want := range map[string]bool{
		"gpt-6.1-sol": true, "o3": true, "gpt-5": true, "openai/gpt-5-mini": true, "m": true,
		"gpt-4o": false, "openai/gpt-4.1": false, "gpt-3.5-turbo": false, "chatgpt-4o-latest": false,
		"gpt-5-chat-latest": false,
	} {
		if reasons(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// picky is a server that knows some members by other names than the client thinks, or not at all.
func picky(t *testing.T, refused map[string]string) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		*asked++
		var body map[string]json.RawMessage
		if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		for name, message := range refused {
			if body[name] != nil {
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{
					"message": message,
					"type":    "invalid_request_error",
				}})
				return
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(events(delta(`{"content":"hi"}`), finish("stop")))
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestChatLearnsTheSpelling(t *testing.T) {
	for name, row := range map[string]struct {
		refused map[string]string
		asked   int
		ok      bool
	}{
		"usage": {
			map[string]string{"stream_options": "Unrecognized request argument supplied: stream_options"},
			2,
			true,
		},
		"limit": {
			map[string]string{
				"max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use " +
					"'max_completion_tokens' instead.",
			}, 2, true,
		},
		"both": {map[string]string{
			"stream_options": "stream_options: Extra inputs are not permitted",
			"max_tokens":     "unknown field max_tokens",
		}, 3, true},
		"neither": {map[string]string{
			"max_tokens":            "unknown field max_tokens",
			"max_completion_tokens": "unknown field max_completion_tokens",
		}, 2, false},
		"its value": {map[string]string{"max_tokens": "max_tokens is too large: 99"}, 1, false},
		"else":      {map[string]string{"model": "no such thing"}, 1, false},
	} {
		url, asked := picky(t, row.refused)
		c := NewChat(Options{Base: url, Model: "m", Profile: model.Profile{Limit: 99}})
		q := hello()
		a, err := c.Ask(t.Context(), q, nil)
		if (err == nil) != row.ok || row.ok && shown(a) != `"hi" done` || *asked != row.asked {
			t.Errorf("%s: %v, asked %d times", name, err, *asked)
		}
		if !row.ok {
			trouble(t, err)
			continue
		}
		if _, err := c.Ask(t.Context(), q, nil); err != nil || *asked != row.asked+1 {
			t.Errorf("%s: it is not remembered: %v, asked %d times", name, err, *asked)
		}
	}
}
