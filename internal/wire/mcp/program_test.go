package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// logged collects what is told.
type logged struct {
	mu  sync.Mutex
	all []string
}

func (l *logged) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *logged) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.all, func(s string) bool { return strings.Contains(s, part) })
}

// as returns the test binary as a server.
func as(t *testing.T, role string) Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{
		Name: "test", Command: []string{exe}, Env: map[string]string{roleVariable: role, "GORACE": "atexit_sleep_ms=0"},
	}
}

// rest is short: a server that does not go by itself costs twice that.
const rest = 300 * time.Millisecond

func open(t *testing.T, s Server, o Options) *Conn {
	t.Helper()
	if o.Rest == 0 {
		o.Rest = rest
	}
	c, err := Open(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// within fails the test if do takes longer: a test that hangs says nothing.
func within(t *testing.T, limit time.Duration, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s takes longer than %v", what, limit)
	}
}

func callText(t *testing.T, c *Conn, name, input string) string {
	t.Helper()
	r, err := c.Call(t.Context(), name, json.RawMessage(input), nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r.Text
}

func TestOpenAndCall(t *testing.T) {
	t.Parallel()
	c := open(t, as(t, "good"), Options{})
	if c.Protocol != "2025-06-18" || c.Err() != nil {
		t.Errorf("got %q %v", c.Protocol, c.Err())
	}
	tools := c.Tools()
	if len(tools) != 1 || tools[0].Name != "echo" ||
		!strings.Contains(string(tools[0].Input), "properties") {
		t.Errorf("got %+v", tools)
	}
	for input, want := range map[string]string{`{"text":"hi"}`: `{"text":"hi"}`, "": "{}", " {} ": "{}"} {
		if got := callText(t, c, "echo", input); got != want {
			t.Errorf("%q: got %q", input, got)
		}
	}
	for _, input := range []string{"[]", "{", "null", "7"} {
		if _, err := c.Call(t.Context(), "echo", json.RawMessage(input), nil); !errors.Is(err, fault.ArgError) {
			t.Errorf("%q: %v", input, err)
		}
	}
	if got := callText(t, c, "batch", ""); got != "of a list" {
		t.Errorf("a list of messages: %q", got)
	}
	if got := callText(t, c, "twice", ""); got != "first" {
		t.Errorf("two answers: %q", got)
	}
	if got := callText(t, c, "structured", ""); got != `{"a":[1,2]}` {
		t.Errorf("structured: %q", got)
	}
	long := callText(t, c, "long", "")
	if len(long) > maxText+200 || !strings.Contains(long, "is its beginning") || strings.Contains(long, "\uFFFD") {
		t.Errorf("a long text: %d bytes, ends %q", len(long), long[len(long)-80:])
	}
	for name, says := range map[string]string{"refused": "wrong arguments (-32602)", "nothing": "neither"} {
		if _, err := c.Call(t.Context(), name, nil, nil); !errors.Is(err, fault.AgentRefused) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	c := open(t, as(t, "good"), Options{})
	r, err := c.Call(t.Context(), "parts", nil, nil)
	want := "one\n[an image of the kind image/svg+xml, which models do not see]\n[an image that cannot be " +
		"decoded]\n[audio, audio/wav, 3 bytes, which cannot be heard here]\n" +
		"[link to file:///x: X ]\n[file:///y]\nwhy\n[file:///z, application/zip, 3 bytes]\n[a part of the kind " +
		"hologram, which is not known here]\n[a part that cannot be read]"
	if err != nil || r.Text != want || !r.Failed || string(r.Structured) != `{"a":1}` {
		t.Errorf("got %v, %+v\n%s", err, r, r.Text)
	}
	if len(r.Images) != 2 || r.Images[0].Media != "image/png" || string(r.Images[0].Data) != "\x00\x01\x02" ||
		r.Images[1].Media != "image/gif" {
		t.Errorf("images: %+v", r.Images)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	c := open(t, as(t, "good"), Options{})
	var got []string
	r, err := c.Call(t.Context(), "progress", nil, func(s string) { got = append(got, s) })
	if err != nil || r.Text != "done" {
		t.Fatal(r, err)
	}
	// The answer may overtake the last of it.
	if len(got) > 3 || len(got) > 0 && got[0] != "step (1 of 3)" {
		t.Errorf("got %q", got)
	}
}

func TestWhatAServerMayAsk(t *testing.T) {
	t.Parallel()
	var log logged
	c := open(t, as(t, "early"), Options{Roots: []string{"/work/a b"}, Log: log.add})
	var got map[string]string
	if err := json.Unmarshal([]byte(callText(t, c, "asks", "")), &got); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]string{
		"ping": "{}", "roots/list": `"uri":"file:///work/a%20b"`, "sampling/createMessage": `"code":-32601`,
		"elicitation/create": `"code":-32601`,
	} {
		if answer := got[`"`+method+`"`]; !strings.Contains(answer, want) {
			t.Errorf("%s: %s", method, answer)
		}
	}
	if !log.has("sampling/createMessage, which was refused") {
		t.Errorf("told %q", log.all)
	}
	c = open(t, as(t, "good"), Options{})
	if text := callText(t, c, "asks", ""); strings.Contains(text, "uri") ||
		!strings.Contains(text, "roots are not offered") {
		t.Errorf("without roots: %s", text)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "cancelled")
	s := as(t, "good")
	s.Env["CANCELLED"] = told
	c := open(t, s, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, "silent", nil, nil)
		result <- err
	}()
	for callText(t, c, "open", "") == "{}" {
		if t.Context().Err() != nil {
			t.Fatal("the call does not arrive")
		}
	}
	cancel()
	if err := <-result; !errors.Is(err, fault.Interrupted) {
		t.Errorf("got %v", err)
	}
	for end := time.Now().Add(hermetic.Patience); ; time.Sleep(5 * time.Millisecond) {
		if data, _ := os.ReadFile(told); len(data) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server is not told")
		}
	}
	if got := callText(t, c, "echo", ""); got != "{}" {
		t.Errorf("after it: %q", got)
	}
}

func TestClockOfACall(t *testing.T) {
	t.Parallel()
	s := as(t, "good")
	s.Call = 50 * time.Millisecond
	c := open(t, s, Options{})
	_, err := c.Call(t.Context(), "silent", nil, nil)
	if !errors.Is(err, fault.TimedOut) || !strings.Contains(err.Error(), "silent within 50ms") {
		t.Errorf("got %v", err)
	}
}

func TestServersThatDoNotOpen(t *testing.T) {
	t.Parallel()
	missing := Server{Name: "test", Command: []string{"no-such-program-at-all"}}
	for name, c := range map[string]struct {
		s    Server
		code fault.Code
		says string
	}{
		"die":     {as(t, "die"), fault.ServiceDown, "cannot open the database"},
		"mute":    {as(t, "mute"), fault.TimedOut, "within 400ms"},
		"future":  {as(t, "future"), fault.ServiceDown, "2099-01-01"},
		"refuses": {as(t, "refuses"), fault.AgentRefused, "no licence"},
		"missing": {missing, fault.NotInstalled, "no-such-program-at-all"},
		"neither": {Server{Name: "test"}, fault.ConfigInvalid, "command or a url"},
		"both": {
			Server{Name: "test", Command: []string{"x"}, URL: "http://x"},
			fault.ConfigInvalid,
			"command or a url",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Rest: rest}
			if name == "mute" {
				o.Open = 400 * time.Millisecond
			}
			within(t, 20*time.Second, "to give up", func() {
				conn, err := Open(t.Context(), c.s, o)
				if conn != nil || !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
				if err != nil && (strings.Contains(err.Error(), "sk-canary") || strings.Contains(err.Error(), "\x1b")) {
					t.Errorf("it is told as it is: %v", err)
				}
			})
		})
	}
}

