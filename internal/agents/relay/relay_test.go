package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/lines"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

const stub = "omniagent-relay-stub"

// TestMain lets the test binary be the guard and the agent.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	if os.Args[0] == stub {
		agentStub()
	}
	os.Exit(m.Run())
}

// agentStub repeats what it hears, and does what the last argument says.
func agentStub() {
	said, _ := io.ReadAll(os.Stdin)
	_, _ = os.Stdout.Write(said)
	switch how := os.Args[len(os.Args)-1]; how {
	case "good":
		fmt.Println(`{"is_error":false,"type":"result","permission_denials":[]}`)
	case "bad":
		fmt.Println(`{"is_error":true,"type":"result"}`)
		os.Exit(1)
	case "denied":
		fmt.Println(`{"is_error":false,"type":"result","permission_denials":[{}]}`)
	case "none":
	case "usage":
		os.Exit(42)
	case "hangs":
		time.Sleep(time.Hour)
	case "floods":
		for {
			fmt.Println(strings.Repeat("x", 1000))
		}
	}
	os.Exit(0)
}

func run(t *testing.T, how, in string, change func(*Relay)) (code int, out, log string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var o, l bytes.Buffer
	var mu sync.Mutex
	r := Relay{
		Launch: agent.Launch{
			Path: self, Args: []string{how}, Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"),
			UsageCodes: []int{42},
		}, Name: stub,
		In: strings.NewReader(in), Out: &o, Grace: 100 * time.Millisecond,
		Log: func(f string, a ...any) { mu.Lock(); defer mu.Unlock(); fmt.Fprintf(&l, f+"\n", a...) },
	}
	if change != nil {
		change(&r)
	}
	code, err = r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return code, o.String(), l.String()
}

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		how         string
		stays, calm bool
		want        int
	}{
		{"good", false, false, 0},
		{"bad", false, false, 1},
		{"bad", true, false, 1}, // the code is its own
		{"denied", false, false, 3},
		{"denied", false, true, 0},
		{"denied", true, false, 0},
		{"none", false, false, 1},
		{"none", true, false, 0},
		{"usage", false, false, 2},
	} {
		code, _, log := run(t, tt.how, "", func(r *Relay) { r.UntilEOF, r.Quiet = tt.stays, tt.calm })
		if code != tt.want {
			t.Errorf("%+v: %d, %s", tt, code, log)
		}
	}
}

// TestLines: what the agent would die of does not reach it, and the rest does as it is.
func TestLines(t *testing.T) {
	const good = `{"type":"user", "message":{"role":"user","content":"é "}}` + "\n" +
		` {"request":{"subtype":"odd"},"type":"control_request"}` + "\n"
	in := "garbage\n\n" + good + `{"type":"odd"}` + "\n" + `{"type":"user"}` + "\n[]\n" + `{"type":"keep_alive"}` +
		"\n" + `{"type":"us`
	code, out, log := run(t, "good", in, nil)
	want := good + `{"type":"keep_alive"}` + "\n"
	if got := strings.TrimSuffix(out, `{"is_error":false,"type":"result","permission_denials":[]}`+"\n"); code != 0 ||
		got != want {
		t.Errorf("%d: %q", code, got)
	}
	if n := strings.Count(log, "was skipped"); n != 5 {
		t.Errorf("%d lines were named: %s", n, log)
	}
	if _, out, _ = run(t, "good", `{"type":"keep_alive"}`, nil); !strings.HasPrefix(out, `{"type":"keep_alive"}`+"\n") {
		t.Errorf("a last line without an end: %q", out)
	}
}

