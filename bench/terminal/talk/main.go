// Command talk is a scripted conversation on the rooms of the terminal: what the host of a chat does with them, without
// an agent. Tests look at it through terminal emulators, and bench/terminal measures it.
//
//	talk [-rate 1000] [-script FILE] [-transcript FILE] [-state DIR] [-reader]
//
// A message is answered with the script, so many tokens a second. /pick, /ask, /page, /panic and /quit do what they
// say; Ctrl-C interrupts an answer, and leaves when pressed twice at an empty prompt.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/term/cells"
	"omniagent/internal/term/keys"
	"omniagent/internal/term/lineedit"
	"omniagent/internal/term/markdown"
	"omniagent/internal/term/screen"
	"omniagent/internal/term/terminal"
)

func main() {
	if process.IsGuard(os.Args) {
		os.Exit(process.Guard())
	}
	rate := flag.Int("rate", 1000, "tokens a second")
	script := flag.String("script", "", "the answer, in `FILE`")
	transcript := flag.String("transcript", "", "write the finished lines to `FILE`")
	state := flag.String("state", "", "the `DIRECTORY` of the state")
	reader := flag.Bool("reader", false, "as for a screen reader")
	flag.Parse()
	if err := run(*rate, *script, *transcript, *state, *reader); err != nil {
		fmt.Fprintln(os.Stderr, "talk:", err)
		os.Exit(1)
	}
}

// talk is a running conversation.
type talk struct {
	terminal *terminal.Terminal
	screen   *screen.Screen
	editor   *lineedit.Editor
	options  screen.Options
	styled   bool
	log      *os.File

	answer   string // of each message
	interval time.Duration
	text     *markdown.Renderer // of the answer that runs; nil: none does
	rest     string
	began    time.Time
	tokens   int64
	counted  int64 // tokens at the last second
	armed    bool  // Ctrl-C was pressed at an empty prompt
}

func run(rate int, script, transcript, state string, reader bool) (err error) {
	if terminal.Recover(state, os.Stdin, os.Stdout) {
		fmt.Println("the terminal is as it was")
	}
	t := &talk{answer: sample, interval: time.Second / time.Duration(rate), styled: screen.Colour(os.LookupEnv)}
	if script != "" {
		data, err := os.ReadFile(script)
		if err != nil {
			return err
		}
		t.answer = string(data)
	}
	if transcript != "" {
		if t.log, err = os.Create(transcript); err != nil {
			return err
		}
		defer t.log.Close()
	}
	if t.terminal, err = terminal.Open(terminal.Options{In: os.Stdin, Out: os.Stdout, State: state}); err != nil {
		return err
	}
	defer t.terminal.Close()
	t.options = screen.Options{Out: t.terminal, Size: t.terminal.Size, Reader: reader, Plain: !t.styled}
	t.screen = screen.New(t.options)
	history, err := lineedit.OpenHistory("", nil)
	if err != nil {
		return err
	}
	hint := "say something"
	if reader {
		hint = ""
	}
	t.editor = lineedit.New(lineedit.Options{Prompt: "> ", Hint: hint, History: history, Complete: commands})
	defer t.editor.Close()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	return t.loop(signals)
}

// commands completes the words that begin with a slash.
func commands(_ context.Context, before string, offer func(lineedit.Offer)) {
	var found []lineedit.Candidate
	for _, name := range []string{"/ask", "/page", "/panic", "/pick", "/quit"} {
		if strings.HasPrefix(before, "/") && strings.HasPrefix(name, before) {
			found = append(found, lineedit.Candidate{Text: name, Description: "a command"})
		}
	}
	offer(lineedit.Offer{Candidates: found})
}

func (t *talk) loop(signals <-chan os.Signal) error {
	tokens := time.NewTicker(t.interval)
	defer tokens.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		t.show()
		var pieces, ticks <-chan time.Time
		if t.text != nil {
			pieces, ticks = tokens.C, second.C
		}
		select {
		case k, more := <-t.terminal.Input():
			if leave, err := t.key(k); leave || !more || err != nil {
				return t.leave(err)
			}
		case <-pieces:
			t.piece()
		case <-ticks:
			t.counted = t.tokens
		case <-t.editor.Changed():
		case <-signals:
			return t.leave(nil)
		}
	}
}

