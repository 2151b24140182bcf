package shell

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"
)

const (
	maxPending = 64 << 10     // bytes of a line that has not ended, before it is taken as it is
	maxHead    = 4 * MaxShown // bytes that are enough for MaxShown characters of any kind
	maxTail    = 2 * MaxShown // bytes of the end that are kept at least, once a stream is longer than the head
	maxFresh   = 64 << 10     // bytes that progress has not been told
	maxSpill   = 100 << 20    // bytes of a stream that a file keeps
)

// record is what a command prints: two streams, each with its beginning, its end, and a file with the whole once it is
// too long to show.
type record struct {
	spills *spills
	live   bool // somebody wants to be told

	mu       sync.Mutex
	out, err stream
	fresh    []byte
	skipped  bool // not all that is fresh is there
}

func newRecord(s *spills, live bool) *record {
	return &record{
		spills: s, live: live, out: stream{name: "stdout", veil: s.secrets.Stream()}, err: stream{
			name: "stderr",
			veil: s.secrets.Stream(),
		},
	}
}

// input is a stream as the writer that process hands output to.
type input struct {
	r *record
	s *stream
}

func (r *record) to(s *stream) io.Writer { return &input{r, s} }

// Write never fails: a command is not ended because its output cannot be kept.
func (w *input) Write(p []byte) (int, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.write(w.s, p)
	return len(p), nil
}

func (r *record) write(s *stream, p []byte) {
	if end := bytes.LastIndexByte(p, '\n') + 1; end > 0 {
		chunk := string(append(s.pending, p[:end]...))
		s.pending, p = s.pending[:0], p[end:]
		r.add(s, settled(chunk, s.open))
	}
	s.pending = append(s.pending, p...)
	if len(s.pending) <= maxPending {
		return
	}
	if at := bytes.LastIndexByte(bytes.TrimRight(s.pending, "\r"), '\r'); at >= 0 {
		// a progress bar: the carriage return stays, it has overwritten something
		s.pending = append(s.pending[:0], s.pending[at:]...)
	}
	if len(s.pending) > maxPending {
		r.take(s)
	}
}

// take takes what is there of a line that has not ended.
func (r *record) take(s *stream) {
	cut := cleanCut(s.pending)
	if cut == 0 && len(s.pending) > maxPending {
		cut = len(s.pending)
	}
	if cut > 0 {
		r.add(s, settled(string(s.pending[:cut]), s.open))
		s.pending = append(s.pending[:0], s.pending[cut:]...)
	}
}

// add appends text to a stream, without secrets: what may be the beginning of one waits for the rest.
func (r *record) add(s *stream, text string) { r.append(s, s.veil.Feed(text)) }

// append appends what may be seen. What is together longer than what is shown goes to files as well.
func (r *record) append(s *stream, text string) {
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
	if !r.live {
		return
	}
	if r.fresh = append(r.fresh, text...); len(r.fresh) > maxFresh {
		r.fresh, r.skipped = append(r.fresh[:0], fromRune(r.fresh[len(r.fresh)-maxFresh/2:])...), true
	}
}

// tell tells progress every now and then what is new. The function that is returned tells the rest, and ends it.
func (r *record) tell(progress func(string)) (end func()) {
	if progress == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressGap)
		defer tick.Stop()
		for last := false; !last; {
			select {
			case <-tick.C:
			case <-over:
				last = true
			}
			if fresh := r.news(); fresh != "" {
				progress(fresh)
			}
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// news is what was not told yet. Of a line that has not ended it has what nothing can take back any more.
func (r *record) news() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []*stream{&r.out, &r.err} {
		if !bytes.ContainsAny(s.pending, "\r\b") {
			r.take(s)
		}
	}
	fresh := string(r.fresh)
	if r.skipped {
		fresh = "[…]\n" + fresh
	}
	r.fresh, r.skipped = r.fresh[:0], false
	return fresh
}

// finish takes what did not end with a line.
func (r *record) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []*stream{&r.out, &r.err} {
		r.add(s, settled(string(s.pending), s.open))
		r.append(s, s.veil.End())
		s.pending = nil
	}
}

// shown is the text of both, no more than MaxShown characters of it.
func (r *record) shown() (out, err string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ours, theirs := r.out.characters(), r.err.characters()
	if ours+theirs <= MaxShown {
		return r.out.shown(MaxShown), r.err.shown(MaxShown)
	}
	theirs = min(theirs, max(MaxShown/3, MaxShown-ours))
	return r.out.shown(MaxShown - theirs), r.err.shown(theirs)
}

// masked is how many secrets were left out.
func (r *record) masked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.veil.Masked() + r.err.veil.Masked()
}

// discard forgets it all, and removes the files that nobody was told of.
func (r *record) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range []*stream{&r.out, &r.err} {
		s.head, s.tail, s.pending = nil, nil, nil
		if s.file == nil {
			continue
		}
		_ = s.file.Close()
		r.spills.release(s.file.Name())
		if !s.named {
			_ = os.Remove(s.file.Name())
		}
		s.file, s.failed = nil, os.ErrClosed
	}
}
