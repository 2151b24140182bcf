package modelserver

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func (a *answer) wait(d time.Duration) error {
	if d <= 0 {
		return a.ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-a.ctx.Done():
		return errGone
	}
}

// body writes an answer that is not a stream.
func (a *answer) body(status int, data []byte) error {
	a.w.Header().Set("Content-Type", "application/json")
	a.w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if a.brk.At == Headers {
		return a.broken()
	}
	if err := a.wait(a.pace.First); err != nil {
		return err
	}
	a.headersSent = true
	a.w.WriteHeader(status)
	stop := len(data)
	switch a.brk.At {
	case Opening:
		stop = 0
	case Middle, Events:
		stop = len(data) / 2
	case Bytes:
		stop = min(stop, a.brk.N)
	}
	err := a.out(data[:stop])
	if a.brk.At != Nowhere {
		return a.broken()
	}
	return err
}

// send writes the frames of a stream, each at once.
func (a *answer) send(frames [][]byte) error {
	if a.brk.At == Middle {
		a.heldFrames = append(a.heldFrames, frames...)
		return a.ctx.Err()
	}
	for _, f := range frames {
		if err := a.frame(f); err != nil {
			return err
		}
	}
	return nil
}

// release sends the first half of the held frames, and breaks.
func (a *answer) release() error {
	if a.brk.At != Middle {
		return nil
	}
	a.brk.At, a.brk.N = Events, max(1, len(a.heldFrames)/2)
	return a.send(a.heldFrames)
}

func (a *answer) frame(f []byte) error {
	if a.brk.At == Headers {
		return a.broken()
	}
	if !a.headersSent {
		if err := a.wait(a.pace.First); err != nil {
			return err
		}
		a.headersSent = true
		h := a.w.Header()
		h.Set("Content-Type", a.enc.contentType())
		h.Set("Cache-Control", "no-cache")
		a.w.WriteHeader(http.StatusOK)
	}
	if a.brk.At == Opening || a.brk.At == Events && a.events >= a.brk.N {
		return a.broken()
	}
	cut := a.brk.At == Bytes && a.bytes+len(f) >= a.brk.N
	if cut {
		f = f[:max(0, a.brk.N-a.bytes)]
	}
	if err := a.out(f); err != nil {
		return errGone
	}
	a.events++
	a.bytes += len(f)
	if cut {
		return a.broken()
	}
	return http.NewResponseController(a.w).Flush()
}

// out writes bytes of the body.
func (a *answer) out(data []byte) error {
	if a.pace.Byte == 0 {
		_, err := a.w.Write(data)
		return err
	}
	for i := range data {
		if err := a.wait(a.pace.Byte); err != nil {
			return err
		}
		if _, err := a.w.Write(data[i : i+1]); err != nil {
			return err
		}
		if err := http.NewResponseController(a.w).Flush(); err != nil {
			return err
		}
	}
	return nil
}

// broken ends the answer where it is.
func (a *answer) broken() error {
	a.finished = true
	if a.headersSent {
		_ = http.NewResponseController(a.w).Flush()
	}
	if a.brk.Hold {
		<-a.ctx.Done()
	}
	return errGone
}

// pieces cuts a text like a model's stream: after spaces, some bytes each, never within a character.
func pieces(s string) []string {
	const usual, most = 16, 256
	size := max(usual, len(s)/most)
	var out []string
	for len(s) > size {
		n := size
		if i := strings.LastIndexByte(s[:size], ' '); i > 0 {
			n = i + 1
		}
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out, s = append(out, s[:n]), s[n:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}
