//go:build unix

package terminal

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata anew")

// TestScreens compares what a person sees in windows of three widths with what was looked at before.
func TestScreens(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{40, 80, 200} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			keep := func(title string, p picture) {
				fmt.Fprintf(&b, "==== %s\n", title)
				rows := slices.Clone(p.Screen)
				last := len(trim(slices.Clone(p.Screen)))
				if p.Row < len(rows) { // where the cursor is
					row := []rune(rows[p.Row] + strings.Repeat(" ", columns))
					rows[p.Row] = strings.TrimRight(string(row[:p.Column])+"▏"+string(row[p.Column:]), " ")
				}
				text := strings.Join(rows[:max(last, p.Row+1)], "\n") + "\n"
				b.WriteString(regexp.MustCompile(`[⠋⠙⠸⠴⠦⠇] answering \d+s`).ReplaceAllString(text, "⠋ answering 0s"))
			}
			w := open(t, xterm(t, columns, 40), columns, 40, "-rate", "1")
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
			keep("the end", w.emulator.look())

			w = open(t, xterm(t, columns, 40), columns, 40, "-rate", "5000")
			w.sees("say something")
			w.types("hello\r")
			w.shows("The end.")
			w.types("\x04")
			_ = w.ends()
			keep("an answer", w.emulator.look())
			golden(t, fmt.Sprintf("screens-%d.txt", columns), b.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nand should be\n%s", name, got, want)
	}
}
