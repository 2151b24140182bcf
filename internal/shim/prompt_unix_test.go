//go:build unix

package shim

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"omniagent/internal/agent"
)

// TestCounter counts as utf8.RuneCount does, wherever the bytes are cut.
func TestCounter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "é", "€", "😀", "\xff", "\xc3", "\xe2", "\xe2\x82", "\xf0\x9f\x98", "\x80", "\xed\xa0\x80", " "}
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
				if !tt.fits && (r.code != 2 || len(prompts) != 0 || !strings.Contains(r.stderr, "that ALPHA takes\nhint: ")) {
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
				if way == "pipe" && name == "alpha" && len(text) > firstLook {
					continue // it is relayed while it comes
				}
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

// TestSignalWhileThePromptIsAwaited ends the wait.
func TestSignalWhileThePromptIsAwaited(t *testing.T) {
	for signal, code := range map[os.Signal]int{os.Interrupt: Interrupted, syscall.SIGTERM: Terminated, syscall.SIGHUP: HungUp} {
		w := newWorld(t)
		w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.limit.Bytes = 1 << 30 })}
		r, p, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = p.Write(bytes.Repeat([]byte("x"), 1000))
		w.signals <- signal
		got := w.run(r, "--agent", "alpha")
		_ = p.Close()
		_ = r.Close()
		if got.code != code || len(w.prompts()) != 0 {
			t.Errorf("%v: %+v", signal, got)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1048576: "1,048,576"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
