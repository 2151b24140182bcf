package shim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
	rules "omniagent/internal/kit/schema"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/workspace"
)

const (
	maxSchema    = 1 << 20
	maxAnswer    = 64 << 20
	quotedAnswer = 4000 // characters of a wrong answer that are quoted to the agent
	usualRetries = 2
	errorsQuoted = 2000
	maxBlocks    = 32 // fenced blocks that are tried
)

// schema is the JSON schema that the answer must match.
type schema struct {
	compact []byte
	rules   *rules.Schema
}

// compileSchema reads --output-schema: a file, or the schema itself.
func (c *shimCall) compileSchema() error {
	if c.args.Schema == nil {
		return nil
	}
	given := strings.TrimSpace(*c.args.Schema)
	data, from := []byte(given), "--output-schema"
	if !strings.HasPrefix(given, "{") && !strings.HasPrefix(given, "[") {
		if given == "" {
			return fault.New(fault.ArgError, "--output-schema is empty").Hint("--output-schema=FILE")
		}
		from = printable(given)
		var err error
		if data, err = readSchema(pathname.From(c.host.Dir, given)); err != nil {
			return err
		}
	}
	s, err := newSchema(data)
	if err != nil {
		return fault.New(fault.ArgError, "%s is not a JSON schema", from).
			Because(err).Hint(`a schema is an object such as {"type":"object","properties":{…}}`)
	}
	c.schema = s
	return nil
}

func readSchema(path string) ([]byte, error) {
	data, err := workspace.ReadFile(path, maxSchema) // it does not block on a pipe
	switch {
	case errors.Is(err, fault.Unsafe), errors.Is(err, fault.FieldTooLarge):
		return nil, fault.New(fault.ArgError, "--output-schema: %s is not a file of at most 1 MiB", printable(path)).
			Hint("--output-schema=FILE")
	case err != nil:
		f := fault.New(fault.ArgError, "--output-schema: %s cannot be read", printable(path)).
			Hint("a schema itself begins with {")
		if why := fault.Of(err).Cause; why != nil {
			f.Because(fault.Bare(why))
		}
		return nil, f
	}
	return data, nil
}

func newSchema(data []byte) (*schema, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // editors on Windows add it
	if first := bytes.TrimSpace(data); len(first) == 0 || first[0] != '{' {
		return nil, fmt.Errorf("it must be a JSON object")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return nil, err
	}
	parsed, err := rules.Parse(data)
	if err != nil {
		return nil, err
	}
	return &schema{compact.Bytes(), parsed}, nil
}

// check returns an error if the JSON text does not match, or an object has a duplicate key.
func (s *schema) check(text []byte) error {
	if name, twice := repeated(text); twice {
		return fmt.Errorf("the key %q stands twice in one object, and readers differ in which counts", name)
	}
	return s.rules.Validate(text)
}

// repeated finds a duplicate key of an object. The text is valid JSON.
func repeated(text []byte) (name string, twice bool) {
	type level struct {
		seen map[string]bool // nil: a list
		key  bool            // the next token is a key
	}
	var open []*level
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return "", false
		}
		if c := token; c == json.Delim('}') || c == json.Delim(']') {
			open = open[:len(open)-1]
			continue
		}
		if top := len(open) - 1; top >= 0 && open[top].seen != nil {
			if l := open[top]; l.key {
				word, _ := token.(string)
				if l.seen[word] {
					return word, true
				}
				l.seen[word], l.key = true, false
				continue
			}
			open[top].key = true
		}
		switch token {
		case json.Delim('{'):
			open = append(open, &level{seen: map[string]bool{}, key: true})
		case json.Delim('['):
			open = append(open, &level{})
		}
	}
}

// candidates returns the parts of an answer that may be its JSON: all of it, the fenced blocks in order, the outermost
// braces, the outermost brackets.
func candidates(answer string) []string {
	list := []string{strings.TrimSpace(answer)}
	parts := strings.Split(answer, "```")
	for i := 1; i+1 < len(parts) && i < 2*maxBlocks; i += 2 {
		if _, body, ok := strings.Cut(parts[i], "\n"); ok {
			list = append(list, strings.TrimSpace(body))
		}
	}
	for _, pair := range []string{"{}", "[]"} {
		from, to := strings.IndexByte(answer, pair[0]), strings.LastIndexByte(answer, pair[1])
		if from >= 0 && to > from {
			list = append(list, answer[from:to+1])
		}
	}
	return list
}

