package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/redact"
)

// redacting is a model that neither receives nor returns a known secret. It removes secrets from the whole of each
// request, including messages from before the secret was known, and from the pieces of each answer.
type redacting struct {
	model.Client
	known *redact.Values
}

func (v redacting) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	q.Messages, q.System = RedactMessages(v.known, q.Messages), slices.Clone(q.System)
	for i := range q.System {
		q.System[i] = v.known.String(q.System[i])
	}
	var told func(model.Piece)
	flush := func() {}
	if hear != nil {
		told, flush = v.pieces(hear)
	}
	answer, err := v.Client.Ask(ctx, q, told)
	flush()
	if e, is := errors.AsType[*model.Error](err); is {
		plain := *e
		plain.Message, plain.Partial = v.known.String(e.Message), redactBlocks(v.known, e.Partial)
		return answer, &plain
	}
	if answer != nil {
		plain := *answer
		plain.Blocks = redactBlocks(v.known, answer.Blocks)
		answer = &plain
	}
	return answer, err
}

// Count counts the tokens of a request as it would be sent.
func (v redacting) Count(ctx context.Context, q model.Request) (tokens int64, exact bool, err error) {
	q.Messages = RedactMessages(v.known, q.Messages)
	return v.Client.Count(ctx, q)
}

// Close releases what the model holds, as Retrying does.
func (v redacting) Close() error { return model.Close(v.Client) }

// pieces returns a function that passes pieces to hear without secrets. It holds back what may be the beginning of a
// secret until the next piece, or until flush.
func (v redacting) pieces(hear func(model.Piece)) (told func(model.Piece), flush func()) {
	kind, stream := model.Text, v.known.Stream()
	flush = func() {
		if rest := stream.End(); rest != "" {
			hear(model.Piece{Kind: kind, Text: rest})
		}
	}
	return func(p model.Piece) {
		if p.Kind != kind {
			flush()
		}
		if p.Search != nil {
			plain := model.Search{
				ID: p.Search.ID, Query: v.known.String(p.Search.Query), Failed: v.known.String(p.Search.Failed),
			}
			for _, line := range p.Search.Found {
				plain.Found = append(plain.Found, v.known.String(line))
			}
			hear(model.Piece{Kind: p.Kind, Search: &plain})
			return
		}
		kind = p.Kind
		if text := stream.Feed(p.Text); text != "" || p.Text == "" {
			hear(model.Piece{Kind: kind, Text: text})
		}
	}, flush
}

// RedactMessages returns the messages without known secrets. It does not change its argument.
func RedactMessages(known *redact.Values, messages []model.Message) []model.Message {
	if known == nil {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		out[i].Blocks = redactBlocks(known, out[i].Blocks)
	}
	return out
}

// redactBlocks removes secrets from blocks. It does not change thinking that the API has signed: the API wants it back
// unchanged. The opaque part of a call may contain its text, which can hold a secret; a signature never does.
func redactBlocks(known *redact.Values, blocks []model.Block) []model.Block {
	copied := false
	for i, b := range blocks {
		if b.Kind == model.Thinking && b.Opaque != nil {
			continue
		}
		text, n := known.Count(b.Text)
		broken, m := known.Count(b.Broken)
		input, opaque := known.Bytes(b.Input), known.Bytes(b.Opaque)
		if n+m == 0 && bytes.Equal(input, b.Input) && bytes.Equal(opaque, b.Opaque) {
			continue
		}
		if !copied {
			blocks, copied = slices.Clone(blocks), true
		}
		blocks[i].Text, blocks[i].Broken, blocks[i].Input, blocks[i].Opaque = text, broken, input, opaque
	}
	return blocks
}

// redactResult removes secrets from the result of a tool, and tells the model so.
func (m *Mind) redactResult(r *tool.Result) {
	r.Change = m.plainChange(r.Change)
	text, known := m.o.Secrets.Count(r.Text)
	text, found := redact.Credentials(text)
	n := known + found + r.Masked
	if n == 0 || !strings.Contains(text, redact.Mask) {
		return
	}
	m.mu.Lock()
	m.hidden = true
	m.mu.Unlock()
	what := "a secret that is"
	if n > 1 {
		what = fmt.Sprintf("%d secrets that are", n)
	}
	r.Text = text + "\n\n(" + redact.Mask + " stands for " + what +
		" not shown. It is not what is written there: leave such places as they are.)"
}

// plainChange returns a file change without secrets, because hosts may store it.
func (m *Mind) plainChange(c *event.Change) *event.Change {
	if c == nil {
		return nil
	}
	mask := func(text string) string {
		text, _ = redact.Credentials(m.o.Secrets.String(text))
		return text
	}
	plain := event.Change{Path: c.Path, New: mask(c.New)}
	if c.Old != nil {
		plain.Old = new(mask(*c.Old))
	}
	return &plain
}

// overwrites reports whether a call would write the mask in place of a secret, because the model has only seen the
// mask.
func (l *loop) overwrites(a tool.Action) bool {
	if a.Kind != event.Write || !bytes.Contains(a.Input, []byte(redact.Mask)) {
		return false
	}
	l.mind.mu.Lock()
	defer l.mind.mu.Unlock()
	return l.mind.hidden
}

const maskWritten = redact.Mask + " stands for a secret that you were not shown. Writing it would put the mask in " +
	"place of the secret. Change only what is around it: Edit with an old_string and a new_string that do not " +
	"have it. " +
	"If the file must say exactly " + redact.Mask + ", ask the user to write that."

// redacted removes secrets from the parts of an event that may quote others. Texts of tools and of the model were
// redacted before.
func (m *Mind) redacted(e event.Event) event.Event {
	known := m.o.Secrets
	if known == nil {
		return e
	}
	e.Fault = plainFault(known, e.Fault)
	if e.Retry != nil {
		again := *e.Retry
		again.Reason = known.String(again.Reason)
		e.Retry = &again
	}
	if e.End != nil {
		end := *e.End
		end.Notes = slices.Clone(end.Notes)
		for i := range end.Notes {
			end.Notes[i] = known.String(end.Notes[i])
		}
		e.End = &end
	}
	return e
}

func plainFault(known *redact.Values, f *fault.Fault) *fault.Fault {
	if f == nil || known.String(f.Message) == f.Message {
		return f
	}
	plain := *f
	plain.Message = known.String(f.Message)
	return &plain
}
