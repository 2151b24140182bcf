package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
)

// Form is the format of an export.
type Form string

// The forms.
const (
	// the records of the conversation, as in the journal, without abandoned branches; large bodies are included in
	// their lines
	JSONL    Form = "jsonl"
	JSON     Form = "json"     // the projection, but with all messages
	Markdown Form = "markdown" // for people
)

// Export writes a session in a format.
func (s Store) Export(id string, form Form, w io.Writer) error {
	v, err := s.Show(id)
	if err != nil {
		return err
	}
	defer v.Close()
	return v.export(form, w)
}

func (v *View) export(form Form, w io.Writer) error {
	switch form {
	case JSONL:
		return v.lines(context.Background(), func(e Entry, line []byte) error {
			h, _ := parseHead(line)
			if body := line[min(h.data, len(line)):max(h.data, len(line)-1)]; h.data > 0 {
				if _, is := referenceOf(body); is { // the exported file must not depend on others
					whole, err := v.fold.journal.blobs.resolve(body)
					if err != nil {
						return err
					}
					line = bytes.TrimSuffix(e.append(nil, whole), []byte("\n"))
				}
			}
			_, err := w.Write(append(bytes.Clone(line), '\n'))
			return err
		})
	case JSON:
		var all []model.Message
		for e := range v.Entries() {
			if m, ok := e.Record.(Message); ok {
				all = append(all, m.Message)
			}
		}
		return project(v.State, consistent(all)).write(w)
	case Markdown:
		return v.markdown(w)
	}
	return fault.New(fault.ArgError, "invalid form %q", string(form)).Hint("jsonl, json or markdown")
}

func (v *View) markdown(w io.Writer) error {
	title := cmp.Or(v.State.Title, v.State.Begin.ID)
	p := &printer{w: w}
	p.printf("# %s\n\n", title)
	p.printf("- session: %s\n- model: %s (%s)\n- directory: %s\n- created: %s\n", v.State.Begin.ID, v.State.Model,
		v.State.Provider, v.State.Begin.Cwd,
		v.State.Begin.Created.Format(time.RFC3339))
	open, written := map[int64]*openTurn{}, map[int64]string{}
	for e, err := range v.withEvents() {
		if err != nil {
			p.printf("\n*(a record cannot be read)*\n")
			continue
		}
		switch r := e.Record.(type) {
		case Logged:
			// The pieces of an answer may come after the message that has all of it.
			if t := open[r.Event.Turn]; r.Event.Kind == event.Answered && r.Event.Parent == "" && t.heard() != "" &&
				strings.HasSuffix(written[r.Event.Turn], t.heard()) {
				t.text.Reset()
				delete(written, r.Event.Turn) // later pieces are those of another answer
			}
			hear(open, r.Event)
		case Message:
			if r.Role == model.Assistant {
				delete(written, r.Turn)
				if all := textOf(r.Message); !strings.HasSuffix(open[r.Turn].heard(), all) {
					written[r.Turn] = all // pieces of it are still to come
				}
			}
			delete(open, r.Turn) // it has all that was heard of it
			p.message(r.Message)
		case Compacted:
			p.printf("\n*(what was said until here was put aside for this summary)*\n")
			p.message(r.Summary)
		case Adopted:
			p.printf("\n*(what follows comes from elsewhere: %s)*\n", r.From)
		case Denied:
			p.printf("\n*(denied: %s %s)*\n", r.Tool, r.Reason)
		case End:
			if r.Event != nil {
				p.unfinished(open[r.Event.Turn])
				delete(open, r.Event.Turn)
			}
			if end := r.Ended(); !end.OK {
				line := "the turn ended with " + string(end.Reason)
				if why := cmp.Or(r.Error, strings.Join(end.Notes, "; ")); why != "" {
					line += ": " + why
				}
				p.printf("\n*(%s)*\n", line)
			}
		}
	}
	for _, turn := range slices.Sorted(maps.Keys(open)) {
		p.unfinished(open[turn])
	}
	return p.err
}

// openTurn is what is heard of a turn and is not in a message yet.
type openTurn struct {
	prompt []event.Block
	text   strings.Builder
}

// heard returns the pieces of the answer; t may be nil.
func (t *openTurn) heard() string {
	if t == nil {
		return ""
	}
	return t.text.String()
}

// hear adds an event to the turns of which no message has all yet.
func hear(open map[int64]*openTurn, e *event.Event) {
	if e.Parent != "" || e.Kind != event.Prompted && (e.Kind != event.Text || !e.Delta) {
		return
	}
	t := open[e.Turn]
	if t == nil {
		t = &openTurn{}
		open[e.Turn] = t
	}
	t.text.WriteString(e.Text)
	t.prompt = append(t.prompt, e.Blocks...)
}

// unfinished writes what is known of a turn; nil: nothing.
func (p *printer) unfinished(t *openTurn) {
	if t == nil {
		return
	}
	asked := model.Message{Role: model.User}
	for _, b := range t.prompt {
		asked.Blocks = append(asked.Blocks, model.Block{Kind: model.Text, Name: b.Name, Text: b.Text})
	}
	p.message(asked)
	if t.text.Len() > 0 {
		said := model.Block{Kind: model.Text, Text: t.text.String()}
		p.message(model.Message{Role: model.Assistant, Blocks: []model.Block{said}})
	}
}

// textOf returns the text of a message.
func textOf(m model.Message) string {
	var all strings.Builder
	for _, b := range m.Blocks {
		if b.Kind == model.Text {
			all.WriteString(b.Text)
		}
	}
	return all.String()
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) message(m model.Message) {
	who := "" // printed once, unless the message has only results of tools
	for _, b := range m.Blocks {
		switch b.Kind {
		case model.Thinking:
		case model.Call:
			p.printf("\n**%s**\n\n", b.Name)
			p.printf("%s\n", text.Fenced("", pretty(cmp.Or(b.Broken, string(b.Input)))))
		case model.Result:
			p.printf("\n**result**\n\n")
			if b.Failed {
				p.printf("failed\n\n")
			}
			p.printf("%s\n", text.Fenced("", b.Text))
		default:
			if m.Role == model.User && b.Name == event.Reminder {
				continue
			}
			if who == "" {
				who = map[model.Role]string{model.User: "User", model.Assistant: "Assistant"}[m.Role]
				p.printf("\n## %s\n", who)
			}
			p.printf("\n%s\n", strings.TrimRight(inWords(b), "\n"))
		}
	}
}

func pretty(input string) string {
	var v any
	if json.Unmarshal([]byte(input), &v) != nil {
		return input
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // a person reads it
	e.SetIndent("", "  ")
	_ = e.Encode(v) // what came from JSON becomes JSON
	return strings.TrimSuffix(out.String(), "\n")
}
