//go:build unix

package shim

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// TestCounter counts as utf8.RuneCount does, wherever the bytes are cut.
func TestCounter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"a", "é", "€", "😀", "\xff", "\xc3", "\xe2", "\xe2\x82", "\xf0\x9f\x98", "\x80", "\xed\xa0\x80",
		" ",
	}
	for range 3000 {
		var text []byte
		for range random.IntN(8) {
			text = append(text, pieces[random.IntN(len(pieces))]...)
		}
		var n counter
		for rest := text; len(rest) > 0; {
			cut := 1 + random.IntN(len(rest))
			_, _ = n.Write(rest[:cut])
			rest = rest[cut:]
		}
		if int(n.all()) != utf8.RuneCount(text) || int(n.bytes) != len(text) {
			t.Fatalf("%q: %d characters, %d bytes", text, n.all(), n.bytes)
		}
	}
}

// TestLimits: what is at the limit goes through whole, one beyond is refused before anything is started.
func TestLimits(t *testing.T) {
	const most = 200_000 // more than what is read at first
	tests := []struct {
		name  string
		limit agent.Limit
		text  string
		fits  bool
	}{
		{"characters at the limit", agent.Limit{Characters: most}, strings.Repeat("é", most), true},
		{"one more", agent.Limit{Characters: most}, strings.Repeat("é", most) + "x", false},
		{"bytes at the limit", agent.Limit{Bytes: most}, strings.Repeat("é", most/2), true},
		{"one byte more", agent.Limit{Bytes: most}, strings.Repeat("é", most/2) + "x", false},
		{"both", agent.Limit{Characters: most, Bytes: most}, strings.Repeat("é", most/2) + "x", false},
		{"half a character more", agent.Limit{Characters: most}, strings.Repeat("x", most) + "\xe2\x82", false},
		{"invalid at the limit", agent.Limit{Characters: most}, strings.Repeat("\xe2", most), true},
		{"no limit", agent.Limit{}, strings.Repeat("x", 2*most), true},
		{"small, at the limit", agent.Limit{Characters: 3}, "é\xffx", true},
		{"small, one more", agent.Limit{Characters: 3}, "é\xffxy", false},
		{"blanks first", agent.Limit{Characters: most}, strings.Repeat(" ", most-1) + "x", true},
	}
	for _, tt := range tests {
		for _, way := range []string{"pipe", "file", "flag"} {
			if way == "flag" && len(tt.text) > 1000 {
				continue
			}
			t.Run(tt.name+"/"+way, func(t *testing.T) {
				w := newWorld(t)
				w.script("hello")
				w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.limit = tt.limit })}
				var stdin *os.File
				args := []string{"--agent", "alpha"}
				switch way {
				case "pipe":
					stdin = w.pipe([]byte(tt.text))
				case "file":
					stdin = w.file([]byte(tt.text))
				case "flag":
					args = append(args, "-p", tt.text)
				}
				r := w.run(stdin, args...)
				prompts := w.prompts()
				if tt.fits && (r.code != 0 || len(prompts) != 1 || prompts[0] != tt.text) {
					t.Errorf("%+v, %d prompts", r, len(prompts))
				}
				if !tt.fits &&
					(r.code != 2 || len(prompts) != 0 || !strings.Contains(r.stderr, "that ALPHA takes\nhint: ")) {
					t.Errorf("%+v, %d prompts", r, len(prompts))
				}
			})
		}
	}
}

func TestEmptyPrompts(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil), w.agent("beta", func(d *fake) { d.limit.Bytes = 1 << 20 })}
	for _, text := range []string{"", " \n\t\r", strings.Repeat(" ", 100_000)} {
		for _, name := range []string{"alpha", "beta"} {
			for way, stdin := range map[string]*os.File{"pipe": w.pipe([]byte(text)), "file": w.file([]byte(text))} {
				if r := w.run(stdin, "--agent", name); r.code != 2 || !strings.Contains(r.stderr, "empty") {
					t.Errorf("%s, %s, %d blanks: %+v", name, way, len(text), r)
				}
			}
		}
	}
	if prompts := w.prompts(); len(prompts) != 0 {
		t.Errorf("an agent was started: %q", prompts)
	}
}

// TestFileFromItsPosition: a script that has read the head of a file hands the rest on.
func TestFileFromItsPosition(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.limit.Bytes = 4 })}
	file := w.file([]byte("head\nrest"))
	if _, err := file.Seek(5, 0); err != nil {
		t.Fatal(err)
	}
	if r := w.run(file, "--agent", "alpha"); r.code != 0 || !slices.Equal(w.prompts(), []string{"rest"}) {
		t.Errorf("%+v, %q", r, w.prompts())
	}
}

// held returns a pipe that has so many bytes and stays open.
func (w *world) held(n int) *os.File {
	w.t.Helper()
	r, p, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _, _ = p.Close(), r.Close() })
	go func() { _, _ = p.Write(bytes.Repeat([]byte("x"), n)) }()
	return r
}

// waiters are agents that need more of a prompt than comes, and how much that is.
func (w *world) waiters() map[string]int {
	w.drivers = []agent.Driver{
		w.agent("free", nil), w.agent("limited", func(d *fake) { d.limit.Bytes = 1 << 30 }),
		w.agent("argument", func(d *fake) { d.by = agent.ByArgument }),
	}
	return map[string]int{"free": 1000, "limited": firstLook + 1000, "argument": firstLook + 1000}
}

