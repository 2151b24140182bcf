package shell

import (
	"bytes"
	"io"
	"os"
	"sync"
)

const (
	maxPending = 64 << 10     // bytes of an unfinished line, before it is taken as it is
	maxHead    = 4 * MaxShown // bytes that are enough for MaxShown characters of any kind
	maxTail    = 2 * MaxShown // minimum bytes of the end, once a stream is longer than the head
	maxSpill   = 100 << 20    // bytes of a stream in a file
)

// commandOutput is the output of a command: two streams, each with its beginning, its end, and a file with all of it
// once it is too long to show.
type commandOutput struct {
	spills *spills

	mu       sync.Mutex
	out, err stream
}

func newRecord(s *spills) *commandOutput {
	return &commandOutput{
		spills: s,
		out:    stream{name: "stdout", mask: s.secrets.Stream()}, err: stream{name: "stderr", mask: s.secrets.Stream()},
	}
}

// input is a stream as the writer for package process.
type input struct {
	r *commandOutput
	s *stream
}

func (r *commandOutput) to(s *stream) io.Writer { return &input{r, s} }

// Write never fails: a command does not end because its output cannot be stored.
func (w *input) Write(p []byte) (int, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.write(w.s, p)
	return len(p), nil
}

func (r *commandOutput) write(s *stream, p []byte) {
	if end := bytes.LastIndexByte(p, '\n') + 1; end > 0 {
		chunk := string(append(s.pending, p[:end]...))
		s.pending, p = s.pending[:0], p[end:]
		r.add(s, cleaned(chunk, s.open))
	}
	s.pending = append(s.pending, p...)
	if len(s.pending) <= maxPending {
		return
	}
	if at := bytes.LastIndexByte(bytes.TrimRight(s.pending, "\r"), '\r'); at >= 0 {
		// a progress bar: the carriage return stays, because it has overwritten something
		s.pending = append(s.pending[:0], s.pending[at:]...)
	}
	if len(s.pending) > maxPending {
		r.take(s)
	}
}

// take takes the available part of an unfinished line.
func (r *commandOutput) take(s *stream) {
	cut := cleanCut(s.pending)
	if cut == 0 && len(s.pending) > maxPending {
		cut = len(s.pending)
	}
	if cut > 0 {
		r.add(s, cleaned(string(s.pending[:cut]), s.open))
		s.pending = append(s.pending[:0], s.pending[cut:]...)
	}
}

// add appends text to a stream, without secrets: what may be the beginning of a secret waits for the rest.
func (r *commandOutput) add(s *stream, text string) { r.append(s, s.mask.Feed(text)) }

// append appends cleaned text. Once it is too long to show, it goes to a file too.
func (r *commandOutput) append(s *stream, text string) {
	if text == "" {
		return
	}
	if r.out.size+r.err.size+int64(len(text)) > MaxShown {
		for _, each := range []*stream{&r.out, &r.err} {
			if each == s || each.size > 0 {
				each.spill(r.spills)
			}
		}
	}
	s.add(text)
}

// finish takes an unfinished last line.
func (r *commandOutput) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []*stream{&r.out, &r.err} {
		r.add(s, cleaned(string(s.pending), s.open))
		r.append(s, s.mask.End())
		s.pending = nil
	}
}

// text returns the text of both streams, at most MaxShown characters.
func (r *commandOutput) text() (out, err string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours, theirs := r.out.characters(), r.err.characters()
	if ours+theirs <= MaxShown {
		return r.out.excerpt(MaxShown), r.err.excerpt(MaxShown)
	}
	theirs = min(theirs, max(MaxShown/3, MaxShown-ours))
	return r.out.excerpt(MaxShown - theirs), r.err.excerpt(theirs)
}

// masked returns how many secrets were removed.
func (r *commandOutput) masked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.mask.Masked() + r.err.mask.Masked()
}

// discard drops the record, and removes the files that were never mentioned.
func (r *commandOutput) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []*stream{&r.out, &r.err} {
		s.head, s.tail, s.pending = nil, nil, nil
		if s.file == nil {
			continue
		}
		_ = s.file.Close()
		r.spills.release(s.file.Name())
		if !s.mentioned {
			_ = os.Remove(s.file.Name())
		}
		s.file, s.failed = nil, os.ErrClosed
	}
}
