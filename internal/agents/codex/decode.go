package codex

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
)

// decoder reads the lines of exec --json.
type decoder struct{ items items }

func newDecoder() agent.Decoder {
	d := &decoder{items: newItems()}
	return &cli.JSONLines{Parse: d.line}
}

// line is one line of the output.
type line struct {
	Type    string          `json:"type"`
	Thread  string          `json:"thread_id"`
	Message string          `json:"message"`
	Item    json.RawMessage `json:"item"`
	Usage   *usage          `json:"usage"`
	Error   *struct{ Message string }
}

// usage counts tokens, in the output and in the transcript. Input includes Cached.
type usage struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
}

func (u usage) minus(before usage) *usage {
	return &usage{
		u.Input - before.Input, u.Cached - before.Cached, u.Output - before.Output,
		u.Reasoning - before.Reasoning,
	}
}

func (u *usage) event() *event.Usage {
	if u == nil {
		return nil
	}
	return &event.Usage{Input: u.Input, Output: u.Output, Cached: u.Cached, Reasoning: u.Reasoning}
}

func (d *decoder) line(data []byte) []event.Event {
	var l line
	if json.Unmarshal(data, &l) != nil || l.Type == "" {
		return cli.Unreadable(data)
	}
	switch l.Type {
	case "thread.started":
		return []event.Event{{Kind: event.Started, Session: l.Thread}}
	case "turn.started":
		d.items.last = ""
		return []event.Event{{Kind: event.TurnBegan}}
	case "turn.completed":
		return []event.Event{{Kind: event.Ended, End: &event.End{OK: true, Text: d.items.last, Usage: l.Usage.event()}}}
	case "turn.failed":
		message := ""
		if l.Error != nil {
			message = l.Error.Message
		}
		return []event.Event{
			{Kind: event.Failed, Fault: faultOf(message, nil), Terminal: true},
			{Kind: event.Ended, End: &event.End{Text: d.items.last, Reason: message, Usage: l.Usage.event()}},
		}
	case "error":
		if again := reconnecting(l.Message); again != nil {
			return []event.Event{{Kind: event.Retry, Retry: again}}
		}
		// An error that ends the turn is repeated as turn.failed.
		return []event.Event{{Kind: event.Failed, Fault: faultOf(l.Message, nil)}}
	case "item.started", "item.updated", "item.completed":
		it, ok := readItem(l.Item)
		if !ok {
			return cli.Unreadable(data)
		}
		return d.items.read(it, l.Type == "item.completed")
	}
	return []event.Event{{Kind: event.Notice, Text: l.Type}}
}

// reconnecting parses "Reconnecting... 1/5 (why)" and "Reconnecting... waiting for network (why)", the forms of a
// retry.
func reconnecting(message string) *event.Repetition {
	m := regexp.MustCompile(`^Reconnecting\.\.\. (\d+)/(\d+)(?: \((.*)\))?`).FindStringSubmatch(message)
	if m == nil {
		if why, is := strings.CutPrefix(cli.FirstLine(message), "Reconnecting... "); is {
			return &event.Repetition{Reason: why}
		}
		return nil
	}
	again := &event.Repetition{Reason: m[3]}
	again.Attempt, _ = strconv.Atoi(m[1])
	again.Of, _ = strconv.Atoi(m[2])
	again.Status = statusIn(m[3])
	return again
}