// TestSignalWhileThePromptIsAwaited ends the wait.
func TestSignalWhileThePromptIsAwaited(t *testing.T) {
	for signal, code := range map[os.Signal]int{
		os.Interrupt: Interrupted, syscall.SIGTERM: Terminated,
		syscall.SIGHUP: HungUp,
	} {
		w := newWorld(t)
		for name, n := range w.waiters() {
			w.signals <- signal
			if got := w.run(w.held(n), "--agent", name); got.code != code || len(w.prompts()) != 0 {
				t.Errorf("%v, %s: %+v", signal, name, got)
			}
		}
	}
}

// TestSignalWhileAnArgumentIsAwaited: the last read before the start can be ended too.
func TestSignalWhileAnArgumentIsAwaited(t *testing.T) {
	w := newWorld(t)
	zero := time.Duration(0)
	c := &shimCall{host: Host{Signals: w.signals}, driver: w.agent("alpha", nil), args: Arguments{Timeout: &zero}}
	w.signals <- syscall.SIGTERM
	err := c.promptArgument(&process.Plan{Argv: []string{"alpha"}}, agent.Launch{Prompt: agent.ByArgument},
		w.held(1000))
	if f := fault.Of(err); f.Code != fault.Interrupted || exitCode(f) != Terminated {
		t.Error(err)
	}
}

// TestPromptThatDoesNotArrive: the time limit holds before the start as well.
func TestPromptThatDoesNotArrive(t *testing.T) {
	w := newWorld(t)
	for name, n := range w.waiters() {
		for _, n := range []int{0, n} {
			if name == "argument" && n > 0 {
				continue // such an agent has a limit, so that its prompt is read at once
			}
			got := w.run(w.held(n), "--agent", name, "--timeout", "200ms")
			if got.code != Failed || len(w.prompts()) != 0 ||
				!strings.Contains(got.stderr, "the prompt did not arrive within 200ms") {
				t.Errorf("%s, %d bytes: %+v", name, n, got)
			}
		}
	}
}

// TestHugeFile is not counted where no limit asks for it.
func TestHugeFile(t *testing.T) {
	w := newWorld(t)
	file := w.file(nil)
	if err := os.Truncate(file.Name(), 200<<30); err != nil {
		t.Skip("this file system has no files of 200 GiB; set TMPDIR to another: ", err)
	}
	zero := time.Duration(0)
	c := &shimCall{host: Host{Stdin: file}, driver: w.agent("alpha", nil), args: Arguments{Timeout: &zero}}
	if err := c.promptFile(agent.Limit{Note: "none"}); err != nil || c.prompt.length.bytes > firstLook {
		t.Errorf("%v, %d bytes", err, c.prompt.length.bytes)
	}
	if err := c.promptFile(agent.Limit{Bytes: 1 << 20}); !errors.Is(err, fault.PromptTooLong) {
		t.Error(err)
	}
}

// TestBlanksFirst: those in front of a prompt that is relayed are a part of it, up to a limit.
func TestBlanksFirst(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	text := strings.Repeat(" ", 1<<20) + "x"
	if r := w.run(w.pipe([]byte(text)), "--agent", "alpha"); r.code != 0 || !slices.Equal(w.prompts(), []string{text}) {
		t.Errorf("%d, %s", r.code, r.stderr)
	}
	if r := w.run(w.pipe(append(bytes.Repeat([]byte("\n"), mostBlanks), 'x')), "--agent", "alpha"); r.code != 2 ||
		!strings.Contains(r.stderr, "16,777,216 blanks") || len(w.prompts()) != 1 {
		t.Errorf("%d, %s", r.code, r.stderr)
	}
}

// TestFullDisk: a full disk is not the caller's mistake.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full, which Linux has: ", err)
	}
	defer full.Close()
	err = copyPrompt(full, strings.NewReader("text"), &counter{})
	if f := fault.Of(err); f.Code != fault.DiskFull || exitCode(f) != Failed ||
		!strings.Contains(f.Suggestion, "TMPDIR") {
		t.Error(err)
	}
	if err := copyPrompt(io.Discard, iotest.ErrReader(errors.New("gone")), &counter{}); !errors.Is(err,
		fault.ArgError) {
		t.Error(err)
	}
}

// TestPromptLikeAFlag gets into no argument where it would be taken for one.
func TestPromptLikeAFlag(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{
		w.agent("bare", func(d *fake) { d.by, d.bare = agent.ByArgument, true }), w.agent("guarded",
			func(d *fake) { d.by = agent.ByArgument }),
	}
	const evil = "--yolo=do evil\n"
	if r := w.run(w.pipe([]byte(evil)), "--agent", "bare"); r.code != 2 || len(w.prompts()) != 0 ||
		!strings.Contains(r.stderr, "hint: define its prompt with") {
		t.Errorf("%+v", r)
	}
	if r := w.run(w.pipe([]byte(evil)), "--agent", "guarded"); r.code != 0 ||
		!slices.Equal(w.prompts(), []string{evil}) {
		t.Errorf("%+v, %q", r, w.prompts())
	}
	if r := w.run(w.pipe([]byte("no "+evil)), "--agent", "bare"); r.code != 0 || len(w.prompts()) != 2 {
		t.Errorf("%+v, %q", r, w.prompts())
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1048576: "1,048,576"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
