//go:build unix

package terminal

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"omniagent/internal/testkit/emulator"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestScreens compares what a person sees in windows of three widths with what was looked at before.
func TestScreens(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			keep := func(title string, p emulator.Picture) {
				fmt.Fprintf(&b, "==== %s\n", title)
				b.WriteString(regexp.MustCompile(`[⠋⠙⠸⠴⠦⠇] answering \d+s`).ReplaceAllString(p.Text(),
					"⠋ answering 0s"))
			}
			w := open(t, emulator.Xterm(t, columns, 40), columns, 40, "-rate", "1")
			keep("an empty prompt", w.shows("say something"))
			w.types("/p")
			keep("candidates", w.shows("/pick"))
			w.types("\x15what is it?\x1b\rplease answer with everything that you know about the matter")
			keep("a message of two lines", w.shows("the matter"))
			w.types("\r")
			keep("a turn", w.shows("2 tokens"))
			w.types("typed meanwhile")
			keep("typing in a turn", w.shows("typed meanwhile"))
			w.types("\x03")
			keep("interrupted", w.shows("interrupted"))
			w.types("\x15\x04")
			_ = w.ends()
			keep("the end", w.emulator.Look())

			w = open(t, emulator.Xterm(t, columns, 40), columns, 40, "-rate", "5000")
			w.sees("say something")
			w.types("hello\r")
			w.shows("The end.")
			w.types("\x04")
			_ = w.ends()
			keep("an answer", w.emulator.Look())
			emulator.Golden(t, *update, fmt.Sprintf("screens-%d.txt", columns), b.String())
		})
	}
}
