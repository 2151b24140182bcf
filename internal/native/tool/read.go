package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/workspace"
)

const (
	usualLines   = 2000
	longestLine  = 2000      // characters
	largestPage  = 256 << 10 // bytes of a result
	largestFile  = 64 << 20  // of larger files, Read shows only pages, and records no fingerprint
	largestImage = 5 << 20   // the limit of models
)

// Read returns a tool that shows a file.
func Read(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "Read", Kind: event.Read, Rule: event.RulePath})
	return s.plan(func(in *input) (Action, error) {
		written := in.text("file_path", true)
		first, limit := in.whole("offset", 1, 0), in.whole("limit", usualLines, 0)
		name, err := env.Files.Name(written)
		if err != nil {
			return Action{}, err
		}
		r := reader{env: env, name: name, shown: text.Name(written), first: max(first, 1), limit: limit}
		if limit == 0 {
			r.limit = usualLines
		}
		return Action{
			Paths: []string{name}, Title: "Read " + r.shown,
			Run: func(ctx context.Context) Result { return r.run(ctx) },
		}, nil
	})
}

type reader struct {
	env          *Env
	name, shown  string // the path relative to the root; the path as the model wrote it, for messages
	first, limit int
}

func (r reader) run(ctx context.Context) Result {
	f, err := r.env.Files.Reading(r.name)
	if err != nil {
		return failed(r.explain(err))
	}
	defer f.Close()
	// Every read checks the context, so that reading a large file from a slow disk can be stopped.
	b := bufio.NewReaderSize(&contextReader{ctx, f}, 64<<10)
	head, err := b.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return failed(err)
	}
	switch kind := sniff(r.name, head); {
	case kind.image != "":
		return r.image(b, f, kind.image)
	case kind.binary != "":
		return failed(fault.New(fault.Unsafe, "%s is %s, which cannot be shown as text", r.shown, kind.binary).
			Hint("%s", kind.hint))
	case kind.notebook:
		return r.whole(b, f, showNotebook)
	case kind.wide:
		return r.whole(b, f, func(data []byte) ([]byte, []Image, error) { return decode(data).text, nil, nil })
	}
	if bytes.HasPrefix(head, []byte(mark8)) {
		_, _ = b.Discard(len(mark8))
	}
	p := page{first: r.first, limit: r.limit, numbered: true, all: f.Size() <= largestFile}
	err = p.fill(b)
	switch {
	case errors.Is(err, errLongLine):
		return failed(fault.New(fault.FieldTooLarge, "line %d of %s is longer than %d MB", p.line, r.shown,
			largestFile>>20).
			Hint("Look at parts of it with Bash."))
	case err != nil:
		return failed(fault.New(fault.Internal, "cannot read %s", r.shown).Because(err))
	}
	if p.ended {
		r.env.Seen.Record(r.name, f.Fingerprint())
	}
	return r.result(&p)
}

// whole shows a file that must be read as a whole.
func (r reader) whole(b io.Reader, f *workspace.Reading, show func([]byte) ([]byte, []Image, error)) Result {
	data, err := io.ReadAll(io.LimitReader(b, largestFile+1))
	if err == nil && len(data) > largestFile {
		err = fault.New(fault.FieldTooLarge, "%s is larger than %d MB", r.shown, largestFile>>20).
			Hint("Look at parts of it with Bash.")
	}
	if err != nil {
		return failed(err)
	}
	text, images, err := show(data)
	p := page{first: r.first, limit: r.limit, all: true, numbered: err != nil || !strings.HasSuffix(r.name, ".ipynb")}
	if err != nil { // not a valid notebook
		text = data
	}
	if err := p.fill(bufio.NewReaderSize(bytes.NewReader(text), 64<<10)); err != nil {
		return failed(err)
	}
	r.env.Seen.Record(r.name, f.Fingerprint())
	result := r.result(&p)
	result.Images = images
	return result
}

func changedMeanwhile(shown string) error {
	return fault.New(fault.ConcurrentModification, "%s became larger while it was read", shown).Hint("Read it again.")
}

