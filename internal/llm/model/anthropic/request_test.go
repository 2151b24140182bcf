package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sent is the body that a request becomes.
func sent(t testing.TB, o Options, q model.Request) []byte {
	t.Helper()
	data, err := json.Marshal(New(o).(*client).request(q))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func text(s string) model.Block { return model.Block{Kind: model.Text, Text: s} }

func long() model.Request {
	answer := whole()
	return model.Request{
		System: []string{"You are careful.", " ", "The directory is /w."},
		Tools: []event.ToolSpec{{
			Name: "Bash", Description: "runs",
			Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`),
		}, {Name: "Now"}},
		Search: true,
		Messages: []model.Message{
			{Role: model.User, Blocks: []model.Block{
				text("look"), text(""),
				{Kind: model.Image, Media: "image/png", Data: []byte("png")},
				{Kind: model.Image, Media: "image/tiff", Data: []byte("tiff")},
				{Kind: model.File, Media: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")},
				{Kind: model.File, Media: "text/plain; charset=utf-8", Name: "a.txt", Data: []byte("a\xff")},
				{Kind: model.File, Media: "application/zip", Name: "a.zip", Data: []byte("PK")},
				{Kind: model.File, Media: "application/pdf"},
			}},
			{Role: model.User, Blocks: []model.Block{text("well?")}},
			{Role: model.Assistant, Blocks: answer.Blocks},
			{Role: model.User, Blocks: []model.Block{
				text("and this"),
				{
					Kind: model.Result, ID: "toolu_2", Name: "Read", Text: "late",
					Parts: []model.Block{{Kind: model.Image, Media: "image/jpeg", Data: []byte("jpg")}},
				},
				{Kind: model.Result, ID: "toolu_1", Name: "Bash", Text: " \n", Failed: true},
				{Kind: model.Result, ID: "gone", Name: "Bash", Text: "of another time"},
			}},
			{Role: model.Assistant, Blocks: []model.Block{
				{Kind: model.Thinking, Text: "unsealed"},
				{Kind: model.Thinking, Text: "another's", Opaque: json.RawMessage(`{"signature":"x"}`), Wire: "openai"},
				text("said"),
				{Kind: model.Call, ID: "call:1/ä", Name: "my.tool", Input: json.RawMessage(`{}`), Broken: "{"},
				{Kind: model.Call, ID: "call:1/ä", Name: ""},
			}},
			{Role: model.User, Blocks: []model.Block{
				{Kind: model.Result, ID: "call:1/ä", Text: "one"},
				{Kind: model.Result, ID: "call:1/ä", Text: "\n"},
			}},
			{Role: model.Assistant, Blocks: []model.Block{text(" \n")}},
			{Role: model.User, Blocks: []model.Block{text("go on")}},
		},
	}
}

func TestRequest(t *testing.T) {
	var got bytes.Buffer
	_ = json.Indent(&got, sent(t, Options{Model: "m", Profile: model.Profile{Output: 32000}}, long()), "", "\t")
	got.WriteByte('\n')
	const name = "testdata/request.json"
	if *update {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%v\n%s", err, got.String())
	}
	if err := lawful(got.Bytes()); err != nil {
		t.Error(err)
	}
}

// A conversation's beginning is the same bytes when it has grown, but for the marks: else nothing is ever found in the
// cache.
func TestPrefixStays(t *testing.T) {
	q := long()
	all := sent(t, Options{Model: "m"}, model.Request{Messages: q.Messages, NoCache: true})
	for n := 1; n < len(q.Messages); n++ {
		if q.Messages[n].Role != model.Assistant { // where it is the model's turn
			continue
		}
		part := sent(t, Options{Model: "m"}, model.Request{Messages: q.Messages[:n], NoCache: true})
		part = bytes.TrimSuffix(part, []byte(`]}],"stream":true}`))
		if !bytes.HasPrefix(all, part) {
			t.Errorf("%d messages:\n%s\n%s", n, part, all)
		}
	}
}

// An answer that paused goes back as it is, the half of a search in it too, but for blanks at its end; when it went on
// without the other half, the half is left out.
func TestPaused(t *testing.T) {
	half := model.Block{
		Kind: model.Text, Wire: Wire,
		Opaque: json.RawMessage(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`),
	}
	q := hello()
	q.Messages = append(q.Messages,
		model.Message{Role: model.Assistant, Blocks: []model.Block{half, text("so far \n")}})
	if got := string(sent(t, Options{}, q)); !strings.Contains(got,
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"text","text":"so far"}]}]`) {
		t.Error(got)
	}
	q.Messages = append(q.Messages, hello().Messages...)
	if got := string(sent(t, Options{}, q)); strings.Contains(got, "server_tool_use") ||
		!strings.Contains(got, `"so far \n"`) {
		t.Error(got)
	}
}

// The same conversation twice is not changed by being sent.
func TestRequestChangesNothing(t *testing.T) {
	q := long()
	q.Messages[0].Blocks = append(make([]model.Block, 0, 100), q.Messages[0].Blocks...)
	defer func() {
		if b := q.Messages[0].Blocks; b[:len(b)+1][len(b)].Kind != "" {
			t.Error("behind its end it did")
		}
	}()
	before, _ := json.Marshal(q)
	first := sent(t, Options{Model: "m"}, q)
	second := sent(t, Options{Model: "m"}, q)
	if after, _ := json.Marshal(q); !bytes.Equal(before, after) || !bytes.Equal(first, second) {
		t.Error("it did")
	}
}

func TestLimitsOfTheRequest(t *testing.T) {
	for _, c := range []struct {
		q       model.Request
		profile int64
		want    string
	}{
		{model.Request{}, 0, `"max_tokens":8192`},
		{model.Request{}, 64000, `"max_tokens":64000`},
	} {
		got := sent(t, Options{Model: "m", Profile: model.Profile{Output: c.profile}}, c.q)
		if !strings.Contains(string(got), c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// lawful says what the API would say of a request, as far as is known.
func lawful(body []byte) error {
	type part struct {
		Type      string
		Text      string
		ID, Name  string
		Input     json.RawMessage
		ToolUse   string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
		Thinking  *string
		Signature string
		Cache     any `json:"cache_control"`
	}
	var r struct {
		MaxTokens int64 `json:"max_tokens"`
		System    []part
		Tools     []part
		Messages  []struct {
			Role    string
			Content []part
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	marks := 0
	for _, p := range append(r.System, r.Tools...) {
		if p.Cache != nil {
			marks++
		}
	}
	ids, waiting := map[string]bool{}, []string{}
	for i, m := range r.Messages {
		want := "user"
		if i%2 == 1 {
			want = "assistant"
		}
		if m.Role != want || len(m.Content) == 0 {
			return fmt.Errorf("message %d is of %s and has %d parts", i, m.Role, len(m.Content))
		}
		for j, p := range m.Content {
			if p.Cache != nil {
				marks++
			}
			switch {
			case p.Type == "text" && strings.TrimSpace(p.Text) == "":
				return fmt.Errorf("message %d has an empty text", i)
			case p.Type == "tool_use":
				if strings.Trim(p.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" ||
					p.ID == "" || ids[p.ID] || p.Name == "" || p.Input[0] != '{' {
					return fmt.Errorf("message %d has a bad call %+v", i, p)
				}
				ids[p.ID] = true
				waiting = append(waiting, p.ID)
			case p.Type == "tool_result":
				if len(waiting) == 0 || waiting[0] != p.ToolUse || j > 0 && m.Content[j-1].Type != "tool_result" {
					return fmt.Errorf("message %d has a result %s, waiting are %v", i, p.ToolUse, waiting)
				}
				if len(p.Content) < 3 {
					return fmt.Errorf("message %d has an empty result", i)
				}
				waiting = waiting[1:]
			case p.Type == "thinking" && (p.Signature == "" || p.Thinking == nil), m.Role == "user" &&
				p.Type == "thinking", m.Role == "user" && p.Type == "tool_use":
				return fmt.Errorf("message %d: %+v", i, p)
			}
		}
		if m.Role == "user" && len(waiting) > 0 {
			return fmt.Errorf("message %d has no result for %v", i, waiting)
		}
	}
	if marks > 4 || len(waiting) > 0 {
		return fmt.Errorf("%d marks, waiting are %v", marks, waiting)
	}
	return nil
}

// Whatever a conversation looks like, the API takes it, and no text of it is lost.
func TestAnyConversation(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := model.Request{System: []string{"s", ""}, Tools: []event.ToolSpec{{Name: "a"}}, Search: r.IntN(2) == 0}
		ids := []string{"a", "b", "c", "", "ü.", "ü,"}
		var texts []string
		for range r.IntN(9) {
			m := model.Message{Role: []model.Role{model.User, model.Assistant}[r.IntN(2)]}
			for range r.IntN(5) {
				id := ids[r.IntN(len(ids))]
				word := fmt.Sprintf("<%d>", len(texts))
				b := []model.Block{
					text(word), text(" \n"),
					{Kind: model.Thinking, Text: "t"},
					{Kind: model.Thinking, Text: "t", Wire: Wire, Opaque: json.RawMessage(`{"signature":"s"}`)},
					{Kind: model.Call, ID: id, Name: "n"},
					{Kind: model.Result, ID: id, Text: word},
					{Kind: model.Result, ID: id, Failed: true},
					{Kind: model.Image, Media: "image/png", Data: []byte("x")},
					{
						Kind: model.Text, Wire: Wire,
						Opaque: json.RawMessage(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`),
					},
				}[r.IntN(9)]
				own := b.Kind == model.Text && b.Text == word || b.Kind == model.Result && b.Text == word &&
					m.Role == model.User
				if own {
					texts = append(texts, word)
				}
				m.Blocks = append(m.Blocks, b)
			}
			q.Messages = append(q.Messages, m)
		}
		body := sent(t, Options{Model: "m"}, q)
		if err := lawful(body); err != nil {
			in, _ := json.Marshal(q.Messages)
			t.Fatalf("%d: %v\n%s\n%s", seed, err, in, body)
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(json.RawMessage(body))
		plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(b.String())
		for _, s := range texts {
			if strings.Count(plain, s) != 1 {
				in, _ := json.Marshal(q.Messages)
				t.Fatalf("%d: %s is there %d times\n%s\n%s", seed, s, strings.Count(plain, s), in, plain)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got = q.Header
		_, _ = io.WriteString(w, everything(t))
	}))
	defer s.Close()
	ask := func(o Options) error {
		o.Base = s.URL
		_, err := New(o).Ask(t.Context(), hello(), nil)
		return err
	}
	if err := ask(Options{Key: "key-1"}); err != nil || got.Get("X-Api-Key") != "key-1" ||
		got.Get("Authorization") != "" || got.Get("Anthropic-Version") != "2023-06-01" {
		t.Error(err, got)
	}
	n := 0
	bearer := func(context.Context) (string, error) {
		if n++; n > 1 {
			return "", errors.New("expired")
		}
		return "token", nil
	}
	if err := ask(Options{Key: "key-1", Bearer: bearer}); err != nil || got.Get("X-Api-Key") != "" ||
		got.Get("Authorization") != "Bearer token" {
		t.Error(err, got)
	}
	if err := ask(Options{Bearer: bearer}); failed(t, err).Trouble != model.NoLogin || n != 2 {
		t.Error(err)
	}
	if err := ask(Options{}); err != nil || got.Get("X-Api-Key") != "" {
		t.Error(err, got)
	}
	if _, err := New(Options{}).Ask(t.Context(), hello(), nil); failed(t, err).Trouble != model.NoLogin {
		t.Error(err)
	}
}

