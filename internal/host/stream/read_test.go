package stream

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"omniagent/internal/wire/claude"
)

// counting counts what is read from r.
type counting struct {
	r io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// TestReadAhead: what a host sends while nobody takes its frames is read up to a number of frames and of bytes, and
// the rest once there is room.
func TestReadAhead(t *testing.T) {
	const most = 1 << 20
	for name, c := range map[string]struct {
		length, lines int // of a message; how many of them come
		ahead         int // frames that are read while nobody takes one, with one that waits for room
	}{
		"few long":   {300_000, 12, most/300_000 + 2},
		"many short": {10, 1000, mostAhead + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				line := strings.Replace(message, "go", strings.Repeat("x", c.length), 1) + "\n"
				readers := make([]io.Reader, c.lines)
				for i := range readers {
					readers[i] = strings.NewReader(line)
				}
				in := &counting{r: io.MultiReader(readers...)}
				d := NewClaude(claude.Encoder{})
				h := New(io.Discard, d, Lines)
				defer h.Finish()
				frames := make(chan Input)
				go readAhead(in, d, most, frames, nil)
				synctest.Wait()
				if most := (c.ahead+1)*len(line) + 64<<10; in.n > most || in.n < (c.ahead-1)*len(line) {
					t.Errorf("%d bytes are read, want about %d", in.n, c.ahead*len(line))
				}
				got := 0
				for said := range frames {
					if said.Err != nil || len(said.Frame.User) != 1 || len(said.Frame.User[0].Text) != c.length {
						t.Fatalf("frame %d: %v", got, said.Err)
					}
					got++
				}
				if got != c.lines {
					t.Errorf("%d frames, want %d", got, c.lines)
				}
			})
		})
	}
}

// TestReadQuits: a host that does not end its input keeps nothing alive once nobody takes its frames.
func TestReadQuits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewClaude(claude.Encoder{})
		h := New(io.Discard, d, Lines)
		defer h.Finish()
		frames, quit := make(chan Input), make(chan struct{})
		go Read(strings.NewReader(strings.Repeat(message+"\n", 2*mostAhead)), d, frames, quit)
		synctest.Wait()
		close(quit)
		for range frames { // Read may send what it holds, but it ends
		}
	})
}