func (t *talk) leave(err error) error {
	if t.text != nil {
		t.print(t.text.Close()...)
	}
	t.print("goodbye")
	if closed := t.screen.Close(); err == nil {
		err = closed
	}
	return err
}

// show sets the live region.
func (t *talk) show() {
	live := screen.Live{Input: t.editor.View(t.screen.Width())}
	if t.text != nil {
		live.Tail = t.text.Tail()
		live.Above = []string{screen.Working("answering", time.Since(t.began), t.counted)}
	}
	if t.armed {
		live.Below = []string{cells.Faint.Of("Ctrl-C again leaves")}
	}
	t.screen.Set(live)
}

func (t *talk) print(lines ...string) {
	for _, line := range lines {
		if t.log != nil {
			fmt.Fprintln(t.log, cells.Plain(line))
		}
	}
	t.screen.Print(lines...)
}

// piece takes the next token of the answer.
func (t *talk) piece() {
	n := min(5, len(t.rest))
	t.print(t.text.Write(t.rest[:n])...)
	t.tokens++
	if t.rest = t.rest[n:]; t.rest == "" {
		t.print(t.text.Close()...)
		t.text = nil
	}
}

func (t *talk) key(k keys.Key) (leave bool, err error) {
	if t.screen.Handle(k) {
		return false, nil
	}
	armed := t.armed
	t.armed = false
	switch t.editor.Key(k) {
	case lineedit.Submit:
		return t.command(t.editor.Take())
	case lineedit.Interrupt:
		switch {
		case t.text != nil:
			t.print(t.text.Close()...)
			t.print("interrupted")
			t.text = nil
		case !t.editor.Empty():
			t.editor.Set("")
		case armed:
			return true, nil
		default:
			t.armed = true
		}
	case lineedit.EndInput:
		return true, nil
	case lineedit.Suspend:
		_ = t.screen.Clear()
		err = t.terminal.Suspend()
	}
	return false, err
}

// command does what was typed.
func (t *talk) command(typed string) (leave bool, err error) {
	for i, line := range strings.Split(typed, "\n") {
		prompt := "> "
		if i > 0 {
			prompt = "  "
		}
		t.print(cells.Bold.Of(prompt + line))
	}
	switch typed {
	case "":
	case "/quit":
		return true, nil
	case "/panic":
		panic("as asked")
	case "/page":
		_ = t.screen.Clear()
		err = screen.Page(context.Background(), t.terminal, process.Programs{Env: os.Environ()}, os.Environ(),
			os.TempDir(), t.answer)
	case "/ask":
		_ = t.screen.Clear()
		_, err = confirm(context.Background(), t.terminal, t.options, "Go on?")
	case "/pick":
		err = t.pick()
	default:
		if t.text == nil {
			columns, _ := t.terminal.Size()
			t.text = markdown.New(markdown.Options{Width: columns, Styled: t.styled})
			t.rest, t.began, t.tokens, t.counted = t.answer, time.Now(), 0, 0
		}
	}
	return false, err
}

func (t *talk) pick() error {
	_ = t.screen.Clear()
	p := &screen.Picker{Title: "Which one?", Items: []screen.Item{
		{Text: "alpha", Description: "the first"}, {Text: "beta", Description: "the second"}, {Text: "gamma"},
	}}
	index, ok, err := pick(context.Background(), t.terminal, t.options, p)
	if err != nil && fault.Of(err).Code != fault.Interrupted {
		return err
	}
	if ok {
		t.print("chosen: " + p.Items[index].Text)
	}
	return nil
}

const sample = `# An answer

Some text with **bold**, *italic* and ` + "`code`" + `, and a paragraph that is long enough to be broken into several rows in
every window that a person is likely to have, since it goes on and on without a line break until its end comes at last here.

- first item
- second item, with 日本語 and äöü

| Name | Value | What it is for |
|---|--:|---|
| alpha | 1 | the first letter |
| beta | 22 | the second letter, with a longer text than the others have |

` + "```go\nfunc main() { // says hello\n\tfmt.Println(\"hello, world\")\n}\n```" + `

> a quote

The end.
`
