package stream

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/wire/claude"
)

// board is what was written, by lines.
type board struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *board) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *board) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSpace(b.text.String()), "\n")
}

// find is the request_id of the last line that has the word.
func (b *board) find(word string) (id string) {
	for _, line := range b.lines() {
		if strings.Contains(line, word) {
			_, rest, _ := strings.Cut(line, `"request_id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	return id
}

func counter() func() string {
	var mu sync.Mutex
	n := 0
	return func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprint("id", n) }
}

// stand is a dialect whose other side is in the test's hands. What that side wants of a conversation is ignored.
func stand(t *testing.T) (d *Claude, b *board, say func(string), hangUp func()) {
	b = &board{}
	d = NewClaude(claude.Encoder{UUID: counter()})
	h := New(b, d, Lines)
	in, out := io.Pipe()
	frames := make(chan Input)
	go Read(in, d, frames, nil)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range frames {
		}
		d.InputEnded()
	}()
	hangUp = func() { _ = out.Close() }
	t.Cleanup(func() {
		hangUp()
		<-over
		if !h.Finish() {
			t.Error("it is not written")
		}
	})
	return d, b, func(line string) { _, _ = io.WriteString(out, line+"\n") }, hangUp
}

const message = `{"type":"user","message":{"role":"user","content":"go"}}`

func reply(id, body string) string {
	return `{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `","response":` + body +
		`}}`
}

// greeted is a dialect that was told of hooks.
func greeted(t *testing.T, d *Claude, hooks string) {
	t.Helper()
	f, err := d.Read([]byte(`{"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":` +
		hooks + `}}`))
	if err != nil || f.greeting == nil || d.initialize(*f.greeting).Refused != nil {
		t.Fatalf("%v %+v", err, f)
	}
}

// TestHookIsAsked: the host's word is waited for, by a clock that the host may set, and until it goes away.
func TestHookIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		hooks string
		then  func(b *board, say func(string), hangUp func())
		took  time.Duration
		want  string
	}{
		"it says": {
			`{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h0"]}]}`,
			func(b *board, say func(string), _ func()) {
				say(reply(b.find("hook_callback"), `{"hookSpecificOutput":{"permissionDecision":"allow"}}`))
			}, 0, "allow",
		},
		"it is wrong": {
			`{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h0"]}]}`,
			func(b *board, say func(string), _ func()) {
				say(reply(b.find("hook_callback"), `[]`))
			}, 0, "ask",
		},
		"silent": {
			`{"PreToolUse":[{"hookCallbackIds":["h0"]}]}`, func(*board, func(string), func()) {},
			time.Minute, "ask",
		},
		"its own clock": {
			`{"PreToolUse":[{"hookCallbackIds":["h0"],"timeout":2}]}`,
			func(*board, func(string), func()) {}, 2 * time.Second, "ask",
		},
		"silent and block": {
			`{"PreToolUse":[{"hookCallbackIds":["h0"],"timeout":2,"onFailure":"block"}]}`,
			func(*board, func(string), func()) {}, 2 * time.Second, "deny",
		},
		"it goes away": {
			`{"PreToolUse":[{"hookCallbackIds":["h0"]}]}`,
			func(_ *board, _ func(string), hangUp func()) { hangUp() }, 0, "ask",
		},
		"another tool":   {`{"PreToolUse":[{"matcher":"Read","hookCallbackIds":["h0"]}]}`, nil, 0, ""},
		"another moment": {`{"Stop":[{"hookCallbackIds":["h0"]}]}`, nil, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, b, say, hangUp := stand(t)
			greeted(t, d, c.hooks)
			word := make(chan agent.HookAnswer, 1)
			began := time.Now()
			go func() {
				word <- d.Hook(t.Context(),
					agent.Moment{Name: agent.BeforeTool, Call: &event.Call{ID: "c1", Name: "Bash"}})
			}()
			synctest.Wait()
			if c.then != nil {
				if b.find("hook_callback") == "" {
					t.Fatalf("%s: it is not asked: %v", name, b.lines())
				}
				c.then(b, say, hangUp)
			}
			w := <-word
			took := time.Since(began)
			synctest.Wait() // what is said of it is written
			if w.Decision != c.want || took != c.took {
				t.Errorf("%s: %+v after %s", name, w, took)
			}
			if timed := c.took > 0; timed != (b.find("control_cancel_request") != "") {
				t.Errorf("%s: %v", name, b.lines())
			}
		})
	}
}

// TestServe: what a server of the host says comes back, its errors too, and nothing behind a host that is gone.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b, say, hangUp := stand(t)
		ask := func() <-chan string {
			got := make(chan string, 1)
			go func() {
				data, err := d.Serve(t.Context(), "weather", []byte(`{"jsonrpc":"2.0","id":1,"method":"x"}`))
				got <- fmt.Sprint(string(data), err)
			}()
			synctest.Wait()
			return got
		}
		first := ask()
		if line := b.lines()[len(b.lines())-1]; !strings.Contains(line,
			`"subtype":"mcp_message","server_name":"weather","message":{"jsonrpc":"2.0","id":1,"method":"x"}`) {
			t.Errorf("%s", line)
		}
		say(reply(b.find("mcp_message"), `{"mcp_response":{"jsonrpc":"2.0","id":1,"result":{}}}`))
		if got := <-first; got != `{"jsonrpc":"2.0","id":1,"result":{}}<nil>` {
			t.Error(got)
		}
		second := ask()
		say(`{"type":"control_response","response":{"subtype":"error","request_id":"` + b.find("mcp_message") +
			`","error":"no such server"}}`)
		if got := <-second; got != "no such server" {
			t.Error(got)
		}
		third := ask()
		hangUp()
		if got := <-third; got != "the host is gone" {
			t.Error(got)
		}
	})
}