func TestCount(t *testing.T) {
	var body []byte
	var path string
	status := 200
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		path = q.URL.Path
		body, _ = io.ReadAll(q.Body)
		w.WriteHeader(status)
		if status == 200 {
			_, _ = io.WriteString(w, `{"input_tokens":1234}`)
		}
	}))
	defer s.Close()
	c := client0(t, s.URL)
	n, exact, err := c.Count(t.Context(), long())
	if err != nil || n != 1234 || !exact || path != "/v1/messages/count_tokens" ||
		bytes.Contains(body, []byte("max_tokens")) || bytes.Contains(body, []byte(`"stream"`)) {
		t.Error(n, exact, err, path, string(body))
	}
	for _, status = range []int{404, 429, 500} {
		if n, exact, err = c.Count(t.Context(), long()); err != nil || n != model.Estimate(long()) || n < 100 || exact {
			t.Error(n, exact, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err = c.Count(ctx, long()); failed(t, err).Trouble != model.Stopped {
		t.Error(err)
	}
	if p := c.Profile(); p.Provider != "anthropic" || p.Model != "m" {
		t.Error(p)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status     int
		kind, says string
		want       model.Trouble
	}{
		{400, "invalid_request_error", "max_tokens: must be positive", model.Rejected},
		{400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum", model.Overflow},
		{
			400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
			model.Overflow,
		},
		{400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", model.Quota},
		{400, "invalid_request_error", "You have reached your specified API usage limits.", model.Quota},
		{401, "authentication_error", "invalid x-api-key", model.NoLogin},
		{402, "billing_error", "pay", model.Quota},
		{403, "permission_error", "no", model.Forbidden},
		{404, "not_found_error", "model: x", model.Unknown},
		{413, "request_too_large", "no", model.Overflow},
		{429, "rate_limit_error", "slow", model.Limited},
		{500, "api_error", "oops", model.Broken},
		{504, "timeout_error", "late", model.Broken},
		{529, "overloaded_error", "Overloaded", model.Overloaded},
		{418, "new_error", "new", model.Rejected},
		{502, "", "", model.Broken},
	} {
		data, _ := json.Marshal(map[string]any{
			"type":  "error",
			"error": map[string]any{"type": c.kind, "message": c.says}, "request_id": "req_1",
		})
		if c.kind == "" {
			data = []byte("<html>")
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write(data)
		}))
		_, err := client0(t, s.URL).Ask(t.Context(), hello(), nil)
		e := failed(t, err)
		if e.Trouble != c.want || e.Status != c.status || e.Code != c.kind || c.kind != "" &&
			(e.Message != c.says || e.Request != "req_1") || e.Emitted || e.Partial != nil {
			t.Errorf("%d %s: %#v", c.status, c.kind, e)
		}
		s.Close()
		if c.kind == "" {
			continue
		}
		// The same in the middle of an answer.
		begun := everything(t)[:1200]
		begun = begun[:strings.LastIndex(begun, "\n\n")+2] + "event: error\ndata: " + string(data) + "\n\n"
		a, pieces, err := heard(t.Context(), client0(t, answers(t, begun).URL), hello())
		want := c.want
		if c.kind == "new_error" {
			want = model.Broken // there is no status that would say more
		}
		if e := failed(t, err); a != nil || e.Trouble != want || e.Status != 0 || e.Code != c.kind ||
			e.Message != c.says || !e.Emitted || e.Usage.CacheRead != 200 {
			t.Errorf("%s in the stream: %#v", c.kind, e)
		}
		partial(t, failed(t, err), pieces)
	}
}