// TestErrorsAreLoggedInLines: what the agent writes to standard error is logged in its lines, wherever it was cut.
func TestErrorsAreLoggedInLines(t *testing.T) {
	var logged []string
	errs := tail{
		log:  func(f string, a ...any) { logged = append(logged, fmt.Sprintf(f, a...)) },
		cuts: lines.Cutter{Most: longestError},
	}
	for _, piece := range []string{"one li", "ne\ntwo\nthe", "", " last"} {
		if n, err := errs.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	errs.end()
	if want := []string{"one line", "two", "the last"}; !slices.Equal(logged, want) {
		t.Errorf("%q", logged)
	}
}

func TestALineThatIsTooLong(t *testing.T) {
	hermetic.Long(t)
	const good = `{"type":"keep_alive"}` + "\n"
	long := `{"type":"user","message":{"role":"user","content":"` + strings.Repeat("x", longest) + "\"}}\n"
	code, out, log := run(t, "good", long+good, nil)
	if code != 0 || !strings.HasPrefix(out, good) || !strings.Contains(log, "longer than 64 MiB") {
		t.Errorf("%d: %.200q, %s", code, out, log)
	}
}

func TestSignals(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	if code, _, _ := run(t, "hangs", "", func(r *Relay) { r.Signals = signals }); code != 143 {
		t.Error(code)
	}
	if code, _, log := run(t, "floods", "", func(r *Relay) { r.Out = broken{} }); code != 1 ||
		!strings.Contains(log, "cannot be written") {
		t.Errorf("%d: %s", code, log)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	self, _ := os.Executable()
	r := Relay{
		Launch: agent.Launch{Path: self, Args: []string{"hangs"}, Env: os.Environ()}, Name: stub,
		In: strings.NewReader(""), Out: io.Discard, Log: t.Logf, Grace: 50 * time.Millisecond,
	}
	if code, err := r.Run(gone); code != 1 || err != nil {
		t.Error(code, err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

// TestWatch finds each result wherever the bytes are cut, and no other.
func TestWatch(t *testing.T) {
	data := []byte(`{"type":"assistant","text":"\"type\":\"result\""}` + "\n" + `{"is_error":true,"type":"result"}` +
		"\n\n" + `{"a":{"type":"result","is_error":true}}` + "\n" +
		`{"subtype":"x","type":"result","permission_denials":[1]}` + "\n" + `{"type":"x"}`)
	for i := range data {
		var out bytes.Buffer
		w := NewWatch(&out)
		_, _ = w.Write(data[:i])
		_, _ = w.Write(data[i:])
		if last, _ := w.Last(); last == nil || last.IsError || len(last.Denials) != 1 ||
			!bytes.Equal(out.Bytes(), data) {
			t.Fatalf("cut at %d: %+v", i, last)
		}
	}
	w := NewWatch(io.Discard)
	for i := range data[:len(data)/2] {
		_, _ = w.Write(data[i : i+1])
	}
	if last, _ := w.Last(); last == nil || !last.IsError {
		t.Errorf("%+v", last)
	}
}

// stream returns what an agent prints in a long turn.
func stream() []byte {
	piece := []byte(
		`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of it "}},` +
			`"session_id":"d72cb6b5-8bd8-4597-ab0f-6b0f09b4342a","parent_tool_use_id":null,"uuid":"218752f9-e4b7-451b-bfde-e7852f549bfb"}`)
	return bytes.Repeat(append(piece, '\n'), 16<<20/len(piece))
}

// TestCost: no memory for each event, and at least half the speed of looking for the ends of lines alone.
func TestCost(t *testing.T) {
	data := stream()
	w := NewWatch(io.Discard)
	const block = 64 << 10
	pass := func(f func([]byte)) time.Duration {
		began := time.Now()
		for i := 0; i < len(data); i += block {
			f(data[i:min(i+block, len(data))])
		}
		return time.Since(began)
	}
	relayed := func(p []byte) { _, _ = w.Write(p) }
	pass(relayed)
	if n := testing.AllocsPerRun(3, func() { pass(relayed) }); n != 0 {
		t.Errorf("%v allocations in %d MiB", n, len(data)>>20)
	}
	scanned := func(p []byte) {
		for i := bytes.IndexByte(p, '\n'); i >= 0; i = bytes.IndexByte(p, '\n') {
			p = p[i+1:]
		}
	}
	scan, relay := pass(scanned), pass(relayed)
	for range 20 { // the best of each: other programs disturb both
		scan, relay = min(scan, pass(scanned)), min(relay, pass(relayed))
	}
	ratio := float64(scan) / float64(relay)
	t.Logf("%.2f times the speed of scanning", ratio)
	if ratio < 0.5 && !hermetic.Raced {
		t.Errorf("it has %.2f times the speed of scanning", ratio)
	}
}
