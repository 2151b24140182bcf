//go:build unix

package chat

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/term/cells"
	"omniagent/internal/testkit/emulator"
)

// talk is a conversation with text of every script, calls, results, a question and a change of the size where nothing
// that is finished depends on the width: prose of one word is left to the terminal.
func talk(t *testing.T) *place {
	t.Helper()
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, "## Part %d\n\n", i)
		for j := range 40 {
			fmt.Fprintf(&text, "word%d-%d=and=**bold=%d**=", i, j, j)
		}
		text.WriteString("\n\n- one item with 日本語の文字 in it\n- another with `code`\n\n```go\nx := 1 // note\n```\n\n")
	}
	steps, err := json.Marshal([]map[string]any{
		{"say": "I begin.", "usage": map[string]int{"input": 100, "output": 10}},
		{"shell": "seq 1 30", "usage": map[string]int{"input": 200, "output": 10}},
		{"say": text.String(), "slow": "3ms"},
		{"shell": "while ! test -e go; do sleep 0.05; done", "usage": map[string]int{"input": 300, "output": 900}},
		{"call": map[string]any{"name": "Edit", "input": map[string]any{
			"file_path": "poem.txt", "old_string": "line two", "new_string": "LINE 2",
		}}, "usage": map[string]int{"input": 350, "output": 20}},
		{"say": "It is changed.", "usage": map[string]int{"input": 400, "output": 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlaceOf(t, scripts{
		"": parsed(t, `[{"say":"ok","usage":{"input":500,"output":1}}]`), "begin": parsed(t, string(steps)),
	})
	p.write("poem.txt", "line one\nline two\n")
	p.args = append(p.args, "--yolo")
	return p
}

// holds holds the conversation, and leaves it.
func (w *window) holds(p *place) {
	w.t.Helper()
	p.write("go", "")
	w.shows("/help lists", false)
	w.types("begin\r")
	w.shows("It is changed.", false)
	w.types("and now?\r")
	w.shows("\nok", false)
	w.types("/quit\r")
	w.leaves()
}

// equal makes equal what differs from one conversation to the next.
func equal(lines []string) []string {
	for i, line := range lines {
		lines[i] = ids.ReplaceAllString(line, "sess$1-00000000")
	}
	return lines
}

// transcript compares the lines of an emulator with what was looked at; it returns the difference.
func transcript(t *testing.T, lines []string) string {
	t.Helper()
	if equal(lines); *update {
		return ""
	}
	data, err := os.ReadFile(filepath.Join("testdata", "transcript.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return emulator.Differ(lines, emulator.Trim(strings.Split(string(data), "\n")))
}

// throughSizes holds a conversation again, a few times, if a frame met two sizes at once: see test/terminal.
func throughSizes(t *testing.T, converse func(random *rand.Rand) (wrong string)) {
	t.Helper()
	for range 3 {
		seed := uint64(time.Now().UnixNano())
		wrong := converse(rand.New(rand.NewPCG(seed, 0)))
		if wrong == "" {
			return
		}
		t.Logf("seed %d: %s", seed, wrong)
	}
	t.Error("no conversation came through")
}

// throughAll changes the size and types all the time.
func throughAll(random *rand.Rand, times int, resize func(columns, rows int), types func(string)) {
	if times > 0 {
		types(strings.Repeat("typed ", 12)) // several rows in most sizes
	}
	for i := range times {
		time.Sleep(time.Duration(20+random.IntN(120)) * time.Millisecond)
		resize(50+random.IntN(90), 18+random.IntN(30))
		if i%5 == 0 {
			types("typed ")
		}
	}
}

// TestScrollback: scrollback and screen together are what was said, each line once, in a window that stays as it is
// and in one that changes its size fifty times.
func TestScrollback(t *testing.T) {
	t.Parallel()
	t.Run("pyte", func(t *testing.T) {
		t.Parallel()
		p := talk(t)
		w := p.before(emulator.Pyte(t, 80, 24), 80, 24)
		w.holds(p)
		data, err := os.ReadFile(filepath.Join("testdata", "transcript.txt"))
		if err != nil {
			t.Fatal(err)
		}
		var rows []string // it does not know which lines it has broken
		for line := range strings.Lines(string(data)) {
			rows = append(rows, cells.Break(strings.TrimSuffix(line, "\n"), 80)...)
		}
		if wrong := emulator.Differ(equal(w.look.Look().Lines), emulator.Trim(rows)); wrong != "" {
			t.Error(wrong)
		}
	})
	t.Run("still", func(t *testing.T) {
		t.Parallel()
		p := talk(t)
		w := p.before(emulator.Xterm(t, 80, 24), 80, 24)
		w.holds(p)
		lines := w.look.Look().Lines
		if wrong := transcript(t, lines); wrong != "" {
			t.Error(wrong)
		}
		if *update {
			emulator.Golden(t, true, "transcript.txt", strings.Join(emulator.Trim(lines), "\n")+"\n")
		}
	})
	t.Run("resized", func(t *testing.T) {
		t.Parallel()
		throughSizes(t, func(random *rand.Rand) string {
			p := talk(t)
			w := p.before(emulator.Xterm(t, 80, 24), 80, 24)
			w.shows("/help lists", false)
			w.types("begin\r")
			resize := func(columns, rows int) {
				w.look.Resize(columns, rows)
				if err := pty.Setsize(w.keys, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}); err != nil {
					t.Fatal(err)
				}
			}
			throughAll(random, 50, resize, w.types)
			w.types("\x15")
			w.shows("test -e go", true)
			w.shows("\n> a message", true)
			p.write("go", "")
			w.shows("It is changed.", false)
			w.types("and now?\r")
			w.shows("\nok", false)
			throughAll(random, 50, resize, w.types) // with several rows in the prompt, and nothing above it
			w.types("\x15")
			w.shows("\n> a message", false)
			w.types("/quit\r")
			w.leaves()
			return transcript(t, w.look.Look().Lines)
		})
	})
}

// TestTmux: the same in tmux.
func TestTmux(t *testing.T) {
	t.Parallel()
	for name, resizes := range map[string]int{"still": 0, "resized": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			throughSizes(t, func(random *rand.Rand) string {
				place := talk(t)
				argv := append([]string{program, "chat"}, place.args...)
				p := emulator.Tmux(t, place.work, append([]string{"-i", "TERM=tmux-256color"}, place.env...), argv...)
				p.Shows("/help lists")
				p.Types("begin\r")
				resize := func(columns, rows int) {
					p.Run("resize-window", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows))
				}
				throughAll(random, resizes, resize, p.Types)
				p.Types("\x15")
				p.Shows("test -e go")
				p.Shows("> a message")
				place.write("go", "")
				p.Shows("It is changed.")
				p.Types("and now?\r")
				p.Shows("\nok\n")
				throughAll(random, resizes, resize, p.Types)
				p.Types("\x15")
				p.Shows("> a message")
				p.Types("/quit\r")
				p.Shows("Go on with")
				return transcript(t, p.Lines())
			})
		})
	}
}
