package anthropic

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
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/model"
)

// answers is a server that answers every question with what is in each, flushed between its parts.
func answers(t *testing.T, each ...string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range each {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func client0(t *testing.T, base string) model.Client {
	c := New(Options{Base: base, Key: "key-0123456789", Model: "m"})
	t.Cleanup(func() { _ = c.(io.Closer).Close() })
	return c
}

// heard asks and writes down what was heard.
func heard(ctx context.Context, c model.Client, q model.Request) (*model.Answer, []model.Piece, error) {
	var pieces []model.Piece
	a, err := c.Ask(ctx, q, func(p model.Piece) { pieces = append(pieces, p) })
	return a, pieces, err
}

func hello() model.Request {
	return model.Request{Messages: []model.Message{{
		Role:   model.User,
		Blocks: []model.Block{{Kind: model.Text, Text: "hello"}},
	}}}
}

func failed(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) || e.Trouble == "" || e.Message == "" {
		t.Fatalf("no error of a model: %#v", err)
	}
	return e
}

// everything is a stream with all that the API sends.
func everything(t testing.TB) string {
	data, err := os.ReadFile("testdata/everything.sse")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// whole is the answer of that stream.
func whole() *model.Answer {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	return &model.Answer{
		ID: "msg_1", Model: "model-1", Stop: model.Calls, Reason: "tool_use",
		Usage: model.Usage{Input: 25, CacheRead: 200, CacheWrite: 100, Output: 89, Searches: 1},
		Blocks: []model.Block{
			{
				Kind: model.Thinking, Text: "Let me think.\nTwo lines.", Opaque: raw(`{"signature":"c2lnbmVkIQ=="}`),
				Wire: Wire,
			},
			{Kind: model.Thinking, Opaque: raw(`{"type":"redacted_thinking","data":"ZW5jcnlwdGVk"}`), Wire: Wire},
			{
				Kind: model.Text,
				Opaque: raw(
					`{"id":"srvtoolu_1","input":{"query":"the \"news\""},"name":"web_search","type":"server_tool_use"}`), Wire: Wire,
			},
			{
				Kind: model.Text,
				Opaque: raw(
					`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"News","url":"https://example.com","encrypted_content":"RW5j"}]}`), Wire: Wire,
			},
			{
				Kind: model.Text, Text: "Grüße, 世界 \u2028 \U0001F600!",
				Opaque: raw(
					`{"citations":[{"type":"web_search_result_location","url":"https://example.com","encrypted_index":"SWR4"}]}`), Wire: Wire,
			},
			{Kind: model.Call, ID: "toolu_1", Name: "Bash", Input: raw(`{"command":"ls -la \"ü\""}`)},
			{Kind: model.Call, ID: "toolu_2", Name: "Read", Input: raw(`{"file_path": "/a/b.txt", "n": 1e3}`)},
			{Kind: model.Call, ID: "toolu_3", Name: "Now", Input: raw(`{}`)},
		},
	}
}

func same(t *testing.T, what string, a *model.Answer) {
	t.Helper()
	if want := whole(); !reflect.DeepEqual(a, want) {
		got, _ := json.MarshalIndent(a, "", " ")
		wanted, _ := json.MarshalIndent(want, "", " ")
		t.Fatalf("%s:\n%s\nwant\n%s", what, got, wanted)
	}
}

func TestEverything(t *testing.T) {
	c := client0(t, answers(t, everything(t)).URL)
	a, pieces, err := heard(t.Context(), c, hello())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the answer", a)
	searches := 0
	pieces = slices.DeleteFunc(pieces, func(p model.Piece) bool {
		if p.Search == nil {
			return false
		}
		want := model.Search{ID: "srvtoolu_1", Query: `the "news"`, Found: []string{"News https://example.com"}}
		if !reflect.DeepEqual(*p.Search, want) {
			t.Errorf("the search: %+v", *p.Search)
		}
		searches++
		return true
	})
	if searches != 1 {
		t.Errorf("%d searches are told", searches)
	}
	var text, thinking string
	for _, p := range pieces {
		if p.Kind == model.Text {
			text += p.Text
		} else {
			thinking += p.Text
		}
	}
	if text != a.Text() || thinking != a.Blocks[0].Text || pieces[0].Kind != model.Thinking {
		t.Errorf("%q, %q", text, thinking)
	}
	for _, endings := range []string{"\r\n", "\r"} {
		c := client0(t, answers(t, "\ufeff"+strings.ReplaceAll(everything(t), "\n", endings)).URL)
		if a, err = c.Ask(t.Context(), hello(), nil); err != nil {
			t.Fatal(err)
		}
		same(t, "other ends of lines", a)
	}
}

// pieces is a transport whose answer comes in exactly these reads, and ends as it is told.
type pieces struct {
	parts [][]byte
	end   error
}

func (p *pieces) RoundTrip(q *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, q.Body)
	_ = q.Body.Close()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(&body{*p}), Request: q}, nil
}

