package agent

import (
	"context"
	"time"
)

// ArchivedConversation is a conversation in an agent's own records, whether or not we took part in it.
type ArchivedConversation struct {
	ID       string // the agent's id
	Dir      string // its working directory; empty if unknown
	Title    string // the agent's, or the first prompt, on one line
	Created  time.Time
	Updated  time.Time
	Messages int // of both sides; -1 if not counted
	Size     int64
	File     string
}

// ArchivedMessage is one message of a conversation.
type ArchivedMessage struct {
	User bool // otherwise it is the agent's
	Text string
}

// Archive finds the conversations that an agent stores on this machine. It only reads. It skips damaged data, and never
// fails because of a single conversation.
type Archive interface {
	// List returns up to most conversations, the newest first.
	List(ctx context.Context, most int) ([]ArchivedConversation, error)
	// Read calls hear with each message, in order, until it returns false.
	Read(ctx context.Context, p ArchivedConversation, hear func(ArchivedMessage) bool) error
}
