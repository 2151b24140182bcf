package conversation

import (
	"errors"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// TestLongMessagesWait: a message is refused if those that wait and it are together longer than the limit.
func TestLongMessagesWait(t *testing.T) {
	half := []event.Block{
		{Text: strings.Repeat("x", mostWaitingBytes/4)},
		{Media: "image/png", Data: make([]byte, mostWaitingBytes/4)},
	}
	c := &Conversation{waiting: []*message{{blocks: half}, {blocks: half[:1]}}}
	if _, err := c.accept(half); !errors.Is(err, fault.TooManyRequests) {
		t.Errorf("five quarters wait: %v", err)
	}
	// What is short enough is refused only because the agent takes no images.
	if _, err := c.accept(half[1:]); !errors.Is(err, fault.Unsupported) {
		t.Errorf("four quarters wait: %v", err)
	}
	c.waiting = nil
	if _, err := c.accept(append(half, half...)); !errors.Is(err, fault.Unsupported) {
		t.Errorf("a long message that does not wait: %v", err)
	}
}
