package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/testkit/hermetic"
)

// canned answers every request with the same bytes, cut into the pieces that it is told, and then ends as it is told.
type canned struct {
	status int
	body   []byte
	cut    int   // a read ends here
	end    error // nil: io.EOF
	asked  func(*http.Request, []byte)
}

func (c canned) RoundTrip(q *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(q.Body)
	_ = q.Body.Close()
	if c.asked != nil {
		c.asked(q, body)
	}
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if c.end == nil {
		c.end = io.EOF
	}
	return &http.Response{StatusCode: c.status, Request: q, Header: http.Header{}, Body: &pieces{c: c}}, nil
}

type pieces struct {
	c  canned
	at int
}

func (p *pieces) Read(b []byte) (int, error) {
	rest := p.c.body[p.at:]
	if p.at < p.c.cut {
		rest = p.c.body[p.at:p.c.cut]
	}
	if len(rest) == 0 {
		return 0, p.c.end
	}
	n := copy(b, rest)
	p.at += n
	return n, nil
}

func (p *pieces) Close() error { return nil }

func (c canned) client() model.Client {
	return New(Options{Base: "http://api.test", Model: "gemini-3-flash", HTTP: &http.Client{Transport: c}})
}

func events(data ...string) []byte {
	var b bytes.Buffer
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\r\n\r\n", d)
	}
	return b.Bytes()
}

func parts(list string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + list +
		`]},"index":0}],"modelVersion":"m","responseId":"r"}`
}

