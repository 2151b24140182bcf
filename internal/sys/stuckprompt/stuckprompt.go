// Package stuckprompt decides whether an unattended program waits for a person.
//
// A program that asks a question which nobody sees hangs, or takes an empty answer and continues. Detect finds the
// question. It looks at the end of the program's output, how long the output has been quiet, what the kernel says about
// its processes, and whether it has exited. It does no I/O, so captured output replays in tests. Waiting asks the
// kernel; it is the only function that looks at the machine. Questions reads the final answer of a model instead of the
// output of a program.
//
// Output can be anything, also an attack: Detect looks at a bounded end of it, and every text in a Signal is valid
// UTF-8 without control characters, but for the line breaks of Text. The package answers nothing. A prompt for a
// password, a login or trust is Sensitive, and its answer must not pass through us.
package stuckprompt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// Quiet is how long output must have stopped before its last line counts as a prompt.
const Quiet = 1500 * time.Millisecond

// Limits of a Signal.
const (
	maxText     = 2 << 10 // bytes
	maxQuestion = 400     // bytes
	maxChoices  = 20
)

// Kind is what a program waits for.
type Kind string

// The kinds of prompts.
const (
	Question   Kind = "question"   // a text
	Confirm    Kind = "confirm"    // yes or no
	Choice     Kind = "choice"     // one of several
	Password   Kind = "password"   // a password, a passphrase, a PIN
	Login      Kind = "login"      // a name, a key, a code, a browser
	Trust      Kind = "trust"      // whether a folder or a host is trusted
	Permission Kind = "permission" // whether a call may run
	PressKey   Kind = "press_key"  // any key
	Pager      Kind = "pager"      // the next page
	Editor     Kind = "editor"     // an editor's exit
	StdinWait  Kind = "stdin_wait" // something on its input; it does not say what
)

// Sensitive reports whether the answer is a secret or a decision about trust. The user gives it to the program itself.
func (k Kind) Sensitive() bool { return k == Password || k == Login || k == Trust }

// Source is where a prompt was found.
type Source string

// The sources.
const (
	Stdout Source = "stdout"
	Stderr Source = "stderr"
	Kernel Source = "kernel"
)

// Signal is a prompt that was found. Of a program that has exited, it was answered by the end of its input.
type Signal struct {
	Kind      Kind     `json:"kind"`
	Text      string   `json:"text"`               // the end of the output, one screenful
	Question  string   `json:"question,omitempty"` // one line
	Choices   []string `json:"choices,omitempty"`
	Default   string   `json:"default,omitempty"` // what Enter chooses
	Signature string   `json:"signature"`         // the rule that found it
	Source    Source   `json:"source"`
}

// Program is what is known about a program at one moment.
type Program struct {
	Stdout, Stderr Stream
	Wait           Wait // what the kernel says: see Waiting
	Speaks         Speech
	Asked          []byte // the first line at which a write of its stopped, as Stops finds it, if the program went on
	Exited         bool
}

// Speech is how a program is spoken with. It decides what its words can mean.
type Speech int

// The ways.
const (
	Plain   Speech = iota // it prints text, and its input has ended
	Records               // it prints records of a protocol, and its input has ended
	Driven                // its standard input carries our protocol, so that waiting for the next line of it is normal
)

// Stream is one output of a program.
type Stream struct {
	Tail  []byte        // the end of it, best 4 KiB or more
	Quiet time.Duration // since the last byte, or since the start
}

// Wait is what the kernel says about the processes of a program.
type Wait int

// What the kernel can say.
const (
	Unknown  Wait = iota // it does not tell, or a process waits for input and for other things at once
	Working              // every process was looked at; none waits for input, and one works or may be woken
	Input                // one is blocked reading the standard input of the program
	Terminal             // one is blocked reading its terminal
	Resting              // every process is blocked, and no program, connection or near clock will wake one
)

// Detect returns the prompt that the program waits at, or nil. The caller asks again when output arrives, when it has
// been quiet for Quiet, and once when the program has exited.
//
// Of a program that speaks a protocol, words never decide. It waits if the kernel says that it reads a terminal, or
// that it reads the input that carries our protocol while a line other than a record stands open on its output. Of one
// that prints text:
//
//   - A signature matches the last line of a stream, if that line has no end, the stream is quiet, and the kernel does
//     not say that the program works: a model may pause behind any words. Lines of JSON are payload: text in them never
//     matches. A page for a sign-in with its code is one whatever the kernel says, since such programs ask a server
//     whether it was visited.
//   - A program that the kernel says is blocked reading waits, whatever it printed. One that rests waits if its last
//     line has no end, or asks: nothing else will wake it, so the words only tell a question from a deadlock.
//   - When it has exited, the end of its input has answered a prompt at which its output stopped, at the end or before.
//
// A model's final answer is not for Detect: see Questions.
func Detect(p Program) *Signal {
	if p.Exited && len(p.Asked) == 0 && ended(p.Stdout.Tail) && ended(p.Stderr.Tail) {
		return nil // and the table need not be made
	}
	return detect(p, signatures())
}

// ended reports whether the last line is complete. It then cannot be a prompt of a program that has exited.
func ended(tail []byte) bool { return len(tail) == 0 || tail[len(tail)-1] == '\n' }

