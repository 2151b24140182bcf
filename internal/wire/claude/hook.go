package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/agent"
)

// Matcher selects the subjects of a hook.
type Matcher struct {
	words   []string
	pattern *regexp.Regexp
}

// NewMatcher parses a matcher. An empty text or * matches everything, names separated by bars match those names, and
// anything else is a regular expression.
func NewMatcher(text string) (Matcher, error) {
	if text == "" || text == "*" {
		return Matcher{}, nil
	}
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' ||
			r == '|' || r == ' '
	}
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		var m Matcher
		for word := range strings.SplitSeq(text, "|") {
			m.words = append(m.words, strings.TrimSpace(word))
		}
		return m, nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return Matcher{}, fmt.Errorf("the matcher %q is not a regular expression that can be used here", clipped(text))
	}
	return Matcher{pattern: pattern}, nil
}

// Matches reports whether the hook applies to a subject. Claude Code has two names for the tool that starts a
// sub-agent.
func (m Matcher) Matches(subject string) bool {
	switch {
	case m.pattern != nil:
		return m.pattern.MatchString(subject) || subject == "Task" && m.pattern.MatchString("Agent")
	case m.words != nil:
		return slices.Contains(m.words, subject) || subject == "Task" && slices.Contains(m.words, "Agent")
	}
	return true
}

// Moments returns the moments that hooks support.
func Moments() []agent.MomentName {
	return []agent.MomentName{
		agent.BeforeTool, agent.AfterTool, agent.AfterFailure, agent.MessageComes, agent.SessionBegins,
		agent.SessionEnds, agent.TurnEnds, agent.HelperBegins, agent.HelperEnds, agent.Shortening,
	}
}

// onlookers returns moments of Claude Code that do not occur here. A host can only observe them.
func onlookers() []string {
	return []string{
		"Notification", "StopFailure", "PostCompact", "PostModelSwitch", "PermissionDenied", "Setup", "TeammateIdle",
		"TaskCreated", "TaskCompleted", "ElicitationResult", "WorktreeRemove",
		"InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded", "MessageDisplay", "PostToolBatch",
	}
}

// HookMatcher is a hook of a host, in the form of initialize.
type HookMatcher struct {
	Matcher string   `json:"matcher,omitempty"`
	IDs     []string `json:"hookCallbackIds"`
	Timeout float64  `json:"timeout,omitempty"` // seconds
	Failure string   `json:"onFailure,omitempty"`
}

func readHooks(raw json.RawMessage, ignored []string) ([]Hook, []string, error) {
	var all map[string][]HookMatcher
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, nil, fmt.Errorf("initialize: invalid hooks: %w", err)
	}
	var hooks []Hook
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.Contains(onlookers(), name) {
			ignored = append(ignored, "hooks."+name)
			continue
		}
		if !slices.Contains(Moments(), agent.MomentName(name)) {
			return nil, nil, fmt.Errorf("initialize: hooks for %s would never be called here, and may be a limit",
				clipped(name))
		}
		for _, h := range all[name] {
			m, err := NewMatcher(h.Matcher)
			if err != nil {
				return nil, nil, fmt.Errorf("initialize: hooks: %w", err)
			}
			if h.Failure != "" && h.Failure != "continue" && h.Failure != "block" {
				return nil, nil, fmt.Errorf("initialize: hooks: onFailure must be continue or block, not %q",
					clipped(h.Failure))
			}
			seconds := min(max(h.Timeout, 0), 24*60*60)
			hooks = append(hooks, Hook{
				Moment: agent.MomentName(name), Matcher: m, IDs: h.IDs,
				Timeout: time.Duration(seconds * float64(time.Second)), Block: h.Failure == "block",
			})
		}
	}
	return hooks, ignored, nil
}

// Subject returns the text that the matcher of a hook applies to.
func Subject(m agent.Moment) string {
	switch m.Name {
	case agent.BeforeTool, agent.AfterTool, agent.AfterFailure:
		if m.Call != nil {
			return m.Call.Name
		}
	case agent.SessionBegins, agent.SessionEnds, agent.Shortening, agent.HelperBegins, agent.HelperEnds:
		return m.Text
	}
	return ""
}

// Scene is the part of the input that all hooks get.
type Scene struct{ Session, Dir, Mode string }

// HookRequest returns a request that calls the host's hook.
func HookRequest(callback string, s Scene, m agent.Moment) Control {
	input := map[string]any{
		"session_id": s.Session, "transcript_path": "", "cwd": s.Dir, "permission_mode": s.Mode,
		"hook_event_name": string(m.Name),
	}
	request := Control{Subtype: "hook_callback", Callback: callback}
	if m.Parent != "" {
		input["agent_id"] = m.Parent
	}
	if m.Call != nil {
		input["tool_name"], input["tool_input"], input["tool_use_id"] = m.Call.Name, m.Call.Object(), m.Call.ID
		request.Call = m.Call.ID
	}
	switch m.Name {
	case agent.AfterTool:
		if m.Result != nil {
			input["tool_response"] = m.Result.Output
		}
	case agent.AfterFailure:
		if m.Result != nil {
			input["error"] = m.Result.Output
		}
	case agent.MessageComes:
		input["prompt"] = m.Text
	case agent.SessionBegins:
		input["source"] = m.Text
	case agent.SessionEnds:
		input["reason"] = m.Text
	case agent.Shortening:
		input["trigger"], input["custom_instructions"] = m.Text, nil
	case agent.HelperBegins:
		input["agent_type"] = m.Text
	case agent.TurnEnds, agent.HelperEnds:
		input["stop_hook_active"], input["last_assistant_message"] = m.Again, m.Text
	}
	request.Input = encode(input)
	return request
}

