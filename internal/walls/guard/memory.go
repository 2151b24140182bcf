package guard

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// Memory holds the answers of a person in this conversation, each bound to the exact content of a call: one byte more
// is another call. The zero value is ready to use, by several goroutines.
type Memory struct {
	mu    sync.Mutex
	words map[[sha256.Size]byte]Decision
}

// Remember stores an answer. For the same call, the last one counts.
func (m *Memory) Remember(c Call, w Decision) {
	key, ok := c.key()
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.words == nil {
		m.words = map[[sha256.Size]byte]Decision{}
	}
	m.words[key] = w
}

func (m *Memory) recall(c Call) (Decision, bool) {
	if m == nil {
		return Allow, false
	}
	key, ok := c.key()
	if !ok {
		return Allow, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w, found := m.words[key]
	return w, found
}

// key is the hash of everything in a call. The input is marshalled again, so that the order of its members and its
// spaces do not matter.
func (c Call) key() (key [sha256.Size]byte, ok bool) {
	var input any
	if !utf8.Valid(c.Input) {
		return key, false // the decoder would map different bytes to the same text
	}
	if len(c.Input) > 0 {
		d := json.NewDecoder(bytes.NewReader(c.Input))
		d.UseNumber() // a float64 would make different long numbers equal
		if d.Decode(&input) != nil {
			return key, false
		}
		if _, err := d.Token(); err != io.EOF {
			return key, false
		}
	}
	canonical, err := json.Marshal(input)
	if err != nil {
		return key, false
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %s", c.Tool, c.Kind, c.Command, c.Dir, c.Paths, c.URL,
		canonical)), true
}
