package agent

import (
	"context"
	"time"
)

// Past is a conversation that an agent keeps by itself, whether or not it was held through us.
type Past struct {
	ID       string // the agent's own
	Dir      string // where it was held; empty: unknown
	Title    string // the agent's, or the first prompt, on one line
	Created  time.Time
	Updated  time.Time
	Messages int // of both sides; -1: not counted
	Size     int64
	File     string
}

// Said is what one side said in a conversation.
type Said struct {
	User bool // otherwise the agent
	Text string
}

// Archive finds the conversations that an agent keeps by itself on this machine. It only reads, it passes over what is
// damaged, and it never fails because of one conversation.
type Archive interface {
	// List returns at most so many conversations, the newest first.
	List(ctx context.Context, most int) ([]Past, error)
	// Read calls hear with what was said, in order, until it returns false.
	Read(ctx context.Context, p Past, hear func(Said) bool) error
}
