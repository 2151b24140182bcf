package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// Edit returns a tool that replaces a text in a file.
func Edit(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "Edit", Kind: event.Write, Rule: event.RulePath, Changes: true})
	return s.plan(func(in *input) (Action, error) {
		written, c := in.text("file_path", true), readChange(in)
		file, err := newSubject(env, written)
		if err != nil {
			return Action{}, err
		}
		e := editor{subject: file, env: env, changes: []change{c}}
		return Action{
			Paths: file.paths, Title: "Edit " + file.shown,
			Run: func(ctx context.Context) Result {
				run := e // an Action may run more than once
				spots, text, err := run.run(ctx)
				if err != nil {
					return failed(err)
				}
				if !run.existed {
					return Result{Text: fmt.Sprintf("The file %s has been created", file.shown), Change: run.change}
				}
				return Result{
					Text:   fmt.Sprintf("The file %s has been updated%s", file.shown, around(text, spots)),
					Change: run.change,
				}
			},
		}, nil
	})
}

// change is one replacement.
type change struct {
	old, new string
	all      bool
}

func readChange(in *input) change {
	before := len(in.problems)
	c := change{old: in.text("old_string", true), new: in.text("new_string", true), all: in.flag("replace_all")}
	if len(in.problems) == before && c.old == c.new {
		in.problem("old_string and new_string are the same, so there is nothing to change")
	}
	return c
}

// editor changes one file by several replacements, each of which sees the result of the previous ones.
type editor struct {
	*subject
	env     *Env
	changes []change
	existed bool
	change  *event.Change
}

// run makes all replacements or none, and returns where the last one changed the text.
func (e *editor) run(ctx context.Context) (occurrences, []byte, error) {
	data, print, err := e.env.Files.Load(e.name, largestFile)
	e.existed = err == nil
	switch {
	case errors.Is(err, fault.FileMissing):
		if e.changes[0].old != "" {
			return occurrences{}, nil, missing(e.env.Files, e.name)
		}
	case err != nil:
		return occurrences{}, nil, reader{env: e.env, name: e.name, shown: e.shown}.explain(err)
	default:
		if err := e.env.Seen.check(e.name, e.shown, print); err != nil {
			return occurrences{}, nil, err
		}
	}
	was := shownBefore(data, e.existed)
	d := decode(data)
	text := d.text // we may change the bytes, because Load keeps no reference to them
	ends := endingsOf(text)
	var spots occurrences
	for i, c := range e.changes {
		if err := ctx.Err(); err != nil {
			return occurrences{}, nil, fault.New(fault.Interrupted, "the edit of %s was given up; nothing was changed",
				e.shown).Because(err)
		}
		hits, new, err := e.find(ctx, text, ends, c)
		if err != nil {
			return occurrences{}, nil, e.numbered(i, err)
		}
		if more := hits.count * (len(new) - len(c.old)); more > largestFile || len(text)+more > largestFile {
			return occurrences{}, nil, e.numbered(i, fault.New(fault.FieldTooLarge, "%s would become larger than %d MB",
				e.shown, largestFile>>20))
		}
		text, spots = splice(text, hits, new)
		ends = ends.after(text, c)
	}
	out := d.encode(text)
	err = e.env.Files.Replace(e.name, out, workspace.ReplaceOptions{Expect: &print, Target: e.target})
	if err != nil {
		return occurrences{}, nil, writeFailed(e.shown, err)
	}
	e.env.Seen.Record(e.name, workspace.FingerprintOf(out))
	e.change = changeOf(e.env, e.subject, was, out)
	return spots, text, nil
}

// numbered adds the number of the failed replacement to an error.
func (e *editor) numbered(i int, err error) error {
	if len(e.changes) == 1 {
		return err
	}
	f := fault.Of(err)
	f.Message = fmt.Sprintf("edit %d of %d failed and nothing was changed: %s", i+1, len(e.changes), f.Message)
	return f
}

func writeFailed(shown string, err error) error {
	if errors.Is(err, fault.ConcurrentModification) {
		return changed(shown)
	}
	return err
}

// find returns where the change applies and what to insert there.
func (e *editor) find(ctx context.Context, text []byte, ends endings, c change) (occurrences, string, error) {
	if c.old == "" {
		if len(text) > 0 {
			return occurrences{}, "", fault.New(fault.ArgError, "old_string is empty, but %s is not", e.shown).
				Hint("Give the text to replace, or use Write to replace the whole file.")
		}
		return occurrences{count: 1, first: []spot{{0, 0}}}, c.new, nil
	}
	hits := count(locate(text, ends, c.old))
	switch {
	case hits.count == 0:
		return occurrences{}, "", notFound(ctx, text, ends, c.old, e.shown)
	case hits.count > 1 && !c.all:
		return occurrences{}, "", fault.New(fault.ArgError, "old_string is in %s %d times (%s)", e.shown, hits.count,
			linesOf(text, hits.first)).
			Hint("Give more lines around the one you mean, or replace_all: true to change all of them.")
	}
	return hits, inEndings(ends, c), nil
}