func finish(reason string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"` + reason + `"}]}`
}

func hello() model.Request {
	return model.Request{Messages: []model.Message{{
		Role:   model.User,
		Blocks: []model.Block{{Kind: model.Text, Text: "hello"}},
	}}}
}

func offering() model.Request {
	q := hello()
	q.Tools = []event.ToolSpec{
		{
			Name: "Bash", Description: "run",
			Input: json.RawMessage(
				`{"$schema":"x","type":"object","properties":{"command":{"type":"string"},"a":{}},"required":["command"],"additionalProperties":false}`),
		},
		{Name: "Now"},
	}
	return q
}

func answer(t *testing.T, body []byte) (*model.Answer, error) {
	t.Helper()
	return canned{body: body}.client().Ask(t.Context(), hello(), nil)
}

// shown is an answer in one line.
func shown(a *model.Answer) string {
	var b strings.Builder
	for _, block := range a.Blocks {
		switch block.Kind {
		case model.Call:
			fmt.Fprintf(&b, "[%s %s %s", block.ID, block.Name, block.Input)
			if block.Broken != "" {
				fmt.Fprintf(&b, " broken %s", block.Broken)
			}
			b.WriteString("]")
		case model.Thinking:
			fmt.Fprintf(&b, "(%s)", block.Text)
		default:
			fmt.Fprintf(&b, "%q", block.Text)
		}
		b.WriteString(" ")
	}
	return b.String() + string(a.Stop)
}

func trouble(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("no typed error: %v", err)
	}
	if e.Trouble == "" || e.Message == "" {
		t.Errorf("an error without a sort or words: %+v", e)
	}
	return e
}

// scenario is a conversation with a server that says what is written down.
type scenario struct {
	ID    string
	Turns []struct {
		SSE  []string
		Want struct {
			Text, Stop, Trouble string
			Calls               []string
			Usage               []int64
		}
	}
}

func TestScenarios(t *testing.T) {
	data, err := os.ReadFile("testdata/scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []scenario
	if err := json.Unmarshal(data, &all); err != nil || len(all) < 3 {
		t.Fatal(len(all), err)
	}
	for _, s := range all {
		t.Run(s.ID, func(t *testing.T) { s.run(t) })
	}
}

func (s scenario) run(t *testing.T) {
	turn := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(events(s.Turns[turn].SSE...))
	}))
	defer server.Close()
	q := hello()
	for ; turn < len(s.Turns); turn++ {
		ctx, stop := context.WithTimeout(t.Context(), hermetic.Patience)
		said := ""
		// A client of its own for each turn: ids must not depend on what a client has seen before.
		a, err := New(Options{Base: server.URL, Key: "k", Model: "m"}).Ask(ctx, q,
			func(p model.Piece) { said += p.Text })
		stop()
		want := s.Turns[turn].Want
		if said != want.Text {
			t.Errorf("turn %d: heard %q, want %q", turn, said, want.Text)
		}
		if want.Trouble != "" {
			if e := trouble(t, err); string(e.Trouble) != want.Trouble || !e.Emitted || e.Partial[0].Text != want.Text {
				t.Errorf("turn %d: %+v", turn, e)
			}
			continue
		}
		if err != nil {
			t.Fatal(turn, err)
		}
		expected := ""
		if want.Text != "" {
			expected = fmt.Sprintf("%q ", want.Text)
		}
		for _, c := range want.Calls {
			expected += "[" + c + "] "
		}
		if got := shown(a); got != expected+want.Stop {
			t.Errorf("turn %d: %s, want %s", turn, got, expected+want.Stop)
		}
		if u := a.Usage; len(want.Usage) == 2 && (u != model.Usage{Input: want.Usage[0], Output: want.Usage[1]}) ||
			len(want.Usage) == 0 && (!u.Estimated || u.Input < 1 || u.Output < 1) {
			t.Errorf("turn %d: usage %+v", turn, u)
		}
		results := model.Message{Role: model.User}
		for _, c := range a.Calls() {
			results.Blocks = append(results.Blocks, model.Block{Kind: model.Result, ID: c.ID, Name: c.Name, Text: "hi"})
		}
		q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks}, results)
	}
}

func golden(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("../../modelserver/testdata/golden/gemini-stream.txt")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const whole = `(First I think about it.) "Then I say <something> long enough." [call_4 bash {"command":"ls -l | grep modelserver"}] [call_6 bash {}] calls`

func TestCutAtEveryByte(t *testing.T) {
	for i := range len(golden(t)) {
		var said strings.Builder
		a, err := canned{body: golden(t), cut: i}.client().Ask(t.Context(), hello(),
			func(p model.Piece) { said.WriteString(p.Text) })
		if err != nil {
			t.Fatalf("cut at %d: %v", i, err)
		}
		if shown(a) != whole || (a.Usage != model.Usage{Input: 11, CacheRead: 5, Output: 7}) ||
			said.String() != "First I think about it.Then I say <something> long enough." {
			t.Fatalf("cut at %d: %s %+v, heard %q", i, shown(a), a.Usage, said.String())
		}
	}
}

func TestEndsAtEveryByte(t *testing.T) {
	body, cut := golden(t), 0
	for i := range body {
		a, err := canned{body: body[:i], end: []error{io.EOF, io.ErrUnexpectedEOF}[i%2]}.client().Ask(t.Context(),
			hello(), nil)
		if err == nil {
			if shown(a) != whole || a.Usage.Output != 7 {
				t.Fatalf("the first %d bytes are another answer: %s %+v", i, shown(a), a.Usage)
			}
			continue
		}
		if e := trouble(t, err); e.Trouble != model.Cut ||
			slices.ContainsFunc(e.Partial, func(b model.Block) bool { return b.Kind == model.Call }) {
			t.Fatalf("the first %d bytes: %+v", i, e)
		}
		cut++
	}
	if cut < len(body)*3/4 {
		t.Errorf("only %d of %d ends were an error", cut, len(body))
	}
}

func TestStreams(t *testing.T) {
	for name, row := range map[string]struct {
		events []string
		want   string
	}{
		"no ids": {
			[]string{
				parts(`{"functionCall":{"name":"X","args":{"n":1}}}`),
				parts(`{"functionCall":{"name":"Y"}}`), finish("STOP"),
			},
			`[call_gemini_1 X {"n":1}] [call_gemini_2 Y {}] calls`,
		},
		"one id for all": {
			[]string{
				parts(`{"functionCall":{"id":"a","name":"X","args":null}},{"functionCall":{"id":"a","name":"Y","args":{}}}`), finish("STOP"),
			}, `[a X {}] [call_gemini_2 Y {}] calls`,
		},
		"args a list": {
			[]string{parts(`{"functionCall":{"id":"a","name":"X","args":[1]}}`), finish("STOP")},
			`[a X {} broken [1]] calls`,
		},
		"all in one event": {
			[]string{
				`{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"text":"b"},{"functionCall":{"id":"i","name":"X"}}]},"finishReason":"STOP"}]}`,
			}, `(a) "b" [i X {}] calls`,
		},
		"no content":       {[]string{`{"candidates":[{"finishReason":"STOP"}]}`}, `done`},
		"length":           {[]string{parts(`{"text":"a"}`), finish("MAX_TOKENS")}, `"a" length`},
		"safety":           {[]string{parts(`{"text":"a"}`), finish("SAFETY")}, `"a" refused`},
		"recitation":       {[]string{finish("RECITATION")}, `refused`},
		"a filter to come": {[]string{finish("SOMETHING_NEW")}, `refused`},
		"blocked question": {
			[]string{`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":5}}`},
			`refused`,
		},
		"mark on a text": {[]string{
			parts(`{"text":"a"}`), parts(`{"text":"b","thoughtSignature":"s"}`),
			parts(`{"text":"c"}`), finish("STOP"),
		}, `"a" "b" "c" done`},
		"mark by itself": {[]string{
			parts(`{"text":"a"}`), parts(`{"text":"","thoughtSignature":"s"}`),
			finish("STOP"),
		}, `"a" () done`},
		"unspecified": {
			[]string{
				`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"FINISH_REASON_UNSPECIFIED"}]}`,
				finish("STOP"),
			}, `"a" done`,
		},
		"another answer": {
			[]string{
				parts(`{"text":"a"}`),
				`{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"STOP"}]}`,
				finish("STOP"),
			},
			`"a" done`,
		},
		"end mark": {[]string{parts(`{"text":"a"}`), finish("STOP"), "[DONE]"}, `"a" done`},
		"null parts": {
			[]string{parts(`null,{"text":null},{"inlineData":{}},{"text":"a"}`), finish("STOP")},
			`"a" done`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answer(t, events(row.events...))
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(a); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
			if a.Usage.Estimated != (name != "blocked question") || a.Usage.Input < 1 {
				t.Errorf("usage %+v", a.Usage)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for written, want := range map[string]model.Usage{
		`{"promptTokenCount":10,"candidatesTokenCount":4,"totalTokenCount":14}`:                                                              {Input: 10, Output: 4},
		`{"promptTokenCount":10,"cachedContentTokenCount":6,"candidatesTokenCount":4,"thoughtsTokenCount":3,"toolUsePromptTokenCount":100}`:  {Input: 104, CacheRead: 6, Output: 7, Reasoning: 3},
		`{"promptTokenCount":"10","cachedContentTokenCount":60,"candidatesTokenCount":-4,"thoughtsTokenCount":1,"promptTokensDetails":[{}]}`: {CacheRead: 10, Output: 1, Reasoning: 1},
	} {
		a, err := answer(t, events(`{"usageMetadata":`+written+`,"candidates":[{"finishReason":"STOP"}]}`))
		if err != nil || a.Usage != want {
			t.Errorf("%s: %v %+v", written, err, a)
		}
	}
	// Each event has what is known so far; the last one may know less.
	a, err := answer(t, events(`{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}`,
		`{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5}}`,
		`{"usageMetadata":{"promptTokenCount":9},"candidates":[{"finishReason":"STOP"}]}`))
	if err != nil || (a.Usage != model.Usage{Input: 9, Output: 5}) {
		t.Error(err, a)
	}
}

func TestErrorsWithin(t *testing.T) {
	said := parts(`{"text":"half"}`)
	for name, row := range map[string]struct {
		events []string
		want   model.Trouble
		code   string
	}{
		"status": {
			[]string{
				said,
				`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`,
			},
			model.Overloaded,
			"UNAVAILABLE",
		},
		"name only": {
			[]string{`{"error":{"message":"x","status":"RESOURCE_EXHAUSTED"}}`},
			model.Limited,
			"RESOURCE_EXHAUSTED",
		},
		"nothing": {[]string{`{"error":{}}`}, model.Broken, ""},
		"text":    {[]string{`{"error":"boom"}`}, model.Broken, ""},
		"too long": {
			[]string{
				`{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}`,
			}, model.Overflow, "INVALID_ARGUMENT",
		},
		"malformed call": {[]string{
			said,
			`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print("}]}`,
		}, model.Broken, "MALFORMED_FUNCTION_CALL"},
		"unexpected call": {[]string{finish("UNEXPECTED_TOOL_CALL")}, model.Broken, "UNEXPECTED_TOOL_CALL"},
		"missing mark": {
			[]string{finish("MISSING_THOUGHT_SIGNATURE")},
			model.Rejected,
			"MISSING_THOUGHT_SIGNATURE",
		},
		"no end": {[]string{said, `{"usageMetadata":{"promptTokenCount":3}}`}, model.Cut, ""},
		"no reason": {
			[]string{said, `{"candidates":[{"finishReason":"FINISH_REASON_UNSPECIFIED"}]}`},
			model.Cut,
			"",
		},
		"garbage":          {[]string{said, `{"candidates":`}, model.Garbage, ""},
		"another shape":    {[]string{said, `{"candidates":{"a":1}}`}, model.Garbage, ""},
		"a part of a kind": {[]string{`{"candidates":[{"content":{"parts":[7]}}]}`}, model.Garbage, ""},
	} {
		_, err := answer(t, events(row.events...))
		e := trouble(t, err)
		if e.Trouble != row.want || e.Code != row.code {
			t.Errorf("%s: %+v", name, e)
		}
		if half := row.events[0] == said; e.Emitted != half || half &&
			(len(e.Partial) != 1 || e.Partial[0].Text != "half") {
			t.Errorf("%s: heard %v, partial %+v", name, e.Emitted, e.Partial)
		}
		if name == "no end" && e.Usage.Input != 3 {
			t.Errorf("%s: usage %+v", name, e.Usage)
		}
	}
}

func TestRefusals(t *testing.T) {
	quota := func(id string) string {
		return `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[
			{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"` + id + `","quotaValue":"50"}]},
			{"@type":"type.googleapis.com/google.rpc.Help","links":[]},
			{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.074824224s"}]}}`
	}
	for _, row := range []struct {
		status int
		body   string
		want   model.Trouble
		after  time.Duration
	}{
		{
			400, `{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}`,
			model.Rejected, 0,
		},
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`, model.NoLogin, 0},
		{400, `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`, model.Rejected, 0},
		{400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, model.Overflow, 0},
		{
			500, `{"error":{"code":500,"message":"exceeds the maximum number of tokens","status":"INTERNAL"}}`,
			model.Broken, 0,
		},
		{401, `{"error":{"code":401,"message":"no","status":"UNAUTHENTICATED"}}`, model.NoLogin, 0},
		{403, `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED","details":[{"reason":"SERVICE_DISABLED"}]}}`, model.Forbidden, 0},
		{403, `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED","details":[{"reason":"API_KEY_SERVICE_BLOCKED"}]}}`, model.Forbidden, 0},
		{
			404, `{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}`,
			model.Unknown, 0,
		},
		{429, quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"), model.Limited, 34074824224},
		{429, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), model.Quota, 34074824224},
		{429, `[` + quota("GenerateContentInputTokensPerModelPerMinute-FreeTier") + `]`, model.Limited, 34074824224},
		{
			429, `{"error":{"code":429,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`,
			model.Quota, 0,
		},
		{500, `{"error":{"code":500,"message":"oh","status":"INTERNAL"}}`, model.Broken, 0},
		{503, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`, model.Overloaded, 0},
		{502, `<html><title>Error 502</title></html>`, model.Broken, 0},
	} {
		_, err := canned{status: row.status, body: []byte(row.body)}.client().Ask(t.Context(), hello(), nil)
		if e := trouble(t, err); e.Trouble != row.want || e.Status != row.status || e.After != row.after {
			t.Errorf("%d %s: %+v", row.status, row.body, e)
		}
	}
}

func FuzzEvents(f *testing.F) {
	for line := range strings.Lines(string(golden(f))) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			f.Add(data, data)
		}
	}
	f.Add(parts(`{"toolCall":{},"thoughtSignature":"x"},{"text":"","thoughtSignature":"y"}`), `{"error":[]}`)
	f.Add(`{"error":{"code":429,"details":[{"retryDelay":"1e99s"},7]}}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		if strings.ContainsAny(one+two, "\r\n") {
			return
		}
		c := canned{body: events(one, two, one, finish("STOP"))}.client()
		a, err := c.Ask(t.Context(), hello(), func(model.Piece) {})
		if err != nil {
			var e *model.Error
			if !errors.As(err, &e) || e.Trouble == "" || e.Message == "" || e.After < 0 {
				t.Fatalf("%#v", err)
			}
			return
		}
		var ids []string
		for _, b := range a.Calls() {
			if !json.Valid(b.Input) || b.Input[0] != '{' || b.ID == "" || slices.Contains(ids, b.ID) {
				t.Fatalf("%+v", b)
			}
			ids = append(ids, b.ID)
		}
		// What came must be something that can be sent again.
		q := hello()
		q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks})
		if _, err := c.Ask(t.Context(), q, nil); err != nil && strings.Contains(err.Error(), "cannot be written") {
			t.Fatal(err)
		}
	})
}
