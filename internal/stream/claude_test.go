package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

// board is what was written, by lines.
type board struct {
	mu    sync.Mutex
	text  bytes.Buffer
	fails bool
}

func (b *board) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails {
		return 0, syscall.EPIPE
	}
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

// talk is a session that does what the test says.
type talk struct {
	events  *event.Queue
	sent    func(*talk, []event.Block)
	set     func(agent.Change) error
	answers chan event.Reply
	stopped chan struct{}
}

func newTalk(sent func(*talk, []event.Block)) *talk {
	return &talk{events: event.NewQueue(0), sent: sent, answers: make(chan event.Reply, 8), stopped: make(chan struct{}, 8), set: func(agent.Change) error { return nil }}
}

func (s *talk) ID() string { return "s1" }
func (s *talk) Facts() event.Facts {
	return event.Facts{Agent: "test", Model: "m", Mode: setting.Prompt}
}
func (s *talk) Next(ctx context.Context) (event.Event, error) { return s.events.Next(ctx) }
func (s *talk) Send(_ context.Context, b []event.Block) error { s.sent(s, b); return nil }
func (s *talk) Answer(_ context.Context, _ string, a event.Reply) error {
	s.answers <- a
	return nil
}
func (s *talk) Set(_ context.Context, c agent.Change) error { return s.set(c) }
func (s *talk) Interrupt(context.Context) error             { s.stopped <- struct{}{}; return nil }
func (s *talk) Close(context.Context) (agent.Outcome, error) {
	s.events.Close()
	return agent.Outcome{}, nil
}

func (s *talk) end(reason string) {
	s.events.Put(event.Event{Kind: event.Ended, End: &event.End{OK: reason == "success", Reason: reason, Text: "done"}})
}

func counter() func() string {
	var mu sync.Mutex
	n := 0
	return func() string { mu.Lock(); defer mu.Unlock(); n++; return fmt.Sprint("id", n) }
}

// stand is a host in the nested dialect whose other side is in the test's hands.
func stand(t *testing.T, s agent.Session, d *Claude) (h *Host, b *board, say func(string), hangUp func(), heard *board) {
	b, heard = &board{}, &board{}
	d.Encoder.UUID = counter()
	h = New(b, d, Lines)
	h.Session, h.Stays, h.Log = s, true, func(format string, args ...any) { fmt.Fprintf(heard, format+"\n", args...) }
	signals := make(chan os.Signal)
	t.Cleanup(func() { close(signals) })
	h.Detail, h.Signals = h.Log, signals
	in, out := io.Pipe()
	t.Cleanup(func() { _ = out.Close() })
	frames := make(chan Said, Ahead)
	h.Frames = frames
	go Read(in, d, frames, nil)
	return h, b, func(line string) { _, _ = io.WriteString(out, line+"\n") }, func() { _ = out.Close() }, heard
}

const message = `{"type":"user","message":{"role":"user","content":"go"}}`

func reply(id, body string) string {
	return `{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `","response":` + body + `}}`
}

