package process

import (
	"bytes"
	"cmp"
	"sync"
)

// Tail keeps the end of what is written to it. It may be read at the same time.
type Tail struct {
	Most int // bytes; 0: 64 KiB

	mu   sync.Mutex
	data []byte
}

// Write appends to the tail.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-t.most()):]...)
	if len(t.data) > 2*t.most() {
		t.data = append(t.data[:0], t.data[len(t.data)-t.most():]...)
	}
	return len(p), nil
}

// Bytes returns a copy of the end.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.data[max(0, len(t.data)-t.most()):])
}

func (t *Tail) most() int {
	return cmp.Or(t.Most, 64<<10)
}
