package openai

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
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/testkit/hermetic"
)

// wireOf is one of the two wires.
type wireOf struct {
	name string
	make func(Options) model.Client
}

func both() []wireOf { return []wireOf{{"chat", NewChat}, {"responses", NewResponses}} }

// canned answers every request with the same bytes, cut into the pieces that it is told, and then ends as it is told.
type canned struct {
	status int
	body   []byte
	cut    int   // a read ends here
	single bool  // each read is one byte
	end    error // io.EOF, or how the connection breaks
}

func (c canned) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Body != nil {
		_, _ = io.Copy(io.Discard, q.Body)
		_ = q.Body.Close()
	}
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if c.end == nil {
		c.end = io.EOF
	}
	return &http.Response{
		StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: q,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: &pieces{c: c},
	}, nil
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
	if p.c.single {
		rest = rest[:1]
	}
	n := copy(b, rest)
	p.at += n
	return n, nil
}

func (p *pieces) Close() error { return nil }

func (c canned) client(w wireOf) model.Client {
	return w.make(Options{Base: "http://api.test/v1", Model: "m", HTTP: &http.Client{Transport: c}})
}

func events(data ...string) []byte {
	var b bytes.Buffer
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\n\n", d)
	}
	return b.Bytes()
}

func hello() model.Request {
	return model.Request{Messages: []model.Message{{
		Role:   model.User,
		Blocks: []model.Block{{Kind: model.Text, Text: "hello"}},
	}}}
}

func answer(t *testing.T, w wireOf, body []byte) (*model.Answer, error) {
	t.Helper()
	return canned{body: body}.client(w).Ask(t.Context(), hello(), nil)
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
		Status  int
		SSE     []string
		Headers map[string]string
		Body    string
		Then    string
		Want    struct {
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
	if err := json.Unmarshal(data, &all); err != nil || len(all) < 10 {
		t.Fatal(len(all), err)
	}
	for _, s := range all {
		t.Run(s.ID, func(t *testing.T) { s.run(t) })
	}
}

func (s scenario) run(t *testing.T) {
	turn := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r := s.Turns[turn]
		for name, value := range r.Headers {
			w.Header().Set(name, value)
		}
		if r.SSE == nil {
			w.WriteHeader(r.Status)
			_, _ = io.WriteString(w, r.Body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(events(r.SSE...))
		_ = http.NewResponseController(w).Flush()
		if r.Then == "hang" {
			<-q.Context().Done()
		}
	}))
	defer server.Close()
	c := NewChat(Options{Base: server.URL + "/v1", Key: "k", Model: "m"})
	q := hello()
	for ; turn < len(s.Turns); turn++ {
		ctx, stop := context.WithTimeout(t.Context(), hermetic.Patience)
		said := ""
		a, err := c.Ask(ctx, q, func(p model.Piece) {
			said += p.Text
			if s.Turns[turn].Then == "hang" {
				stop()
			}
		})
		stop()
		want := s.Turns[turn].Want
		if said != want.Text {
			t.Errorf("turn %d: heard %q, want %q", turn, said, want.Text)
		}
		if want.Trouble != "" {
			if e := trouble(t, err); string(e.Trouble) != want.Trouble || e.Emitted != (want.Text != "") ||
				want.Text != "" && e.Partial[0].Text != want.Text {
				t.Errorf("turn %d: %+v", turn, e)
			}
			continue
		}
		if err != nil {
			t.Fatal(turn, err)
		}
		q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks})
		expected := ""
		if want.Text != "" {
			expected = fmt.Sprintf("%q ", want.Text)
		}
		var results []model.Block
		for _, c := range want.Calls {
			expected += "[" + c + "] "
		}
		for _, c := range a.Calls() {
			results = append(results, model.Block{Kind: model.Result, ID: c.ID, Name: c.Name, Text: "hi"})
		}
		if got := shown(a); got != expected+want.Stop {
			t.Errorf("turn %d: %s, want %s", turn, got, expected+want.Stop)
		}
		if u := a.Usage; len(want.Usage) == 2 && (u != model.Usage{Input: want.Usage[0], Output: want.Usage[1]}) ||
			len(want.Usage) == 0 && (!u.Estimated || u.Input < 1 || u.Output < 1) {
			t.Errorf("turn %d: usage %+v", turn, u)
		}
		q.Messages = append(q.Messages, model.Message{Role: model.User, Blocks: results})
	}
}

