package model

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// InWords returns a text for an image or a document that a wire cannot carry: the text of a plain text document, or
// else a note.
func (b Block) InWords() string {
	name := cmp.Or(b.Name, "without a name")
	if strings.HasPrefix(b.Media, "text/") && utf8.Valid(b.Data) {
		return fmt.Sprintf("[The file %s:]\n%s", name, b.Data)
	}
	if b.Kind == Image {
		return fmt.Sprintf("[A picture (%s) stood here; it cannot be shown to this model.]", b.Media)
	}
	return fmt.Sprintf("[The file %s (%s) stood here; it cannot be shown to this model.]", name, b.Media)
}

// Complete fills in what the API left out: an id for each call without a unique one, and an estimate of the missing
// usage. The ids are prefix_1, prefix_2 and so on, counted through the conversation, so that the same answer always
// gets the same ids.
func (a *Answer) Complete(q Request, prefix string) {
	a.identify(q, prefix)
	u := &a.Usage
	told := u.Context() != 0 || u.Output != 0
	if u.Context() == 0 {
		u.Input, u.Estimated = max(1, Estimate(q)), true
	}
	if u.Output == 0 && (!told || len(a.Blocks) > 0) {
		u.Output, u.Estimated = max(1, EstimateOutput(a.Blocks)), true
	}
}

func (a *Answer) identify(q Request, prefix string) {
	n, taken := 0, map[string]bool{"": true}
	for _, m := range q.Messages {
		for _, b := range m.Blocks {
			if b.Kind == Call {
				n++
				taken[b.ID] = true
			}
		}
	}
	for i := range a.Blocks {
		b := &a.Blocks[i]
		if b.Kind != Call {
			continue
		}
		for n++; taken[b.ID]; n++ {
			if b.ID = fmt.Sprintf("%s_%d", prefix, n); !taken[b.ID] {
				break
			}
		}
		taken[b.ID] = true
	}
}

// Failure returns err with the answer so far.
func (b *Builder) Failure(err error, u Usage) error {
	e, is := errors.AsType[*Error](err)
	if !is {
		e = &Error{Trouble: Broken, Message: err.Error(), Cause: err}
	}
	e.Emitted, e.Partial, e.Usage = b.Emitted(), b.Texts(), u
	return e
}
