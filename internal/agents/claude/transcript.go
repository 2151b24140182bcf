package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/lines"
	wire "omniagent/internal/wire/claude"
)

const (
	longest = 1 << 20   // bytes of a record; longer ones contain files or prompts, and are skipped
	tail    = 256 << 10 // bytes at the end of the earlier records that are searched for their cost
)

// transcriptLine is one line of a transcript.
type transcriptLine struct {
	Type      string          `json:"type"`
	Time      string          `json:"timestamp"`
	Message   wire.Message    `json:"message"`
	Meta      bool            `json:"isMeta"`
	Source    string          `json:"promptSource"`
	Denial    string          `json:"toolDenialKind"`
	Decision  wire.Decision   `json:"permissionDecision"`
	APIError  bool            `json:"isApiErrorMessage"`
	Error     json.RawMessage `json:"error"`
	Status    int             `json:"apiErrorStatus"`
	ErrorType string          `json:"apiErrorType"`
	Network   string          `json:"apiError"`
	Details   string          `json:"errorDetails"`
	Attached  struct {
		Type string `json:"type"`
	} `json:"attachment"`
	cost
}

// cost is the usage of a whole session.
type cost struct {
	USD    *float64                    `json:"totalCostUSD"`
	Models map[string]wire.ModelTokens `json:"modelUsage"`
}

func (c cost) sum() event.Usage {
	var u event.Usage
	for _, m := range c.Models {
		input := m.Input + m.Cached + m.Written
		u.Add(event.Usage{Input: input, Output: m.Output, Cached: m.Cached, Reasoning: m.Thinking})
	}
	return u
}

// since returns the usage since an earlier cost.
func (c cost) since(then cost) *event.Usage {
	now, old := c.sum(), then.sum()
	u := &event.Usage{
		Input: max(0, now.Input-old.Input), Output: max(0, now.Output-old.Output),
		Cached: max(0, now.Cached-old.Cached), Reasoning: max(0, now.Reasoning-old.Reasoning),
	}
	if c.USD != nil {
		usd := *c.USD
		if then.USD != nil {
			usd = max(0, usd-*then.USD)
		}
		u.CostUSD = &usd
	}
	return u
}

// read reads the records from an offset on. It skips records that are incomplete or too long.
func (t *summary) read(path string, offset int64) bool {
	return eachRecord(path, offset, func(r transcriptLine) {
		if t.ours(r) {
			t.records++
			t.take(r)
		}
	})
}

func eachRecord(path string, offset int64, f func(transcriptLine)) bool {
	return cli.EachLine(path, offset, longest, func(l lines.Line) bool {
		if r, ok := parse(l.Text); ok && !l.Long && !l.Torn {
			f(r)
		}
		return true
	})
}

// ours reports whether a record belongs to this run, and is not a copy of an earlier one.
func (t *summary) ours(r transcriptLine) bool {
	if t.since.IsZero() {
		return true
	}
	at, err := time.Parse(time.RFC3339, r.Time)
	return err == nil && !at.Before(t.since)
}

// parse reads a record if it is of interest. Most are not, and searching for words is faster than parsing.
func parse(line []byte) (transcriptLine, bool) {
	if rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`)); ok && !oneOf(rest[:min(len(rest), 20)], `assistant"`,
		`user"`, `cost-state"`, `attachment"`) {
		return transcriptLine{}, false
	}
	if !oneOf(line, `"type":"assistant"`, `"type":"tool_result"`, `"toolDenialKind"`, `"promptSource"`, `"[Request interrupted by user`,
		`"type":"cost-state"`, `"type":"structured_output"`) {
		return transcriptLine{}, false
	}
	var r transcriptLine
	if json.Unmarshal(line, &r) != nil {
		return transcriptLine{}, false
	}
	return r, true
}

func oneOf(text []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}

func (t *summary) take(r transcriptLine) {
	switch r.Type {
	case "assistant":
		t.assistant(r)
	case "user":
		t.user(r)
	case "attachment":
		t.replied = t.replied || r.Attached.Type == "structured_output"
	case "cost-state":
		t.cost = &r.cost
	}
}

func (t *summary) assistant(r transcriptLine) {
	if r.APIError {
		t.failed = &apiFailure{
			Word: word(r.Error), Status: r.Status, Type: r.ErrorType, Detail: r.Details, Network: r.Network,
			Text: wire.Plain(r.Message.Content), Stop: r.Message.Stop,
		}
		return
	}
	t.failed, t.interrupted = nil, false // the agent overcame the error
	t.model = cmp.Or(r.Message.Model, t.model)
	for _, b := range wire.Blocks(r.Message.Content) {
		switch {
		case b.Type == "tool_use":
			t.names[b.ID] = b.Name
			t.calls.Begin(call(b), cli.Time(r.Time))
			t.replied = true
		case b.Type == "text" && strings.TrimSpace(b.Text) != "":
			t.replied = true
		}
	}
}

func (t *summary) user(r transcriptLine) {
	result := false
	for _, b := range wire.Blocks(r.Message.Content) {
		if b.Type != "tool_result" {
			continue
		}
		result = true
		t.calls.End(b.ToolUseID, cli.Time(r.Time), b.IsError)
		if r.Denial != "" || r.Decision.Decision == "reject" {
			t.calls.Drop(b.ToolUseID)
		}
		if refused(r.Denial, r.Decision) {
			t.denials = append(t.denials, event.Denial{
				CallID: b.ToolUseID, Tool: t.names[b.ToolUseID], Reason: cli.FirstLine(cmp.Or(wire.Plain(b.Content),
					r.Decision.Code, r.Denial)),
			})
		}
	}
	switch {
	case result || r.Meta || t.side:
	case r.Source != "":
		t.prompted, t.interrupted = true, false
	default:
		// The CLI's own mark of an interruption. It exits with 0.
		switch wire.Plain(r.Message.Content) {
		case "[Request interrupted by user]", "[Request interrupted by user for tool use]":
			t.interrupted = true
		}
	}
}

// lastCost returns the last recorded cost, if it is near the end of a transcript of the given size.
func lastCost(path string, size int64) (last cost) {
	eachRecord(path, max(0, size-tail), func(r transcriptLine) {
		if r.Type == "cost-state" {
			last = r.cost
		}
	})
	return last
}
