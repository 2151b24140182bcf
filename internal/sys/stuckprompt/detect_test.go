package stuckprompt_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"omniagent/internal/sys/stuckprompt"
	"omniagent/internal/testkit/hermetic"
)

const quiet = stuckprompt.Quiet

// TestDetect: what besides the text decides.
func TestDetect(t *testing.T) {
	t.Parallel()
	const (
		asks     = "What is your favorite color? "
		yesNo    = "Overwrite? [y/N] "
		json     = `{"type":"text","text":"Overwrite? [y/N] "}` + "\n"
		notice   = "Reading prompt from stdin...\n"
		progress = "10%\r20%"
	)
	active := stuckprompt.Stream{Quiet: quiet - 1}
	working := stuckprompt.Program{Wait: stuckprompt.Working}
	blocked := stuckprompt.Program{Wait: stuckprompt.Input}
	serving := stuckprompt.Program{Wait: stuckprompt.Input, Speaks: stuckprompt.Driven}
	resting := stuckprompt.Program{Wait: stuckprompt.Resting}
	exited := stuckprompt.Program{Exited: true}
	for _, c := range []struct {
		name           string
		program        stuckprompt.Program // running and quiet, unless it says something else
		stdout, stderr string
		want           string // kind, signature and source
	}{
		{"words that ask", stuckprompt.Program{}, asks, "", ""},
		{"words that ask, all work", working, asks, "", ""},
		{"not quiet yet", stuckprompt.Program{Stdout: active}, yesNo, "", ""},
		{
			"strong, the other stream goes on",
			stuckprompt.Program{Stderr: active},
			yesNo, progress,
			"confirm confirm-letters stdout",
		},
		{"strong, all work", working, yesNo, "", ""},
		{
			"a sign-in, all work",
			working, "Visit https://example.com/device and enter the code ABCD-1234\n", "",
			"login login-code stdout",
		},
		{"the end of input", exited, asks, "", "question question-mark stdout"},
		{
			"ended at once",
			stuckprompt.Program{Exited: true, Stdout: active, Stderr: active},
			asks, "",
			"question question-mark stdout",
		},
		{"ended after a line", exited, asks + "\n", "", ""},
		{"ended without a blank, as an answer does", exited, strings.TrimSpace(asks), "", ""},
		{"ended in a line of JSON", exited, strings.TrimSpace(json), "", ""},
		{
			"the end of input, and more",
			stuckprompt.Program{Exited: true, Asked: []byte(asks)},
			asks + "got=\n", "",
			"question question-mark stdout",
		},
		{"asked, and not over yet", stuckprompt.Program{Asked: []byte(asks)}, asks + "got=\n", "", ""},

		{"rests at a question", resting, asks, "", "question kernel-rest kernel"},
		{"rests below a question", resting, asks + "\n", "", "question kernel-rest kernel"},
		{"rests below one without a mark", resting, "Should I use tabs or spaces\n", "", "question kernel-rest kernel"},
		{"rests in a line", resting, "Your colour, please", "", "question kernel-rest kernel"},
		{"rests, and told something", resting, "Compiling the parser.\n", "", ""},
		{"rests without a word", resting, "", "", ""},
		{"rests below JSON", resting, json, "", ""},
		{"rests for a moment", stuckprompt.Program{Wait: stuckprompt.Resting, Stdout: active}, asks, "", ""},
		{"rests at a password", resting, "", "Password: ", "password password stderr"},
		{"a plain line after JSON", stuckprompt.Program{}, json + yesNo, "", "confirm confirm-letters stdout"},
		{"on the other stream", stuckprompt.Program{}, json, "Password: ", "password password stderr"},
		{"a password before a question", resting, asks, "Password: ", "password password stderr"},
		{"a browser", stuckprompt.Program{}, "Opening it in your browser...", "", "login login-browser stdout"},
		{"a browser, then an end", exited, "Open http://127.0.0.1:3000 in your browser", "", ""},
		{"a notice", stuckprompt.Program{}, "", notice, ""},

		{"blocked", blocked, "done\n", "", "stdin_wait kernel-input kernel"},
		{"blocked without a word", blocked, "", "", "stdin_wait kernel-input kernel"},
		{"blocked for a moment", stuckprompt.Program{Wait: stuckprompt.Input, Stdout: active}, "done\n", "", ""},
		{"blocked in a line", blocked, "Your colour, please", "", "question kernel-input kernel"},
		{"waiting for our protocol", serving, json, "", ""},
		{"waiting for our protocol, in a line of JSON", serving, json[:20], "", ""},
		{"waiting for our protocol, in a line", serving, json + "Colour, please", "", "question kernel-input kernel"},
		{"waiting for our protocol, in a line of its log", serving, json, "50%", ""},
		{"waiting for our protocol, at a password", serving, json + "Password: ", "", "password password stdout"},
		{
			"at the terminal",
			stuckprompt.Program{Wait: stuckprompt.Terminal, Speaks: stuckprompt.Driven},
			json, "",
			"stdin_wait kernel-terminal kernel",
		},
		{"a protocol, and words", stuckprompt.Program{Speaks: stuckprompt.Driven}, json + yesNo, yesNo, ""},
		{"records, and words", stuckprompt.Program{Speaks: stuckprompt.Records}, yesNo, "Password: ", ""},
		{
			"records, and rest",
			stuckprompt.Program{Speaks: stuckprompt.Records, Wait: stuckprompt.Resting},
			yesNo, yesNo, "",
		},
		{"records, and an end", stuckprompt.Program{Speaks: stuckprompt.Records, Exited: true}, yesNo, asks, ""},
		{"unknown", stuckprompt.Program{}, "Your colour, please", "", ""},
		{"ended, another reads", stuckprompt.Program{Wait: stuckprompt.Input, Exited: true}, "done", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := c.program
			p.Stdout.Tail, p.Stderr.Tail = []byte(c.stdout), []byte(c.stderr)
			for _, s := range []*stuckprompt.Stream{&p.Stdout, &p.Stderr} {
				if s.Quiet == 0 {
					s.Quiet = quiet
				}
			}
			got := ""
			if found := stuckprompt.Detect(p); found != nil {
				got = fmt.Sprintf("%s %s %s", found.Kind, found.Signature, found.Source)
			}
			if got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestSensitive: these answers never pass through us.
func TestSensitive(t *testing.T) {
	t.Parallel()
	for kind, want := range map[stuckprompt.Kind]bool{
		stuckprompt.Password: true, stuckprompt.Login: true, stuckprompt.Trust: true,
		stuckprompt.Permission: false, stuckprompt.Question: false, stuckprompt.Confirm: false,
		stuckprompt.Choice: false, stuckprompt.StdinWait: false,
	} {
		if kind.Sensitive() != want {
			t.Errorf("%s: %v", kind, !want)
		}
	}
}

// TestLongLinesAreNoPrompts: however long a line is, little of it is read, and none of it is a prompt.
func TestLongLinesAreNoPrompts(t *testing.T) {
	t.Parallel()
	for line, times := range map[string]int{"a? ": 1 << 18, "[y/": 1 << 18, "\x1b]": 1 << 18, "in your browser ": 400} {
		hermetic.Linear(t, line, times, func(n int) {
			tail := []byte(strings.Repeat(line, n) + "Overwrite? [y/N] ")
			found := stuckprompt.Detect(stuckprompt.Program{
				Stdout: stuckprompt.Stream{Tail: tail, Quiet: quiet}, Stderr: stuckprompt.Stream{Quiet: quiet},
			})
			if found != nil {
				t.Errorf("%q: %.100v", line, found)
			}
		})
	}
}

// fit fails unless s can be printed.
func fit(t *testing.T, s string, most int) {
	t.Helper()
	bad := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, bad) || len(s) > most {
		t.Errorf("%d bytes, %q", len(s), s)
	}
}

// TestStops: a write that ends as a prompt does, and begins the line.
func TestStops(t *testing.T) {
	t.Parallel()
	for write, want := range map[string]string{
		"What is your favorite color? ":        "What is your favorite color? ",
		"Hello.\nOverwrite it? [y/N] ":         "Overwrite it? [y/N] ",
		"Is git installed? ":                   "",
		"Do you want tabs? ":                   "Do you want tabs? ",
		"Password: ":                           "Password: ",
		"What is your favorite color?":         "",
		"What is your favorite color?\n":       "",
		"What is your favorite color? Blue. ":  "",
		"Compiling: ":                          "",
		`{"text":"What is your colour? `:       "",
		"> ":                                   "",
		"":                                     "",
		" ":                                    "",
		strings.Repeat("long ", 400) + "why? ": "",
	} {
		if got := string(stuckprompt.Stops([]byte(write))); got != want {
			t.Errorf("%.60q: %q, want %q", write, got, want)
		}
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte("? Pick:\n❯ a\n  b"), []byte("Password: "), true, 2)
	f.Add([]byte("1) a\n2) b\n[2]: "), []byte("\x1b[2K\r\x9b\xff? [y/N]"), false, 3)
	f.Add([]byte("\x1b]0;\x07│ > 1. a │\n│   2. b │"), []byte("(/)[,]:"), false, 1)
	f.Fuzz(func(t *testing.T, stdout, stderr []byte, exited bool, wait int) {
		found := stuckprompt.Detect(stuckprompt.Program{
			Stdout: stuckprompt.Stream{Tail: stdout, Quiet: quiet},
			Stderr: stuckprompt.Stream{Tail: stderr, Quiet: quiet},
			Exited: exited, Wait: stuckprompt.Wait(wait),
		})
		if found == nil {
			return
		}
		const line = 400 + len("…")
		fit(t, found.Text, 2<<10)
		for _, s := range append([]string{found.Question, found.Default}, found.Choices...) {
			if fit(t, s, line); strings.Contains(s, "\n") {
				t.Errorf("%q has two lines", s)
			}
		}
		if len(found.Choices) > 20 || found.Signature == "" || found.Kind == "" || found.Source == "" {
			t.Errorf("%+v", found)
		}
	})
}

func FuzzQuestions(f *testing.F) {
	f.Add("Which?\n\n- a\n- b")
	f.Add("```\nWhy?\n```\n> Who?\n\n    What?\n`a?` \"b?\" **c?** https://d?\xff")
	f.Fuzz(func(t *testing.T, answer string) {
		open, only := stuckprompt.Questions(answer)
		if only && len(open) == 0 || len(open) > 8 {
			t.Errorf("%v, %q", only, open)
		}
		for _, question := range open {
			if fit(t, question, 400+len("…")); question == "" || strings.Contains(question, "\n") {
				t.Errorf("%q", question)
			}
		}
	})
}

func BenchmarkDetect(b *testing.B) {
	line := []byte(strings.Repeat("│ compiling internal/sys/stuckprompt with \x1b[32mmany\x1b[0m words\n", 400))
	for b.Loop() {
		output := stuckprompt.Stream{Tail: line}
		stuckprompt.Detect(stuckprompt.Program{Stdout: output, Stderr: output, Exited: true})
	}
}