// greeted is a dialect that was told of hooks.
func greeted(t *testing.T, d *Claude, hooks string) {
	t.Helper()
	f, err := d.Read([]byte(`{"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":` + hooks + `}}`))
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
		"it says": {`{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h0"]}]}`, func(b *board, say func(string), _ func()) {
			say(reply(b.find("hook_callback"), `{"hookSpecificOutput":{"permissionDecision":"allow"}}`))
		}, 0, "allow"},
		"it is wrong": {`{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["h0"]}]}`, func(b *board, say func(string), _ func()) {
			say(reply(b.find("hook_callback"), `[]`))
		}, 0, "ask"},
		"silent":           {`{"PreToolUse":[{"hookCallbackIds":["h0"]}]}`, func(*board, func(string), func()) {}, time.Minute, "ask"},
		"its own clock":    {`{"PreToolUse":[{"hookCallbackIds":["h0"],"timeout":2}]}`, func(*board, func(string), func()) {}, 2 * time.Second, "ask"},
		"silent and block": {`{"PreToolUse":[{"hookCallbackIds":["h0"],"timeout":2,"onFailure":"block"}]}`, func(*board, func(string), func()) {}, 2 * time.Second, "deny"},
		"it goes away":     {`{"PreToolUse":[{"hookCallbackIds":["h0"]}]}`, func(_ *board, _ func(string), hangUp func()) { hangUp() }, 0, "ask"},
		"another tool":     {`{"PreToolUse":[{"matcher":"Read","hookCallbackIds":["h0"]}]}`, nil, 0, ""},
		"another moment":   {`{"Stop":[{"hookCallbackIds":["h0"]}]}`, nil, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &Claude{}
			s := newTalk(func(*talk, []event.Block) {})
			h, b, say, hangUp, _ := stand(t, s, d)
			greeted(t, d, c.hooks)
			ran := make(chan int, 1)
			go func() { ran <- h.Run(t.Context()) }()
			word := make(chan agent.Word, 1)
			began := time.Now()
			go func() {
				word <- d.Hook(t.Context(), agent.Moment{Name: agent.BeforeTool, Call: &event.Call{ID: "c1", Name: "Bash"}})
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
			hangUp()
			<-ran
		})
	}
}

// TestHookWhileTheHostIsBusy: an agent that does not change its mode before a hook has answered gets the answer all the same.
func TestHookWhileTheHostIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Claude{}
		s := newTalk(func(*talk, []event.Block) {})
		s.set = func(agent.Change) error {
			if w := d.Hook(t.Context(), agent.Moment{Name: agent.BeforeTool, Call: &event.Call{Name: "Bash"}}); w.Decision != "deny" {
				return errors.New("no word: " + w.Note)
			}
			return nil
		}
		h, b, say, hangUp, _ := stand(t, s, d)
		greeted(t, d, `{"PreToolUse":[{"hookCallbackIds":["h0"]}]}`)
		ran := make(chan int, 1)
		go func() { ran <- h.Run(t.Context()) }()
		say(`{"type":"control_request","request_id":"q","request":{"subtype":"set_permission_mode","mode":"plan"}}`)
		say(message)
		synctest.Wait()
		say(reply(b.find("hook_callback"), `{"decision":"block"}`))
		synctest.Wait()
		if all := strings.Join(b.lines(), "\n"); !strings.Contains(all, `"subtype":"success","request_id":"q","response":{"mode":"plan"}`) {
			t.Errorf("%s", all)
		}
		s.end("success")
		hangUp()
		if code := <-ran; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestServe: what a server of the host says comes back, its errors too, and nothing behind a host that is gone.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Claude{}
		h, b, say, hangUp, _ := stand(t, newTalk(func(*talk, []event.Block) {}), d)
		ran := make(chan int, 1)
		go func() { ran <- h.Run(t.Context()) }()
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
		if line := b.lines()[len(b.lines())-1]; !strings.Contains(line, `"subtype":"mcp_message","server_name":"weather","message":{"jsonrpc":"2.0","id":1,"method":"x"}`) {
			t.Errorf("%s", line)
		}
		say(reply(b.find("mcp_message"), `{"mcp_response":{"jsonrpc":"2.0","id":1,"result":{}}}`))
		if got := <-first; got != `{"jsonrpc":"2.0","id":1,"result":{}}<nil>` {
			t.Error(got)
		}
		second := ask()
		say(`{"type":"control_response","response":{"subtype":"error","request_id":"` + b.find("mcp_message") + `","error":"no such server"}}`)
		if got := <-second; got != "no such server" {
			t.Error(got)
		}
		third := ask()
		hangUp()
		if got := <-third; got != "the host is gone" {
			t.Error(got)
		}
		<-ran
	})
}