type body struct{ pieces }

func (b *body) Read(to []byte) (int, error) {
	if len(b.parts) == 0 {
		return 0, b.end
	}
	n := copy(to, b.parts[0])
	if b.parts[0] = b.parts[0][n:]; len(b.parts[0]) == 0 {
		b.parts = b.parts[1:]
	}
	return n, nil
}

// Wherever the stream is divided, the answer is the same.
func TestDividedAtEveryByte(t *testing.T) {
	t.Parallel()
	stream := []byte(everything(t))
	for i := range len(stream) + 1 {
		c := New(Options{
			Key: "k", Model: "m", HTTP: &http.Client{Transport: &pieces{[][]byte{stream[:i], stream[i:]}, io.EOF}},
		})
		a, err := c.Ask(t.Context(), hello(), nil)
		if err != nil {
			t.Fatalf("at %d: %v", i, err)
		}
		same(t, fmt.Sprint("divided at ", i), a)
	}
	var bytes [][]byte
	for i := range stream {
		bytes = append(bytes, stream[i:i+1])
	}
	a, err := New(Options{Key: "k", HTTP: &http.Client{Transport: &pieces{bytes, io.EOF}}}).Ask(t.Context(), hello(),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "byte by byte", a)
}

// Wherever the stream ends, whether the connection breaks or is closed as if all were well, the answer is whole or cut.
func TestCutAtEveryByte(t *testing.T) {
	t.Parallel()
	stream := []byte(everything(t))
	last := bytes.LastIndex(stream, []byte(`{"type":"message_stop"}`)) + len(`{"type":"message_stop"}`)
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		for i := 0; i <= len(stream); i++ {
			if end != io.EOF && i < last {
				i += 6 // a connection that breaks is told from one that is closed before anything is read from it
			}
			c := New(Options{Key: "k", HTTP: &http.Client{Transport: &pieces{[][]byte{stream[:i]}, end}}})
			a, pieces, err := heard(t.Context(), c, hello())
			if err == nil {
				if i < last || end != io.EOF && i < last+2 {
					t.Fatalf("whole at %d of %d", i, len(stream))
				}
				same(t, fmt.Sprint("cut at ", i), a)
				continue
			}
			if i > last+1 || end == io.EOF && i >= last {
				t.Fatalf("cut at %d of %d: %v", i, len(stream), err)
			}
			e := failed(t, err)
			if e.Trouble != model.Cut || e.Emitted != (len(pieces) > 0) {
				t.Fatalf("cut at %d: %#v", i, e)
			}
			partial(t, e, pieces)
		}
	}
}

// partial holds what an error shows against what was heard.
func partial(t *testing.T, e *model.Error, pieces []model.Piece) {
	t.Helper()
	var said, told string
	for _, b := range e.Partial {
		if b.Kind == model.Call || b.Text == "" {
			t.Fatalf("%#v", b)
		}
		said += b.Text
	}
	for _, p := range pieces {
		told += p.Text
	}
	if said != told {
		t.Fatalf("%q is not %q", said, told)
	}
}