func TestVersionsAndLists(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]struct {
		tools int
		told  string
	}{
		"old": {1, ""}, "none": {0, ""}, "split": {2, ""}, "pages": {maxPages, "more than 64 pages"}, "circle": {
			2,
			"in a circle",
		},
		"many": {maxTools, "more than 512 tools"}, "odd": {2, "left out"}, "garbage": {1, "other than a message"},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			var log logged
			c := open(t, as(t, role), Options{Log: log.add})
			if len(c.Tools()) != want.tools || want.told != "" && !log.has(want.told) || want.told == "" &&
				len(log.all) > 0 {
				t.Errorf("%d tools, told %q", len(c.Tools()), log.all)
			}
			if role == "old" && c.Protocol != "2024-11-05" {
				t.Errorf("version %s", c.Protocol)
			}
			if got := callText(t, c, "echo", `{"a":1}`); got != `{"a":1}` {
				t.Errorf("got %q", got)
			}
			if len(log.all) > maxLogged {
				t.Errorf("%d lines are told", len(log.all))
			}
		})
	}
}

func TestOddTools(t *testing.T) {
	t.Parallel()
	c := open(t, as(t, "odd"), Options{})
	d := open(t, as(t, "good"), Options{})
	d.server.Name = strings.Repeat("very long ", 10)
	o := NewOffer(c, d)
	if len(o.Tools) != 3 || o.Tools[0].Name != "mcp__test__a_b__" || o.Tools[1].Name != "mcp__test__a_b___2" ||
		len(o.Tools[2].Name) > maxName {
		t.Fatalf("got %+v", o.Tools)
	}
	first := o.Tools[0]
	if first.Description != "one\ntwo" || string(first.Input) != `{"properties":{"x":{}},"type":"object"}` ||
		string(o.Tools[1].Input) != `{"type":"object"}` {
		t.Errorf("got %+v, %s", first, first.Input)
	}
	server, tool, ok := o.About(first.Name)
	if !ok || server != "test" || tool != "a b/ü" {
		t.Errorf("got %s %+v", server, tool)
	}
	if r, err := o.Call(t.Context(), o.Tools[2].Name, json.RawMessage(`{"x":2}`), nil); err != nil ||
		r.Text != `{"x":2}` {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := o.Call(t.Context(), "mcp__test__echo", nil, nil); !errors.Is(err, fault.NotFoundCode) {
		t.Errorf("got %v", err)
	}
}

func TestCrash(t *testing.T) {
	t.Parallel()
	c := open(t, as(t, "good"), Options{})
	_, err := c.Call(t.Context(), "crash", nil, nil)
	if !errors.Is(err, fault.ServiceDown) || !strings.Contains(err.Error(), "code 139") ||
		!strings.HasSuffix(err.Error(), "segmentation fault") || len(err.Error()) > maxStderr+200 {
		t.Errorf("got %v", err)
	}
	if _, again := c.Call(t.Context(), "echo", nil, nil); !errors.Is(again, fault.ServiceDown) || c.Err() == nil {
		t.Errorf("afterwards: %v", again)
	}
}

func TestHugeAnswer(t *testing.T) { // not beside others: it measures memory
	var log logged
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := open(t, as(t, "good"), Options{Log: log.add})
	for _, name := range []string{"huge", "huge first"} {
		other := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := c.Call(ctx, "silent", nil, nil)
			other <- err
		}()
		for callText(t, c, "open", "") == "{}" {
			time.Sleep(time.Millisecond)
		}
		_, err := c.Call(t.Context(), name, nil, nil)
		if !errors.Is(err, fault.FieldTooLarge) || !log.has("more than 10 MiB") {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case err := <-other:
			t.Errorf("%s: another call was ended: %v", name, err)
		default:
		}
		cancel()
		<-other
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 80<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if got := callText(t, c, "echo", ""); got != "{}" {
		t.Errorf("after it: %q", got)
	}
}

func TestFlood(t *testing.T) {
	t.Parallel()
	var log logged
	c := open(t, as(t, "good"), Options{Log: log.add})
	within(t, 20*time.Second, "a flood", func() {
		if got := callText(t, c, "flood", ""); got != "flooded" {
			t.Errorf("got %q", got)
		}
	})
	if len(log.all) > maxLogged {
		t.Errorf("%d lines are told", len(log.all))
	}
}

func TestServerThatStopsReading(t *testing.T) {
	t.Parallel()
	s := as(t, "good")
	s.Call = 200 * time.Millisecond
	c := open(t, s, Options{})
	callText(t, c, "stop reading", "")
	big := json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 3 {
		if _, err := c.Call(t.Context(), "echo", big, nil); !errors.Is(err, fault.TimedOut) {
			t.Errorf("got %v", err)
		}
	}
	within(t, 15*time.Second, "Close", c.Close)
}

func TestClose(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"good", "lingers"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			patience := map[string]time.Duration{"good": 10 * time.Second}[role]
			c := open(t, as(t, role), Options{Rest: patience})
			waiting := make(chan error, 1)
			go func() {
				_, err := c.Call(t.Context(), "silent", nil, nil)
				waiting <- err
			}()
			for callText(t, c, "open", "") == "{}" {
				time.Sleep(time.Millisecond)
			}
			within(t, 15*time.Second, "Close", func() { c.Close(); c.Close() })
			if err := <-waiting; !errors.Is(err, fault.Interrupted) {
				t.Errorf("the call that waited: %v", err)
			}
			end := c.wire.(*program).child.Wait() // returns at once: nothing is left
			if graceful := role == "good"; graceful != (end.ExitCode == 0 && !end.Ended) {
				t.Errorf("it ended with %+v", end)
			}
		})
	}
}

func TestStubbornServer(t *testing.T) {
	t.Parallel()
	within(t, 15*time.Second, "to give up", func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Open(ctx, as(t, "stubborn"), Options{Rest: rest}); !errors.Is(err, fault.Interrupted) {
			t.Errorf("got %v", err)
		}
	})
}

func TestEnvironmentOfAServer(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "canary")
	s := as(t, "good")
	s.Env["MINE"], s.Dir = "yes", t.TempDir()
	c := open(t, s, Options{Programs: process.Programs{Env: []string{"PATH=" + os.Getenv("PATH"), "LC_MEASUREMENT=x"}}})
	got := callText(t, c, "environment", "")
	if strings.Contains(got, "canary") || !strings.Contains(got, `"MINE=yes"`) || !strings.Contains(got, `"PATH=`) ||
		!strings.Contains(got, "LC_MEASUREMENT=x") {
		t.Errorf("got %s", got)
	}
	want, _ := filepath.EvalSymlinks(s.Dir)
	if got := callText(t, c, "directory", ""); got != want {
		t.Errorf("it runs in %s, not %s", got, want)
	}
}