// TestQuestions: a question goes to the host, and is taken back when it needs no answer any more.
func TestQuestions(t *testing.T) {
	ask := func(s *talk, _ []event.Block) {
		call := &event.Call{ID: "c1", Name: "Bash", Kind: event.Shell, Command: "ls", Input: json.RawMessage(`{"command":"ls"}`)}
		s.events.Put(event.Event{Kind: event.ToolCall, Call: call})
		s.events.Put(event.Event{Kind: event.Question, Ask: &event.Ask{ID: "c1", Options: []string{"allow", "deny"}, Tool: call}})
	}
	for name, c := range map[string]struct {
		d        *Claude
		say      func(id string) string
		want     string // the answer
		told     string // a line of ours
		withdraw bool
	}{
		"allow": {&Claude{Asks: true}, func(id string) string { return reply(id, `{"behavior":"allow"}`) }, "allow", "", false},
		"mode": {
			&Claude{Asks: true}, func(id string) string {
				return reply(id, `{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"acceptEdits"}]}`)
			}, "allow auto-edit",
			`"status":null,"permissionMode":"acceptEdits"`, false,
		},
		"bypass": {
			&Claude{Asks: true}, func(id string) string {
				return reply(id, `{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"bypassPermissions"}]}`)
			}, "deny", "", false,
		},
		"bypass that may be": {
			&Claude{Asks: true, Bypass: true}, func(id string) string {
				return reply(id, `{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"bypassPermissions"}]}`)
			}, "allow yolo",
			`"permissionMode":"bypassPermissions"`, false,
		},
		"the host does not want to": {&Claude{}, nil, "deny", "", false},
		"dontAsk":                   {&Claude{Asks: true, Unasked: true}, nil, "deny", "", false},
		"no answer":                 {&Claude{Asks: true}, func(string) string { return `{"type":"keep_alive"}` }, "", "control_cancel_request", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := c.d
			s := newTalk(ask)
			h, b, say, hangUp, _ := stand(t, s, d)
			ran := make(chan int, 1)
			go func() { ran <- h.Run(t.Context()) }()
			say(message)
			synctest.Wait()
			id := b.find("can_use_tool")
			if (id != "") != (c.say != nil) {
				t.Fatalf("%s: %v", name, b.lines())
			}
			if c.say != nil {
				say(c.say(id))
			}
			synctest.Wait()
			got := ""
			select {
			case a := <-s.answers:
				got = strings.TrimSpace(a.Option + " " + string(a.Mode))
			default:
			}
			s.end("success")
			synctest.Wait()
			all := strings.Join(b.lines(), "\n")
			if got != c.want || !strings.Contains(all, c.told) || c.withdraw != strings.Contains(all, `"control_cancel_request","request_id":"`+id) {
				t.Errorf("%s: %q\n%s", name, got, all)
			}
			say(reply(id, `{"behavior":"allow"}`)) // to a question that is closed
			hangUp()
			if code := <-ran; code != 0 {
				t.Errorf("%s: exit code %d", name, code)
			}
		})
	}
}

// TestCutAnywhere: however the bytes of a host arrive they are the same frames, and where they stop what was whole before is heard.
func TestCutAnywhere(t *testing.T) {
	data, err := os.ReadFile("../proto/claude/testdata/host.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	frames := func(r io.Reader) (n, wrong int) {
		d := &Claude{}
		New(io.Discard, d, Lines)
		said := make(chan Said, 100)
		Read(r, d, said, nil)
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

// TestHostGoes: when nobody reads any more the turn is interrupted and the session closed.
func TestHostGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTalk(func(s *talk, _ []event.Block) { s.events.Put(event.Event{Kind: event.TurnBegan, Session: "s1"}) })
		h, b, say, _, heard := stand(t, s, &Claude{})
		b.fails = true
		ran := make(chan int, 1)
		go func() { ran <- h.Run(t.Context()) }()
		say(message)
		synctest.Wait()
		s.events.Put(event.Event{Kind: event.Text, Text: "x"})
		s.events.Put(event.Event{Kind: event.Text, Text: "y"})
		if code := <-ran; code != 1 || len(s.stopped) != 1 || !strings.Contains(strings.Join(heard.lines(), "\n"), "cannot be written") {
			t.Errorf("exit code %d, interrupted %d times, %v", code, len(s.stopped), heard.lines())
		}
	})
}

