package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/lines"
	wire "omniagent/internal/proto/claude"
)

const (
	longest = 1 << 20   // bytes of a record that is looked into; longer ones hold files or prompts
	tail    = 256 << 10 // bytes before the end of the earlier records in which their cost is looked for
)

// record is one line of a transcript.
type record struct {
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

// cost is what a session has used, in all.
type cost struct {
	USD    *float64                    `json:"totalCostUSD"`
	Models map[string]wire.ModelTokens `json:"modelUsage"`
}

func (c cost) sum() event.Usage {
	var u event.Usage
	for _, m := range c.Models {
		u.Input += m.Input + m.Cached + m.Written
		u.Output += m.Output
		u.Cached += m.Cached
		u.Reasoning += m.Thinking
	}
	return u
}

// since is what was used after that.
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

// read takes in the records behind that offset. A last one without its end is torn and left out, and so are those that
// are too long.
func (t *tale) read(path string, offset int64) bool {
	if !regular(path) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return false
	}
	return each(f, func(line []byte) {
		if r, ok := parse(line); ok && t.ours(r) {
			t.records++
			t.take(r)
		}
	})
}

// ours reports whether a record belongs to this run, and is not a copy of an earlier one.
func (t *tale) ours(r record) bool {
	if t.since.IsZero() {
		return true
	}
	at, err := time.Parse(time.RFC3339, r.Time)
	return err == nil && !at.Before(t.since)
}

// each calls f with every whole line that is not too long.
func each(from io.Reader, f func(line []byte)) bool {
	in := lines.NewReader(from, longest)
	for in.Next() {
		if !in.Long && !in.Torn {
			f(in.Text)
		}
	}
	return in.Err() == nil
}

// parse reads a record that tells something. Most do not: looking for a word is quicker than reading them.
func parse(line []byte) (record, bool) {
	if rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`)); ok && !oneOf(rest[:min(len(rest), 20)], `assistant"`,
		`user"`, `cost-state"`, `attachment"`) {
		return record{}, false
	}
	// Of the user's records, only those that are no plain result of a tool.
	if !oneOf(line, `"type":"assistant"`, `"toolDenialKind"`, `"promptSource"`, `"[Request interrupted by user`,
		`"type":"cost-state"`, `"type":"structured_output"`) {
		return record{}, false
	}
	var r record
	if json.Unmarshal(line, &r) != nil {
		return record{}, false
	}
	return r, true
}

func oneOf(text []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}

func (t *tale) take(r record) {
	switch r.Type {
	case "assistant":
		t.assistant(r)
	case "user":
		t.user(r)
	case "attachment":
		t.said = t.said || r.Attached.Type == "structured_output"
	case "cost-state":
		t.cost = &r.cost
	}
}

func (t *tale) assistant(r record) {
	if r.APIError {
		var word string
		_ = json.Unmarshal(r.Error, &word)
		t.failed = &apiFailure{
			Word: word, Status: r.Status, Type: r.ErrorType, Detail: r.Details, Network: r.Network,
			Text: wire.Plain(r.Message.Content),
		}
		return
	}
	t.failed, t.broken = nil, false // an error that the agent overcame
	t.model = cmp.Or(r.Message.Model, t.model)
	for _, b := range wire.Blocks(r.Message.Content) {
		switch {
		case b.Type == "tool_use":
			t.names[b.ID] = b.Name
			t.said = true
		case b.Type == "text" && strings.TrimSpace(b.Text) != "":
			t.said = true
		}
	}
}

func (t *tale) user(r record) {
	result := false
	for _, b := range wire.Blocks(r.Message.Content) {
		if b.Type != "tool_result" {
			continue
		}
		result = true
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
		t.asked, t.broken = true, false
	default:
		// The CLI's own mark of an interruption. It exits with 0 then.
		switch wire.Plain(r.Message.Content) {
		case "[Request interrupted by user]", "[Request interrupted by user for tool use]":
			t.broken = true
		}
	}
}

// lastCost is the last that was noted before that offset. Where it is too far back, nothing is known of it.
func lastCost(path string, end int64) cost {
	var last cost
	if path == "" || end == 0 {
		return last
	}
	f, err := os.Open(path)
	if err != nil {
		return last
	}
	defer f.Close()
	start := max(0, end-tail)
	each(io.NewSectionReader(f, start, end-start), func(line []byte) {
		if r, ok := parse(line); ok && r.Type == "cost-state" {
			last = r.cost
		}
	})
	return last
}
