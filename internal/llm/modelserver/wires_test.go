package modelserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

var update = flag.Bool("update", false, "write the golden files anew")

// backend is a Backend of one function.
type backend func(ctx context.Context, r *Request, w Writer) error

func (b backend) Answer(ctx context.Context, r *Request, w Writer) error { return b(ctx, r, w) }

// start runs a server whose ids and times are always the same; ids count within one request.
func start(t *testing.T, b Backend, o Options) *Server {
	t.Helper()
	s, err := Start(b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func fixed() Options {
	n := 0
	return Options{
		name: func(prefix string) string { n++; return fmt.Sprintf("%s_%d", prefix, n) },
		now:  func() time.Time { return time.Unix(1_800_000_000, 0) },
	}
}

func script(t *testing.T, text string) *Script {
	t.Helper()
	s, err := ParseScript([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// body makes a request of one message on a wire, with a shell tool.
func body(w Wire, stream bool) (path, text string) {
	const parameters = `{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`
	switch w {
	case Messages:
		return "/v1/messages", fmt.Sprintf(`{"model":"m","stream":%v,"max_tokens":9,"messages":[{"role":"user","content":"hello there"}],
			"tools":[{"name":"bash","input_schema":%s}]}`, stream, parameters)
	case Chat:
		return "/v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%v,"stream_options":{"include_usage":true},
			"messages":[{"role":"user","content":"hello there"}],
			"tools":[{"type":"function","function":{"name":"bash","parameters":%s}}]}`, stream, parameters)
	case Gemini:
		path = "/v1beta/models/m:generateContent"
		if stream {
			path = "/v1beta/models/m:streamGenerateContent?alt=sse"
		}
		return path, fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":"hello there"}]}],
			"tools":[{"functionDeclarations":[{"name":"bash","parameters":%s}]}]}`, parameters)
	default:
		return "/v1/responses", fmt.Sprintf(`{"model":"m","stream":%v,"input":"hello there",
			"tools":[{"type":"function","name":"bash","parameters":%s}]}`, stream, parameters)
	}
}

func wires() []Wire { return []Wire{Messages, Responses, Chat, Gemini} }

// post sends a request and reads all that comes; the error is the one of reading.
func post(t *testing.T, url, text string) (*http.Response, []byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hermetic.Patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n got %s\nwant %s", name, got, want)
	}
}

// everything says what each wire can say: thinking, text of several pieces, two calls at once, a hosted search, usage.
func everything(_ context.Context, _ *Request, w Writer) error {
	return errors.Join(
		w.Think("First I think about it."),
		w.Text("Then I say <something> long"), w.Text(" enough."),
		w.Search("go"),
		w.Call(Call{Name: "bash", Kind: "function", Input: JSON(`{"command":"ls -l | grep modelserver"}`)}),
		w.Call(Call{Name: "bash", Kind: "function"}),
		counted(w),
	)
}

func TestEveryWireByteForByte(t *testing.T) {
	for _, w := range wires() {
		for name, stream := range map[string]bool{"stream": true, "whole": false} {
			s := start(t, backend(everything), fixed())
			path, text := body(w, stream)
			resp, got, err := post(t, s.URL()+path, text)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s %s: %v %v", w, name, resp, err)
			}
			golden(t, string(w)+"-"+name+".txt", got)
			if want := map[bool]string{
				true:  "text/event-stream",
				false: "application/json",
			}[stream]; !strings.HasPrefix(resp.Header.Get("Content-Type"), want) {
				t.Errorf("%s %s: content type %s", w, name, resp.Header.Get("Content-Type"))
			}
		}
	}
}

// TestDeclines: the model declines in each wire's own form, with words and without.
func TestDeclines(t *testing.T) {
	for _, w := range wires() {
		for name, words := range map[string]string{"declines": "I cannot help with that.", "silent": ""} {
			script, err := ParseScript([]byte(`{"toolless":true,"steps":[{"decline":"` + words + `"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			s := start(t, script, fixed())
			var both []byte
			for _, stream := range []bool{true, false} {
				path, text := body(w, stream)
				_, got, err := post(t, s.URL()+path, text)
				if err != nil {
					t.Fatal(err)
				}
				both = append(append(both, got...), '\n')
			}
			golden(t, string(w)+"-"+name+".txt", both)
		}
	}
}

func TestOtherKindsOfCalls(t *testing.T) {
	s := start(t, backend(func(_ context.Context, _ *Request, w Writer) error {
		return errors.Join(
			w.Call(Call{Name: "exec", Namespace: "functions", Kind: "custom", Input: JSON(`"text(1);\n"`)}),
			w.Call(Call{Name: "local_shell", Kind: "local_shell", Input: JSON(`{"type":"exec","command":["ls"]}`)}))
	}), fixed())
	path, text := body(Responses, true)
	_, got, err := post(t, s.URL()+path, text)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "responses-kinds.txt", got)

	s = start(t, backend(everything), fixed())
	_, got, err = post(t, s.URL()+"/v1beta/models/m:streamGenerateContent", `{"contents":[]}`)
	if err != nil {
		t.Fatal(err)
	}
	var list []any
	if err := json.Unmarshal(got, &list); err != nil || len(list) < 5 {
		t.Errorf("a stream without alt=sse is an array: %v %s", err, got)
	}
}

// A stream and a whole answer must hold the same: what a client puts together from the pieces is what it gets at once.
func TestAStreamAddsUpToTheWhole(t *testing.T) {
	long := strings.Repeat("héllo wörld ☃ ", 4_000)
	s := start(t, backend(func(_ context.Context, _ *Request, w Writer) error { return w.Text(long) }), Options{})
	for _, w := range wires() {
		path, text := body(w, true)
		_, got, err := post(t, s.URL()+path, text)
		if err != nil {
			t.Fatal(err)
		}
		sum, events := "", 0
		for line := range strings.Lines(string(got)) {
			payload, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !ok {
				continue
			}
			events++
			sum += delta(t, w, payload)
		}
		if sum != long {
			t.Errorf("%s: %d bytes came, %d were said", w, len(sum), len(long))
		}
		if events > 400 {
			t.Errorf("%s: %d events for one text", w, events)
		}
	}
}

// delta is the text in one event.
func delta(t *testing.T, w Wire, payload string) string {
	t.Helper()
	if payload == "[DONE]" {
		return ""
	}
	var e struct {
		Type       string
		Delta      json.RawMessage
		Choices    []struct{ Delta struct{ Content string } }
		Candidates []struct {
			Content struct{ Parts []struct{ Text string } }
		}
	}
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		t.Fatalf("%s: %v in %s", w, err, payload)
	}
	switch {
	case w == Messages && e.Type == "content_block_delta":
		var d struct{ Text string }
		_ = json.Unmarshal(e.Delta, &d)
		return d.Text
	case w == Responses && e.Type == "response.output_text.delta":
		var d string
		_ = json.Unmarshal(e.Delta, &d)
		return d
	case w == Chat && len(e.Choices) > 0:
		return e.Choices[0].Delta.Content
	case w == Gemini && len(e.Candidates) > 0:
		return e.Candidates[0].Content.Parts[0].Text
	}
	return ""
}

func TestErrorsOfEveryWire(t *testing.T) {
	for _, w := range wires() {
		var out bytes.Buffer
		for _, step := range []string{
			`{"error":400}`, `{"error":401}`, `{"error":403}`, `{"error":404}`, `{"error":429,"retry_after":1.5}`,
			`{"error":500}`,
			`{"error":503}`, `{"error":529}`, `{"error":"context_full"}`, `{"error":418,"message":"short and stout"}`,
		} {
			s := start(t, script(t, "["+step+"]"), fixed())
			path, text := body(w, true)
			resp, got, err := post(t, s.URL()+path, text)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s\n%d retry-after=%q %s\n", step, resp.StatusCode, resp.Header.Get("Retry-After"), got)
		}
		golden(t, string(w)+"-errors.txt", out.Bytes())
	}
}

func TestAnErrorWithinAStream(t *testing.T) {
	for _, w := range wires() {
		s := start(t, backend(func(_ context.Context, _ *Request, w Writer) error {
			return errors.Join(w.Text("half"), w.Fail(Failure{Status: 529}))
		}), fixed())
		path, text := body(w, true)
		_, got, err := post(t, s.URL()+path, text)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, string(w)+"-late-error.txt", got)
	}
}

func counted(w Writer) error {
	w.Usage(Usage{Input: 11, Output: 7, Cached: 5})
	return nil
}

func TestHurry(t *testing.T) {
	for _, row := range []struct {
		step  string
		hurry bool
		want  string
	}{
		{`{"error":500}`, true, "1"}, {`{"error":500}`, false, ""}, {`{"error":429,"retry_after":1.5}`, true, ""},
	} {
		o := fixed()
		o.Hurry = row.hurry
		s := start(t, script(t, "["+row.step+"]"), o)
		path, text := body(Chat, true)
		resp, _, err := post(t, s.URL()+path, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Retry-After-Ms"); got != row.want {
			t.Errorf("%+v: %q", row, got)
		}
	}
}