// TestCodes are Claude Code's: of the last turn, and none for a denial.
func TestCodes(t *testing.T) {
	for reason, want := range map[string]int{"success": 0, "error_max_turns": 1, "cancelled": 1, "": 0} {
		synctest.Test(t, func(t *testing.T) {
			s := newTalk(func(s *talk, _ []event.Block) {
				s.events.Put(event.Event{Kind: event.Denied, Denial: &event.Denial{CallID: "c", Tool: "Bash"}})
				s.end(reason)
			})
			h, _, say, hangUp, _ := stand(t, s, &Claude{})
			ran := make(chan int, 1)
			go func() { ran <- h.Run(t.Context()) }()
			if reason != "" {
				say(message)
			}
			synctest.Wait()
			hangUp()
			if code := <-ran; code != want {
				t.Errorf("%q: %d", reason, code)
			}
		})
	}
}

// TestGreet: the conversation begins with initialize, or with the first thing that is wanted; what is neither is passed over.
func TestGreet(t *testing.T) {
	for lines, want := range map[string]string{
		`{"type":"keep_alive"}` + "\n" + `garbage` + "\n" + `{"type":"control_request","request_id":"i","request":{"subtype":"initialize","appendSystemPrompt":"x"}}` + "\n" + message: "x 0 true",
		message + "\n" + `{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}`:                                                                              "none 1 true",
		`{"type":"keep_alive"}`: "none 0 false",
		``:                      "none 0 false",
		`{"type":"control_request","request_id":"i","request":{"subtype":"initialize","limits":7}}`: "refused 0 true",
	} {
		d := &Claude{}
		h := New(io.Discard, d, Lines)
		h.Log = func(string, ...any) {}
		frames := make(chan Said, Ahead)
		Read(strings.NewReader(lines), d, frames, nil)
		init, further, open := d.Greet(t.Context(), frames)
		got := "none"
		if init != nil {
			if got = init.Append; init.Refused != nil {
				got = "refused"
			}
		}
		if got = fmt.Sprintf("%s %d %v", got, len(further), open); got != want {
			t.Errorf("%s: %s, not %s", lines, got, want)
		}
		if !h.Finish() {
			t.Error("it is not written")
		}
	}
}

// TestModels: the model changes, or the host is told why not.
func TestModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTalk(nil)
		s.set = func(c agent.Change) error {
			if c.Model == "other" {
				return fault.New(fault.Unsupported, "not here")
			}
			return nil
		}
		h, b, say, hangUp, _ := stand(t, s, &Claude{Models: []string{"first"}})
		ran := make(chan int, 1)
		go func() { ran <- h.Run(t.Context()) }()
		for id, model := range map[string]string{"a": `"new"`, "b": `"other"`, "c": "null", "d": `"default"`, "e": "7"} {
			say(`{"type":"control_request","request_id":"` + id + `","request":{"subtype":"set_model","model":` + model + `}}`)
		}
		hangUp()
		<-ran
		all := strings.Join(b.lines(), "\n")
		for _, want := range []string{
			`"success","request_id":"a","response":{"model":"new"}`, `"error","request_id":"b","error":"not here"`, `"request_id":"c","response":{"model":"first"}`,
			`"request_id":"d","response":{"model":"first"}`, `"error","request_id":"e"`,
		} {
			if !strings.Contains(all, want) {
				t.Errorf("no %s in\n%s", want, all)
			}
		}
	})
}