// spot is a range in a text.
type spot struct{ start, end int }

// occurrences counts the hits of a text, and keeps the first ones. All positions could need many times the memory of
// the file, so they are found again when needed.
type occurrences struct {
	count int
	bytes int // total bytes of all hits
	first []spot
	all   iter.Seq[spot]
}

// maxFirst is one more than linesOf lists.
const maxFirst = 11

func count(all iter.Seq[spot]) occurrences {
	f := occurrences{all: all}
	for s := range all {
		f.count++
		f.bytes += s.end - s.start
		f.keep(s)
	}
	return f
}

func (f *occurrences) keep(s spot) {
	if len(f.first) < maxFirst {
		f.first = append(f.first, s)
	}
}

// has reports whether old is in text at all.
func has(text []byte, e endings, old string) bool {
	for range locate(text, e, old) {
		return true
	}
	return false
}

// locate returns the non-overlapping hits of old in text. A line feed in old also matches a Windows line ending, unless
// old contains Windows line endings.
func locate(text []byte, e endings, old string) iter.Seq[spot] {
	needle := []byte(old)
	if e.returns && strings.Contains(old, "\n") && !strings.Contains(old, "\r") {
		if !e.windows {
			return locateMixed(text, needle)
		}
		needle = []byte(strings.ReplaceAll(old, "\n", "\r\n"))
	}
	return locateExactly(text, needle)
}

func locateExactly(text, needle []byte) iter.Seq[spot] {
	return func(yield func(spot) bool) {
		for at := 0; ; {
			i := bytes.Index(text[at:], needle)
			if i < 0 || !yield(spot{at + i, at + i + len(needle)}) {
				return
			}
			at += i + len(needle)
		}
	}
}

// locateMixed finds needle in a text with different line endings.
func locateMixed(text, needle []byte) iter.Seq[spot] {
	return func(yield func(spot) bool) {
		plain := bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		seen, lost := 0, 0 // position in plain, and how many carriage returns precede it
		back := func(at int) int {
			for seen < at {
				i := bytes.IndexByte(plain[seen:at], '\n')
				if i < 0 {
					break
				}
				if seen += i; text[seen+lost] == '\r' {
					lost++
				}
				seen++
			}
			seen = at
			return at + lost
		}
		for h := range locateExactly(plain, needle) {
			if !yield(spot{back(h.start), back(h.end)}) {
				return
			}
		}
	}
}

// endings describes the line endings of a text.
type endings struct {
	returns bool // it has carriage returns
	windows bool // every line has a Windows ending
	mostly  bool // more than half of them do
}

func endingsOf(text []byte) endings {
	if bytes.IndexByte(text, '\r') < 0 {
		return endings{}
	}
	crlf, all := bytes.Count(text, []byte("\r\n")), bytes.Count(text, []byte("\n"))
	return endings{returns: true, windows: crlf > 0 && crlf == all, mostly: 2*crlf > all}
}

// after returns the line endings after c. It avoids counting again, which costs as much as the edit, because they
// mostly stay the same.
func (e endings) after(text []byte, c change) endings {
	if e.returns != e.windows || strings.Contains(c.old, "\r") || strings.Contains(c.new, "\r") {
		return endingsOf(text)
	}
	return e
}

// inEndings returns the replacement with the line endings of the file. Carriage returns in it are kept.
func inEndings(e endings, c change) string {
	if e.mostly && !strings.Contains(c.new, "\r") && !strings.Contains(c.old, "\r") {
		return strings.ReplaceAll(c.new, "\n", "\r\n")
	}
	return c.new
}

// splice replaces each hit by new, and returns the new positions. It may change the bytes of text.
func splice(text []byte, hits occurrences, new string) ([]byte, occurrences) {
	spots := occurrences{count: hits.count}
	if hits.count == 1 {
		h := hits.first[0]
		text = replaceBytes(text, h, new)
		spots.keep(spot{h.start, h.start + len(new)})
		return text, spots
	}
	grown := hits.count*len(new) - hits.bytes
	out := make([]byte, 0, len(text)+grown+len(text)/64)
	at := 0
	for h := range hits.all {
		out = append(out, text[at:h.start]...)
		spots.keep(spot{len(out), len(out) + len(new)})
		out = append(out, new...)
		at = h.end
	}
	return append(out, text[at:]...), spots
}

// replaceBytes replaces a range of text, in place if its capacity is large enough.
func replaceBytes(text []byte, h spot, new string) []byte {
	grown := len(new) - (h.end - h.start)
	if grown > 0 {
		tail := len(text)
		text = append(text, make([]byte, grown)...)
		copy(text[h.end+grown:], text[h.end:tail])
	} else if grown < 0 {
		copy(text[h.end+grown:], text[h.end:])
		text = text[:len(text)+grown]
	}
	copy(text[h.start:], new)
	return text
}
