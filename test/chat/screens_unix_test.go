//go:build unix

package chat

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/emulator"
)

var update = flag.Bool("update", false, "write testdata anew")

// scenes are what the model says in the golden screens, by the first word of the message.
func scenes(t *testing.T) scripts {
	t.Helper()
	files, err := filepath.Glob("testdata/scenes/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := scripts{"": parsed(t, `[{"say":"ok"}]`)}
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = parsed(t, string(script))
	}
	return all
}

// shows waits until a text stands on the screen, and a turn runs or does not.
func (w *window) shows(what string, busy bool) emulator.Picture {
	w.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		p := w.look.Look()
		text := strings.Join(p.Screen, "\n")
		there := strings.Contains(text, what) || strings.Contains(strings.Join(p.Screen, ""), what) // or broken
		if there && ticking.MatchString(text) == busy && drawn(p.Screen, what) {
			return p
		}
		if time.Now().After(end) {
			w.t.Fatalf("no %q:\n%s", what, text)
		}
	}
}

// drawn reports whether the screen ends as the program ends it: with a line to type in, with the answers to a question,
// or with what was typed, over several rows or not. A look in the middle of a drawing finds less.
func drawn(screen []string, what string) bool {
	last := ""
	for _, row := range screen {
		if strings.TrimSpace(row) != "" {
			last = row
		}
	}
	return strings.HasPrefix(last, "> ") ||
		strings.Contains(last, "why not") || strings.Contains(last, "Return skips") ||
		strings.HasSuffix(strings.TrimSpace(strings.Join(screen, "")), strings.TrimSpace(what))
}

// keeper writes down scenes, with what differs from one time to the next made equal.
type keeper struct{ b strings.Builder }

var (
	ticking = regexp.MustCompile(`[⠋⠙⠸⠴⠦⠇] (.*?) \d+s`)
	ids     = regexp.MustCompile(`sess(\n?)-[0-9a-f]{8}`)
)

// keep writes down a screen from the last row on that begins with something.
func (k *keeper) keep(title string, p emulator.Picture, from string) {
	for i, row := range slices.Backward(p.Screen) {
		if strings.HasPrefix(row, from) && row != "" {
			p.Screen, p.Row = p.Screen[i:], p.Row-i
			break
		}
	}
	text := p.Text()
	if ticking.MatchString(text) { // the cursor is hidden then, and drawn
		text = strings.Replace(text, "▏", "", 1)
	}
	text = ids.ReplaceAllString(ticking.ReplaceAllString(text, "⠋ $1 0s"), "sess$1-00000000")
	fmt.Fprintf(&k.b, "==== %s\n%s", title, text)
}

// TestScreens compares what a person sees in windows of three widths with what was looked at before.
func TestScreens(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			p := newPlaceOf(t, scenes(t))
			var poem strings.Builder
			for i := range 40 {
				fmt.Fprintf(&poem, "line %d\n", i+1)
			}
			p.write("poem.txt", poem.String())
			w := p.before(emulator.Xterm(t, columns, 60), columns, 60, "--approval", "prompt")
			var k keeper
			k.keep("the first prompt", w.shows("/help lists", false), "test-model")
			w.types("look at the poem, please: how many lines has it, and is there one that is wrong?")
			k.keep("a message of several rows", w.shows("wrong?", false), "> look")
			w.types("\r")
			k.keep("a tool and its result", w.shows("forty lines", false), "> look")
			w.types("change it\r")
			k.keep("a question about a change", w.shows("y yes", true), "> change")
			w.types("yes\r")
			k.keep("a change", w.shows("Changed.", false), "> change")
			w.types("run it\r")
			k.keep("a question about a command", w.shows("y yes", true), "> run")
			w.types("yes\r")
			k.keep("a command that fails", w.shows("It failed.", false), "> run")
			w.types("plan it\r")
			w.shows("y yes", true)
			w.types("yes\r")
			w.shows("Bash", true)
			w.types("and then this\r")
			w.shows("1 waiting", true)
			w.shows("the message waits", true) // it is printed after the line of the status
			w.types("half a mess")
			k.keep("a list of tasks, and typing in a turn", w.shows("half a mess", true), "> plan")
			p.write("go", "")
			k.keep("what was typed in a turn", w.shows("\nok", false), "> plan")
			w.types("\x15explain it\r")
			k.keep("an answer in Markdown", w.shows("The end.", false), "> explain")
			w.types("/stauts\r")
			k.keep("a command that does not exist", w.shows("nearest", false), "> /stauts")
			w.types("/quit\r")
			w.leaves()
			k.keep("the end", w.look.Look(), "> /quit")
			emulator.Golden(t, *update, fmt.Sprintf("screens-%d.txt", columns), k.b.String())
		})
	}
}