// HookInput is the input of a hook.
type HookInput struct {
	Event    string          `json:"hook_event_name"`
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	ToolUse  string          `json:"tool_use_id"`
	Response json.RawMessage `json:"tool_response"`
	Error    string          `json:"error"`
	Prompt   string          `json:"prompt"`
	Last     string          `json:"last_assistant_message"`
	Source   string          `json:"source"`
	Reason   string          `json:"reason"`
	Trigger  string          `json:"trigger"`
	Kind     string          `json:"agent_type"`
	Parent   string          `json:"parent_tool_use_id"`
	Again    bool            `json:"stop_hook_active"`
}

// HookOutput is the output of a hook.
type HookOutput struct {
	Async    bool          `json:"async,omitempty"`
	Continue *bool         `json:"continue,omitempty"`
	Stop     string        `json:"stopReason,omitempty"`
	Decision string        `json:"decision,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Note     string        `json:"systemMessage,omitempty"`
	More     *HookDecision `json:"hookSpecificOutput,omitempty"`
}

// HookDecision is the part of the output that depends on the moment.
type HookDecision struct {
	Event    string          `json:"hookEventName,omitempty"`
	Decision string          `json:"permissionDecision,omitempty"`
	Reason   string          `json:"permissionDecisionReason,omitempty"`
	Input    json.RawMessage `json:"updatedInput,omitempty"`
	Context  string          `json:"additionalContext,omitempty"`
	Output   json.RawMessage `json:"updatedToolOutput,omitempty"`
	MCP      json.RawMessage `json:"updatedMCPToolOutput,omitempty"`
}

// Output converts a decision to the output of a hook.
func Output(name agent.MomentName, w agent.HookAnswer) (out HookOutput) {
	more := HookDecision{Context: w.Context}
	if name == agent.BeforeTool {
		more.Decision, more.Input = w.Decision, w.Input
		if w.Decision != "" {
			more.Reason = w.Reason
		}
	} else if w.Decision == "deny" {
		out.Decision, out.Reason = "block", w.Reason
	}
	if more.Decision != "" || more.Context != "" || len(more.Input) > 0 {
		more.Event, out.More = string(name), &more
	}
	if w.End != "" {
		out.Continue, out.Stop = new(bool), w.End
	}
	out.Note = w.Note
	return out
}

// ReadWord reads the host's decision.
//
// Long because it is one case after the other.
func ReadWord(name agent.MomentName, body []byte) (agent.HookAnswer, error) {
	var out HookOutput
	if err := json.Unmarshal(body, &out); err != nil {
		return agent.HookAnswer{}, errors.New("its answer is invalid")
	}
	out.More = cmp.Or(out.More, &HookDecision{})
	w := agent.HookAnswer{Note: out.Note, Context: out.More.Context}
	if out.Async { // the host runs it in the background
		return agent.HookAnswer{}, nil
	}
	switch out.Decision {
	case "":
	case "approve":
		if name == agent.BeforeTool {
			w.Decision, w.Reason = "allow", out.Reason
		}
	case "block":
		w.Decision, w.Reason = "deny", out.Reason
	default:
		return agent.HookAnswer{}, fmt.Errorf("its decision must be approve or block, not %q", clipped(out.Decision))
	}
	if name == agent.BeforeTool {
		switch d := out.More.Decision; d {
		case "":
		case "allow", "ask", "deny":
			if w.Decision != "deny" { // the stricter of two decisions counts
				w.Decision, w.Reason = d, out.More.Reason
			}
		case "defer":
			return agent.HookAnswer{}, errors.New("it defers the call, which is not supported here")
		default:
			return agent.HookAnswer{},
				fmt.Errorf("its permissionDecision must be allow, ask or deny, not %q", clipped(d))
		}
		if raw := bytes.TrimSpace(out.More.Input); len(raw) > 0 && string(raw) != "null" {
			if raw[0] != '{' {
				return agent.HookAnswer{}, errors.New("its updatedInput is not an object")
			}
			w.Input = out.More.Input
		}
	}
	if len(out.More.Output) > 0 || len(out.More.MCP) > 0 {
		return agent.HookAnswer{}, errors.New("it replaces the result of a tool, which is not supported here")
	}
	if out.Continue != nil && !*out.Continue {
		w.End = cmp.Or(out.Stop, "the host ends the turn")
	}
	return w, nil
}

// Failed returns the decision for a hook that failed: to ask the person, or to block the action if the host wants that.
func Failed(h Hook, why string) agent.HookAnswer {
	w := agent.HookAnswer{Note: "a hook of the host for " + string(h.Moment) + " failed: " + why}
	switch {
	case h.Block && slices.Contains([]agent.MomentName{agent.BeforeTool, agent.MessageComes}, h.Moment):
		w.Decision, w.Reason = "deny", w.Note
	case h.Moment == agent.BeforeTool:
		w.Decision, w.Reason = "ask", w.Note
	}
	return w
}

// Together combines several decisions. It takes the strictest decision, and the first value of everything else.
func Together(words []agent.HookAnswer) agent.HookAnswer {
	rank := func(d string) int { return slices.Index([]string{"", "allow", "ask", "deny"}, d) }
	var all agent.HookAnswer
	join := func(a, b string) string {
		if a == "" || b == "" {
			return a + b
		}
		return a + "\n" + b
	}
	for _, w := range words {
		if rank(w.Decision) > rank(all.Decision) {
			all.Decision, all.Reason = w.Decision, w.Reason
		}
		if all.Input == nil {
			all.Input = w.Input
		}
		all.End = cmp.Or(all.End, w.End)
		all.Context, all.Note = join(all.Context, w.Context), join(all.Note, w.Note)
	}
	return all
}