// The same over a real connection, which joins and divides as it likes: a flush somewhere, or the end.
func TestCutOnTheNetwork(t *testing.T) {
	t.Parallel()
	stream := everything(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		at, _ := strconv.Atoi(strings.Split(q.URL.Path, "/")[2])
		_, _ = io.WriteString(w, stream[:at])
		_ = http.NewResponseController(w).Flush()
		if strings.HasPrefix(q.URL.Path, "/cut/") {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, stream[at:])
	}))
	t.Cleanup(s.Close)
	const step = 31 // each byte is what the tests above divide at; this one holds that a network does nothing else
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	for i := 0; i < len(stream)-1; i += step {
		ask := func(what string) (*model.Answer, error) {
			return New(Options{
				Base: fmt.Sprint(s.URL, "/", what, "/", i), Key: "k", HTTP: &http.Client{Transport: transport},
			}).Ask(t.Context(), hello(), nil)
		}
		a, err := ask("flush")
		if err != nil {
			t.Fatalf("at %d: %v", i, err)
		}
		same(t, fmt.Sprint("flushed at ", i), a)
		if _, err = ask("cut"); failed(t, err).Trouble != model.Cut {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		URLs []struct {
			Base string `json:"baseUrl"`
			URL  string `json:"url"`
		}
		Streams []struct {
			ID, SSE, Text string
			Calls         []struct {
				ID, Name string
				Input    json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(data, &v); err != nil || len(v.URLs) != 6 || len(v.Streams) != 3 {
		t.Fatal(err)
	}
	for _, u := range v.URLs {
		if got := base(u.Base) + "/messages"; got != u.URL {
			t.Errorf("%s: %s, want %s", u.Base, got, u.URL)
		}
	}
	for _, s := range v.Streams {
		a, err := client0(t, answers(t, s.SSE).URL).Ask(t.Context(), hello(), nil)
		if err != nil {
			t.Fatal(s.ID, err)
		}
		if s.ID == "history-mapping" { // an answer without anything in it is whole all the same
			s.Text = ""
		}
		if a.Text() != s.Text || len(a.Calls()) != len(s.Calls) || !a.Usage.Estimated || a.Usage.Input == 0 {
			t.Errorf("%s: %#v", s.ID, a)
		}
		for i, c := range a.Calls() {
			var got, want any
			_ = json.Unmarshal(c.Input, &got)
			_ = json.Unmarshal(s.Calls[i].Input, &want)
			if c.ID != s.Calls[i].ID || c.Name != s.Calls[i].Name || !reflect.DeepEqual(got, want) ||
				a.Stop != model.Calls {
				t.Errorf("%s: %#v", s.ID, c)
			}
		}
	}
}

// say is a stream of these events.
func say(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

func TestStops(t *testing.T) {
	const text = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`
	const call = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"Now","input":{}}}`
	const arguments = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`
	const stop = `{"type":"message_stop"}`
	for _, c := range []struct {
		events []string
		reason string
		want   model.Stop
		broken string
	}{
		{[]string{text}, "end_turn", model.Done, ""},
		{[]string{text}, "stop_sequence", model.Done, ""},
		{[]string{text}, "something_new", model.Done, ""},
		{[]string{text}, "tool_use", model.Done, ""},
		{[]string{text}, "", model.Done, ""},
		{[]string{text, call}, "tool_use", model.Calls, ""},
		{[]string{text, call}, "end_turn", model.Calls, ""},
		{[]string{text, call}, "", model.Calls, ""},
		{[]string{text, call, arguments}, "tool_use", model.Calls, `{"a":`},
		{[]string{text, call, arguments}, "max_tokens", model.Length, `{"a":`},
		{[]string{text, call}, "max_tokens", model.Length, "(the answer was cut off here)"},
		{[]string{text}, "max_tokens", model.Length, ""},
		{[]string{text}, "refusal", model.Refused, ""},
		{[]string{text}, "pause_turn", model.Paused, ""},
		{[]string{text}, "model_context_window_exceeded", model.Full, ""},
	} {
		events := append(c.events,
			fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":3}}`,
				c.reason), stop)
		a, err := client0(t, answers(t, say(events...)).URL).Ask(t.Context(), hello(), nil)
		if err != nil {
			t.Fatal(err)
		}
		broken := ""
		for _, b := range a.Calls() {
			broken += b.Broken
		}
		if a.Stop != c.want || a.Reason != c.reason || broken != c.broken || a.Text() != "x" || a.Usage.Output != 3 {
			t.Errorf("%s %d: %#v", c.reason, len(c.events), a)
		}
	}
}

// What others who speak this API do differently.
func TestTolerance(t *testing.T) {
	const stop = `{"type":"message_stop"}`
	for name, c := range map[string]struct {
		stream string
		want   []model.Block
	}{
		"arguments with the beginning": {
			say(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"n","input":{"x":1}}}`, stop),
			[]model.Block{{Kind: model.Call, ID: "a", Name: "n", Input: json.RawMessage(`{"x":1}`)}},
		},
		"and after it too": {
			say(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"n","input":{"x":1}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":2}"}}`, `{"type":"content_block_stop","index":0}`, stop),
			[]model.Block{{Kind: model.Call, ID: "a", Name: "n", Input: json.RawMessage(`{"x":2}`)}},
		},
		"call without an id": {
			say(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"n"}}`, stop),
			[]model.Block{{Kind: model.Call, ID: "call_1", Name: "n", Input: json.RawMessage(`{}`)}},
		},
		"arguments that are no object": {
			say(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"n","input":"x"}}`, stop),
			[]model.Block{{Kind: model.Call, ID: "a", Name: "n", Input: json.RawMessage(`{}`), Broken: `"x"`}},
		},
		"blocks that never begin, and mix": {
			say(`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a"}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"b"}}`,
				`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"c"}}`, stop),
			[]model.Block{{Kind: model.Text, Text: "ac"}, {Kind: model.Thinking, Text: "b"}},
		},
		"text with the beginning": {
			say(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`,
				`{"type":"content_block_stop","index":0}`, stop),
			[]model.Block{{Kind: model.Text, Text: "a"}},
		},
		"unknown events, blocks and pieces": {
			say(`{"type":"ping"}`, `{"type":"news"}`, `{}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"hologram"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"light","text":"x"}}`,
				`{"type":"content_block_stop","index":9}`, stop),
			nil,
		},
		"names of events only": {"event: message_stop\ndata: {}\n\n", nil},
		"counts in another form": {
			say(`{"type":"message_start","message":{"id":"x","usage":{"input_tokens":"many","output_tokens":1.5}}}`,
				stop), nil,
		},
		"thought that is only sealed": {
			say(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":"s"}}`, stop), []model.Block{{Kind: model.Thinking, Opaque: json.RawMessage(`{"signature":"s"}`), Wire: Wire}},
		},
		"not UTF-8": {
			say("{\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\xffb\"}}",
				stop), []model.Block{{Kind: model.Text, Text: "a\uFFFDb"}},
		},
	} {
		a, err := client0(t, answers(t, c.stream).URL).Ask(t.Context(), hello(), nil)
		if err != nil || !reflect.DeepEqual(a.Blocks, c.want) {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
}

func TestGarbage(t *testing.T) {
	for _, stream := range []string{
		"data: {\"type\":\n\n", "data: []\n\n", "data: 1\n\n", say(`{"type":"content_block_start","content_block":7}`),
		say(`{"type":"content_block_start"}`),
		say(`{"type":"content_block_delta","index":"x"}`), "<html>",
		say(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			`{"type":"message_stop"}`),
	} {
		_, err := client0(t, answers(t, stream).URL).Ask(t.Context(), hello(), nil)
		if e := failed(t, err); e.Trouble != model.Garbage {
			t.Errorf("%q: %#v", stream, e)
		}
	}
}

// While an answer streams, no more is kept than the answer.
func TestMemory(t *testing.T) {
	const events, size = 4_000, 500
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		one := say(
			fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q},"padding":%q}`,
				strings.Repeat("x", size), strings.Repeat("p", 900)))
		for range events {
			_, _ = io.WriteString(w, one)
		}
		_, _ = io.WriteString(w, say(`{"type":"message_stop"}`))
	}))
	defer s.Close()
	live := func() uint64 {
		runtime.GC()
		runtime.GC() // what lies in a sync.Pool lives through one
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	q := hello()
	q.Messages[0].Blocks[0].Text = strings.Repeat("q", 8<<20) // what is asked is large, and is gone when it was said
	c := client0(t, s.URL)
	before, n := live(), 0
	_, err := c.Ask(t.Context(), q, func(model.Piece) {
		if n++; n == events {
			if more := int64(live()) - int64(before); more > 3*events*size {
				t.Errorf("%d KB are kept of an answer of %d KB", more>>10, events*size>>10)
			}
		}
	})
	if err != nil || n != events {
		t.Error(n, err)
	}
	runtime.KeepAlive(q)
}

func TestStalledAndStopped(t *testing.T) {
	hold := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		_, _ = io.WriteString(w, everything(t)[:1200])
		_ = http.NewResponseController(w).Flush()
		select {
		case <-hold:
		case <-q.Context().Done():
		}
	}))
	defer s.Close()
	defer close(hold)
	c := New(Options{Base: s.URL, Key: "k", Idle: 700 * time.Millisecond})
	_, err := c.Ask(t.Context(), hello(), nil)
	if e := failed(t, err); e.Trouble != model.Stalled || !e.Emitted || len(e.Partial) == 0 || e.Usage.Input != 25 {
		t.Errorf("%#v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err = c.Ask(ctx, hello(), func(model.Piece) { cancel() }); failed(t, err).Trouble != model.Stopped {
		t.Error(err)
	}
}