func golden(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../modelserver/testdata/golden/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const whole = `(First I think about it.) "Then I say <something> long enough." [call_A bash {"command":"ls -l | grep modelserver"}] [call_B bash {}] calls`

// plain is an answer without what differs between the wires: ids, and the search that only one of them has.
func plain(a *model.Answer) string {
	clone := *a
	clone.Blocks = nil
	n := 0
	for _, b := range a.Blocks {
		if b.Kind == model.Thinking && b.Text == "" {
			continue
		}
		if b.Kind == model.Call {
			b.ID = "call_" + string(rune('A'+n))
			n++
		}
		clone.Blocks = append(clone.Blocks, b)
	}
	return shown(&clone)
}

// short is a stream with all that an answer may have in few bytes, for the tests that take it apart everywhere.
func short(name string) []byte {
	if name == "chat" {
		return events(delta(`{"reasoning_content":"h"}`), delta(`{"reasoning_content":"m"}`),
			delta(`{"content":"h\u00e9"}`), delta(`{"content":"é"}`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"{\"n\":"}}]}`),
			delta(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"Y","arguments":""}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`), finish("tool_calls"),
			`{"choices":[],"usage":{"prompt_tokens":16,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":5}}}`, "[DONE]")
	}
	var list []string
	for _, e := range []string{
		`created","response":{"id":"r"}`, `output_item.added","output_index":0,"item":{"type":"reasoning"}`,
		`reasoning_summary_text.delta","output_index":0,"delta":"h"`,
		`reasoning_summary_text.delta","output_index":0,"delta":"m"`,
		`output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","encrypted_content":"e"}`,
		`output_text.delta","output_index":1,"delta":"h\u00e9"`, `output_text.delta","output_index":1,"delta":"é"`,
		`output_item.added","output_index":2,"item":{"type":"function_call","call_id":"a","name":"X"}`,
		`function_call_arguments.delta","output_index":2,"delta":"{\"n\":"`,
		`function_call_arguments.delta","output_index":2,"delta":"1}"`,
		`output_item.done","output_index":3,"item":{"type":"function_call","call_id":"b","name":"Y","arguments":"{}"}`,
		`completed","response":{"usage":{"input_tokens":16,"output_tokens":7,"input_tokens_details":{"cached_tokens":5}}}`,
	} {
		list = append(list, `{"type":"response.`+e+`}`)
	}
	return events(list...)
}

const shortWhole = `(hm) "héé" [a X {"n":1}] [b Y {}] calls`

func TestCutAtEveryByte(t *testing.T) {
	for _, w := range both() {
		body := short(w.name)
		for i := range len(body) {
			var said strings.Builder
			a, err := canned{body: body, cut: i}.client(w).Ask(t.Context(), hello(),
				func(p model.Piece) { said.WriteString(p.Text) })
			if err != nil {
				t.Fatalf("%s: cut at %d: %v", w.name, i, err)
			}
			if shown(a) != shortWhole || (a.Usage != model.Usage{Input: 11, CacheRead: 5, Output: 7}) ||
				said.String() != "hmhéé" {
				t.Fatalf("%s: cut at %d: %s, heard %q", w.name, i, shown(a), said.String())
			}
		}
		for name, ends := range map[string]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"} {
			body := bytes.ReplaceAll(golden(t, w.name+"-stream.txt"), []byte("\n"), []byte(ends))
			for _, single := range []bool{false, true} {
				a, err := canned{body: body, single: single}.client(w).Ask(t.Context(), hello(), nil)
				if err != nil || plain(a) != whole || a.Usage.Estimated {
					t.Errorf("%s %s, byte by byte %v: %v %+v", w.name, name, single, err, a)
				}
			}
		}
	}
}

func TestEndsAtEveryByte(t *testing.T) {
	for _, w := range both() {
		body, cut := short(w.name), 0
		for i := range body {
			a, err := canned{body: body[:i], end: []error{io.EOF, io.ErrUnexpectedEOF}[i%2]}.client(w).Ask(t.Context(),
				hello(), nil)
			if err == nil {
				if shown(a) != shortWhole || !a.Usage.Estimated && a.Usage.Output != 7 {
					t.Fatalf("%s: the first %d bytes are another answer: %s %+v", w.name, i, shown(a), a.Usage)
				}
				continue
			}
			e := trouble(t, err)
			if e.Trouble != model.Cut {
				t.Fatalf("%s: the first %d bytes: %+v", w.name, i, e)
			}
			for _, b := range e.Partial {
				if b.Kind == model.Call {
					t.Fatalf("%s: a call in what is not whole: %+v", w.name, e)
				}
			}
			if e.Emitted && len(e.Partial) == 0 {
				t.Fatalf("%s: heard %v, partial %+v", w.name, e.Emitted, e.Partial)
			}
			cut++
		}
		if cut < len(body)/2 {
			t.Errorf("%s: only %d of %d ends were an error", w.name, cut, len(body))
		}
	}
}

// tools are two tools, as an agent offers them.
func tools() []event.ToolSpec {
	return []event.ToolSpec{
		{
			Name: "Bash", Description: "run",
			Input: json.RawMessage(
				`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`),
		},
		{Name: "Now"},
	}
}