func (r reader) image(b io.Reader, f *workspace.Reading, media string) Result {
	if f.Size() > largestImage {
		return failed(fault.New(fault.FieldTooLarge,
			"the image %s has %d bytes, more than the %d that a model can look at", r.shown,
			f.Size(), largestImage).Hint("Make a smaller copy of it with Bash and read that."))
	}
	data, err := io.ReadAll(io.LimitReader(b, largestImage+1))
	if err == nil && len(data) > largestImage {
		err = changedMeanwhile(r.shown)
	}
	if err != nil {
		return failed(err)
	}
	r.env.Seen.Record(r.name, f.Fingerprint())
	return Result{
		Text:   fmt.Sprintf("The image %s (%s, %d bytes).", r.shown, media, len(data)),
		Images: []Image{{media, data}},
	}
}

// result returns the page with remarks for the model.
func (r reader) result(p *page) Result {
	last := p.first + p.shown - 1
	of := ""
	if p.ended {
		of = fmt.Sprintf(" of %d", p.line)
	}
	switch {
	case p.ended && p.line == 0:
		return Result{Text: fmt.Sprintf("(%s exists but is empty.)", r.shown)}
	case p.shown == 0:
		return failed(fault.New(fault.ArgError, "%s has only %d lines, so there is nothing from line %d on", r.shown,
			p.line, p.first))
	case p.full:
		p.text.WriteString(
			fmt.Sprintf("\n\n(Lines %d-%d%s are shown: no more than %d KB at once. Read on with offset %d.)",
				p.first, last, of, largestPage>>10, last+1))
	case !p.ended || last < p.line:
		p.text.WriteString(fmt.Sprintf("\n\n(Lines %d-%d%s are shown. Read on with offset %d.)", p.first, last, of,
			last+1))
	}
	return Result{Text: p.text.String()}
}

// explain turns an error from opening a file into one that helps the model.
func (r reader) explain(err error) error {
	f := fault.Of(err)
	if f.Code == fault.FileMissing {
		return missing(r.env.Files, r.name)
	}
	if info, failed := r.env.Files.Stat(r.name); failed == nil && info.IsDir() {
		return fault.New(fault.Unsafe, "%s is a directory", r.shown).Hint("List it with LS.")
	}
	return err
}

// contextReader reads until the context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (p *contextReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

// page is a range of lines of a text.
type page struct {
	first, limit int
	numbered     bool // put its number before each line
	all          bool // read to the end, for the fingerprint

	text  strings.Builder
	line  int  // lines read
	shown int  // lines in text
	full  bool // no more lines fit
	ended bool // read to the end
}

// errLongLine means that a line is longer than any file, as in the hole of a sparse file.
var errLongLine = errors.New("a line is too long")

// fill reads the lines of the page. Unlike a lines.Reader, it counts the lines that it does not keep, and continues
// after a line that is too long.
func (p *page) fill(b *bufio.Reader) error {
	var current []byte
	total := 0
	for length, open := 0, false; ; {
		piece, err := b.ReadSlice('\n')
		if total += len(piece); total > 2*largestFile {
			p.all = false
		}
		if len(piece) > 0 && !open {
			p.line, current, length, open = p.line+1, current[:0], 0, true
		}
		wanted := p.line >= p.first && p.shown < p.limit && !p.full
		if length += len(piece); wanted && len(current) <= longestLine*utf8.UTFMax {
			current = append(current, piece...)
		}
		if length > largestFile {
			if !wanted {
				return errLongLine
			}
			p.add(current, length)
			return nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if open && wanted {
			p.add(current, length)
		}
		open = false
		if err != nil {
			p.ended = true
			return nil
		}
		if !p.all && (p.full || p.shown >= p.limit) {
			_, err := b.Peek(1)
			p.ended = errors.Is(err, io.EOF)
			return nil
		}
	}
}

// add puts a line on the page. line is its beginning, length its full length.
func (p *page) add(line []byte, length int) {
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	if len(text) > longestLine { // otherwise it cannot have more characters
		if at := runes(text, longestLine); at < len(text) {
			than := ""
			if length > largestFile { // we stopped looking for its end
				than = "more than "
			}
			text = fmt.Sprintf("%s… [the line is cut here; it has %s%d bytes]", text[:at], than,
				min(length, largestFile))
		}
	}
	if p.numbered {
		text = fmt.Sprintf("%6d\t%s", p.line, text)
	}
	if p.text.Len()+len(text)+1 > largestPage && p.shown > 0 {
		p.full = true
		return
	}
	if p.shown > 0 {
		p.text.WriteByte('\n')
	}
	p.text.WriteString(text)
	p.shown++
}

// runes returns where the first n characters of s end.
func runes(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