func detect(p Program, table []signature) *Signal {
	silent := min(p.Stdout.Quiet, p.Stderr.Quiet) >= Quiet
	blocked := !p.Exited && silent && (p.Wait == Input || p.Wait == Terminal || p.Wait == Resting)
	if p.Speaks != Plain {
		if blocked {
			return p.off(table)
		}
		return nil
	}
	outputs := []output{
		{Stderr, p.Exited || p.Stderr.Quiet >= Quiet, look(p.Stderr.Tail, blocked)},
		{Stdout, p.Exited || p.Stdout.Quiet >= Quiet, look(p.Stdout.Tail, blocked)},
	}
	works := !p.Exited && p.Wait == Working
	if found := match(outputs, table, p.Exited, works); found != nil {
		return found
	}
	switch {
	case blocked:
		return p.blocked(outputs)
	case p.Exited && len(p.Asked) > 0:
		return match([]output{{Stdout, true, look(p.Asked, false)}}, table, true, false)
	}
	return nil
}

// match returns what the first signature finds.
func match(outputs []output, table []signature, exited, works bool) *Signal {
	for _, s := range table {
		if exited && (s.where == onNotice || s.sure == running) || !exited && s.sure == atEnd ||
			works && s.where != onNotice {
			continue
		}
		for _, o := range outputs {
			if o.quiet && s.matches(o.screen) {
				return o.signal(s.kind, s.id, o.from)
			}
		}
	}
	return nil
}

// output is a stream as Detect sees it.
type output struct {
	from  Source
	quiet bool
	screen
}

// off returns the prompt of a program that left its protocol.
func (p Program) off(table []signature) *Signal {
	out := output{Stdout, true, look(p.Stdout.Tail, false)}
	switch {
	case p.Wait == Terminal, p.Wait == Input && p.Speaks == Driven && out.open:
	default:
		return nil
	}
	if found := match([]output{out}, table, false, false); found != nil {
		return found
	}
	return p.blocked([]output{out})
}

// blocked returns the prompt of a program that the kernel says is blocked.
func (p Program) blocked(outputs []output) *Signal {
	id := map[Wait]string{Input: "kernel-input", Terminal: "kernel-terminal", Resting: "kernel-rest"}[p.Wait]
	for _, o := range outputs {
		if o.open && (!o.whole || p.Wait == Resting && shapes().asks.MatchString(o.last())) {
			return o.signal(Question, id, Kernel)
		}
	}
	if p.Wait == Resting {
		return nil
	}
	for _, o := range outputs {
		if len(o.lines) > 0 {
			return &Signal{Kind: StdinWait, Text: o.text(), Signature: id, Source: Kernel}
		}
	}
	return &Signal{Kind: StdinWait, Signature: id, Source: Kernel}
}

// Stops returns the line at which a write to the standard output stopped, as a program stops to read an answer: the
// write began the line, and ends within it, with what a prompt ends in and a blank. It returns nil for others.
func Stops(write []byte) []byte {
	line := write[bytes.LastIndexByte(write, '\n')+1:]
	bare := bytes.TrimRight(line, " ")
	if len(bare) == len(line) || len(line) > maxLine || !marked(bare) {
		return nil
	}
	at := []output{{Stdout, true, look(line, false)}}
	found := match(at, signatures(), true, false)
	switch { // what works says "Compiling: " and "Is git installed? ", too
	case found == nil, found.Signature == "colon", found.Signature == "arrow",
		found.Signature == "question-mark" && !shapes().person.MatchString(found.Question):
		return nil
	}
	return bytes.Clone(line)
}

// marked reports whether a line ends in a character that ends prompts.
func marked(line []byte) bool {
	last, _ := utf8.DecodeLastRune(line)
	return strings.ContainsRune("?？؟:：>])", last)
}

// Speaks reports whether there is a whole line of JSON at the end of an output: its program speaks a protocol.
func Speaks(tail []byte) bool {
	for line := range bytes.Lines(tail) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] == '{' && json.Valid(line) {
			return true
		}
	}
	return false
}

// Last returns the last line that a program printed as text, or an empty string.
func Last(tail []byte) string {
	s := look(tail, true)
	if !s.open {
		return ""
	}
	return text.OneLine(s.last(), maxQuestion)
}

func (s screen) signal(kind Kind, id string, from Source) *Signal {
	found := &Signal{Kind: kind, Text: s.text(), Signature: id, Source: from}
	asked := s.last()
	switch {
	case len(s.menu.choices) > 0:
		asked, found.Choices, found.Default = s.menu.question, s.menu.choices, s.menu.chosen
	case kind == Question || kind == Confirm || kind == Choice || kind == Permission:
		found.Choices, found.Default = alternatives(asked)
		for i := len(s.lines) - 1; i >= 0 && !strings.ContainsFunc(asked, unicode.IsLetter); i-- {
			asked = s.lines[i] // the last line is only a mark, such as "> "
		}
	}
	found.Question = strings.TrimPrefix(text.OneLine(asked, maxQuestion), "? ")
	return found
}

// alternatives reads what a line offers in brackets at its end: several answers, such as [y/N], of which one in
// capitals is the default; or only the default.
func alternatives(line string) (choices []string, preset string) {
	group := shapes().brackets.FindStringSubmatch(line)
	if group == nil {
		return nil, ""
	}
	round, inside, asks := group[1] != "", group[1]+group[2], group[3] != ""
	between := func(r rune) bool { return r == '/' || r == '|' || r == ',' }
	for _, word := range strings.FieldsFunc(inside, between) {
		word = strings.Trim(word, "[] ")
		if _, named, ok := strings.Cut(word, "default"); ok {
			preset = strings.Trim(named, ":= ")
			continue
		}
		if word == strings.ToUpper(word) && word != strings.ToLower(word) && inside != strings.ToUpper(inside) {
			word = strings.ToLower(word)
			preset = word
		}
		choices = append(choices, word)
	}
	if len(choices) > 1 && len(choices) <= maxChoices && inside[0] != '/' {
		return choices, preset
	}
	if asks || preset == "" && round && strings.Contains(inside, " ") {
		return nil, "" // a remark
	}
	preset = cmp.Or(preset, inside)
	return nil, preset
}