// TestCutAnywhere: however the bytes of a host arrive they are the same frames, and where they stop what was whole
// before is heard.
func TestCutAnywhere(t *testing.T) {
	data, err := os.ReadFile("../../wire/claude/testdata/host.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	frames := func(r io.Reader) (n, wrong int) {
		d := NewClaude(claude.Encoder{})
		New(io.Discard, d, Lines)
		said := make(chan Input)
		go Read(r, d, said, nil)
		for s := range said {
			if s.Err != nil {
				wrong++
				continue
			}
			n++
		}
		return n, wrong
	}
	all, wrong := frames(bytes.NewReader(data))
	if all < 8 || wrong != 0 {
		t.Fatalf("%d frames, %d wrong lines", all, wrong)
	}
	if n, _ := frames(iotest.OneByteReader(bytes.NewReader(data))); n != all {
		t.Errorf("by the byte: %d frames, not %d", n, all)
	}
	before := 0
	for i := range data {
		n, wrong := frames(bytes.NewReader(data[:i]))
		if n < before || n > all || wrong > 1 {
			t.Fatalf("cut at %d: %d frames, %d wrong lines", i, n, wrong)
		}
		before = n
	}
}

// TestGreet: the conversation begins with initialize, or with the first thing that is wanted; what is neither is passed
// over.
func TestGreet(t *testing.T) {
	for lines, want := range map[string]string{
		`{"type":"keep_alive"}` + "\n" + `garbage` + "\n" +
			`{"type":"control_request","request_id":"i","request":{"subtype":"initialize","appendSystemPrompt":"x"}}` +
			"\n" + message: "x 0 true",
		message + "\n" +
			`{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}`: "none 1 true",
		`{"type":"keep_alive"}`: "none 0 false",
		``:                      "none 0 false",
		`{"type":"control_request","request_id":"i","request":{"subtype":"initialize","limits":7}}`: "refused 0 true",
	} {
		d := NewClaude(claude.Encoder{})
		h := New(io.Discard, d, Lines)
		h.Log = func(string, ...any) {}
		frames := make(chan Input)
		go Read(strings.NewReader(lines), d, frames, t.Context().Done())
		g := d.Greet(t.Context(), frames)
		got := "none"
		if g.Init != nil {
			if got = g.Init.Append; g.Init.Refused != nil {
				got = "refused"
			}
		}
		if got = fmt.Sprintf("%s %d %v", got, len(g.Further), g.Open); got != want {
			t.Errorf("%s: %s, not %s", lines, got, want)
		}
		if !h.Finish() {
			t.Error("it is not written")
		}
	}
}