// conforming returns the JSON in an answer that matches the schema, as one line. The error is about the first candidate
// that is valid JSON.
func (s *schema) conforming(answer string) ([]byte, error) {
	var about error
	for _, text := range candidates(answer) {
		if !json.Valid([]byte(text)) {
			continue
		}
		err := s.check([]byte(text))
		if err == nil {
			var line bytes.Buffer
			if err = json.Compact(&line, []byte(text)); err == nil {
				return line.Bytes(), nil
			}
		}
		if about == nil {
			about = err
		}
	}
	if about == nil {
		about = fmt.Errorf("there is no JSON in it")
	}
	return nil, about
}

// retries returns how often the agent is asked again.
func (c *shimCall) retries() int {
	if c.args.Retries != nil {
		return *c.args.Retries
	}
	return usualRetries
}

// runSchema asks until an answer matches, and prints only that. Once the agent has run, it writes the report for every
// outcome.
func (c *shimCall) runSchema(launch agent.Launch, warnings []agent.Warning) int {
	retries := c.retries()
	original := c.prompt
	extra := ""
	if !launch.Native {
		extra = instruction(c.schema.compact)
	}
	if err := c.appendToPrompt(launch, extra); err != nil {
		return c.shim.fail(c.host, err)
	}
	for c.attempts = 1; ; c.attempts++ {
		answer, o := c.ask(launch)
		if o.fault != nil {
			if answer.text != "" {
				fmt.Fprintln(c.host.Stderr, printable(answer.text))
			}
			return c.conclude(launch, warnings, o)
		}
		line, err := c.fitting(answer)
		if err == nil {
			if _, err := c.host.Stdout.Write(append(line, '\n')); err != nil {
				o.fault = fault.New(fault.OutputFailed, "the answer cannot be written").Because(fault.Bare(err))
			}
			return c.conclude(launch, warnings, o)
		}
		if c.attempts > retries {
			o.fault = fault.New(fault.SchemaUnmet, "no answer fits the schema, the last of %d because %s", c.attempts,
				shorten(err.Error(), errorsQuoted)).
				Hint("--output-schema-retries allows up to 10")
			return c.conclude(launch, warnings, o)
		}
		c.prompt = original
		next, failed := c.again(answer.text, err)
		if failed != nil {
			o.fault = fault.New(fault.SchemaUnmet,
				"the answer does not fit the schema (%s), and it cannot be asked again", shorten(err.Error(), 300)).
				Because(failed).Hint("%s", fault.Of(failed).Suggestion)
			return c.conclude(launch, warnings, o)
		}
		c.note("the answer does not fit the schema (%s); asking again, %d of %d", shorten(err.Error(), 300), c.attempts,
			retries)
		launch = next
	}
}

// again translates the call again, with the error in the prompt. It uses a new session id, because some agents refuse a
// known one, and new private directories, because the agent may have left links in the old ones.
func (c *shimCall) again(answer string, wrong error) (agent.Launch, error) {
	spec := c.driverSpec
	spec.Fresh, spec.Temp = ident.UUID(), c.temp.path(c.settings.Temp)
	if spec.Rehearsal != nil {
		rehearsal := *spec.Rehearsal
		home, err := c.temp.home(c.settings.State)
		if err != nil {
			return agent.Launch{}, err
		}
		rehearsal.Home = home
		spec.Rehearsal = &rehearsal
	}
	launch, _, err := c.driver.Command(spec)
	if err != nil {
		return launch, err
	}
	for _, extra := range repairs(c.schema.compact, launch.Native, answer, wrong) {
		if err = c.appendToPrompt(launch, extra); err == nil {
			return launch, c.temp.write(launch.Files)
		}
	}
	return launch, err
}

// runAnswer is the answer of a run.
type runAnswer struct {
	text       string
	structured json.RawMessage
}

