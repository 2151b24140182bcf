package lines

import (
	"bytes"
	"sync"
)

// Tail keeps the end of what is written to it, such as a program's last words. Who writes may be somebody else than who
// asks.
type Tail struct {
	Most int // bytes that are kept

	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-t.Most):]...)
	if len(t.kept) > 2*t.Most {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-t.Most:]...)
	}
	return len(p), nil
}

// Bytes is a copy of what is kept.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept[max(0, len(t.kept)-t.Most):])
}