func (c *shimCall) fitting(a runAnswer) ([]byte, error) {
	if len(a.structured) > 0 {
		return c.schema.conforming(string(a.structured))
	}
	return c.schema.conforming(a.text)
}

// ask runs the agent once and reads its answer from its stream, or from its text if it has no decoder.
func (c *shimCall) ask(launch agent.Launch) (runAnswer, outcome) {
	listener := &listener{decoder: c.driver.Decode(setting.StreamJSON)}
	o := c.runOnce(launch, listener)
	return listener.answer(o.exit), o
}

// listener collects the answer. An agent that is being killed may still write for a moment.
type listener struct {
	mu      sync.Mutex
	over    bool
	decoder agent.Decoder
	text    bytes.Buffer // without a decoder
	pieces  strings.Builder
	last    runAnswer
}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return len(p), nil
	}
	if l.decoder == nil {
		if l.text.Len()+len(p) > maxAnswer {
			return 0, fmt.Errorf("the answer is larger than 64 MiB")
		}
		return l.text.Write(p)
	}
	l.take(l.decoder.Feed(p))
	return len(p), nil
}

func (l *listener) take(events []event.Event) {
	for _, e := range events {
		switch e.Kind {
		case event.Text:
			switch {
			case e.Delta && l.pieces.Len() < maxAnswer:
				l.pieces.WriteString(e.Text)
			case !e.Delta:
				l.last.text = e.Text // the last whole message is the answer
				l.pieces.Reset()
			}
		case event.ToolCall:
			l.pieces.Reset()
		case event.Ended:
			if e.End.Text != "" {
				l.last.text = e.End.Text
			}
			if len(e.End.Structured) > 0 {
				l.last.structured = bytes.Clone(e.End.Structured)
			}
		}
	}
}

func (l *listener) answer(x agent.Exit) runAnswer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.decoder == nil {
		return runAnswer{text: l.text.String()}
	}
	l.take(l.decoder.End(x))
	l.last.text = cmp.Or(l.last.text, l.pieces.String())
	return l.last
}

// appendToPrompt appends our text to the user's prompt. It returns an error if that exceeds the agent's limit.
func (c *shimCall) appendToPrompt(launch agent.Launch, extra string) error {
	length := c.prompt.length
	length.partial = bytes.Clone(length.partial)
	_, _ = length.Write([]byte(extra))
	if err := c.tooLong(length); err != nil {
		return err
	}
	if size := length.bytes; launch.Prompt == agent.ByArgument {
		if c.prompt.file != nil { // the file may not have been counted to its end
			info, err := c.prompt.file.Stat()
			if err != nil {
				return unreadable(err)
			}
			size = info.Size() - c.prompt.begin + int64(len(extra))
		}
		if size > longestArgument {
			return c.tooLong(counter{limit: agent.Limit{Bytes: longestArgument}, bytes: size})
		}
	}
	source, err := c.prompt.again()
	if err != nil {
		return unreadable(err)
	}
	if extra != "" {
		c.prompt = prompt{reader: io.MultiReader(source, strings.NewReader(extra))}
	}
	return nil
}

func instruction(schema []byte) string {
	return "\n\nYour final answer must be one JSON value and nothing else: no sentence before or after it, no code " +
		"fence. It must be valid against this JSON schema:\n" +
		string(schema) + "\n"
}

// repairs returns messages about an answer that does not match, the longest first, because prompts have a limit. If
// native, the agent has the schema, so the shortest do not repeat it.
func repairs(schema []byte, native bool, answer string, wrong error) []string {
	answer = ":\n" + shorten(answer, quotedAnswer) + "\n"
	why := "What was wrong with it: " + shorten(wrong.Error(), errorsQuoted) + "\n"
	message := func(answer, why string) string {
		return "\nYou have answered this before, and the answer was not valid" + answer + why +
			"Answer again, correctly.\n"
	}
	s := instruction(schema)
	list := []string{s + message(answer, why), s + message(".\n", why), s + message(".\n", "")}
	if native {
		list = append(list, message(".\n", why), message(".\n", ""))
	}
	return list
}

func shorten(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + " […]"
	}
	return s
}
