package codex

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/lines"
)

const (
	maxRead = 16 << 20 // bytes of a transcript that are read; of a longer one the end
	maxTail = 4 << 20
	maxLine = 4 << 20 // a longer line is passed over
	maxOpen = 4096    // calls that wait for their result, and denials that are kept
)

// readRollout reads what happened from the transcript, from that place on.
func readRollout(path string, from int64) agent.Evidence {
	f, err := os.Open(path)
	if err != nil {
		return agent.Evidence{}
	}
	defer f.Close()
	r := rollout{calls: map[string]string{}, told: true}
	if info, err := f.Stat(); err == nil && info.Size()-from > maxRead {
		from, r.told = info.Size()-maxTail, false
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return agent.Evidence{}
	}
	for in := lines.NewReader(io.LimitReader(f, maxRead), maxLine); in.Next(); {
		if in.Long {
			r.told = false
		} else if !in.Torn {
			r.line(in.Text)
		}
	}
	return r.evidence()
}

// rollout gathers evidence.
type rollout struct {
	calls     map[string]string // the tools whose result is not known so far
	denials   []event.Denial
	told      bool
	sandboxed bool
	answered  bool
	worked    bool   // the sandbox started a command
	broken    string // what it said where it could not
	ended     bool
	failure   *failure
	model     string
	usage     *usage
}

type failure struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codex_error_info"`
}

// record is one line of a transcript, as far as it is used.
type record struct {
	Type    string `json:"type"`
	Payload struct {
		Type    string          `json:"type"`
		Name    string          `json:"name"`
		CallID  string          `json:"call_id"`
		Output  json.RawMessage `json:"output"`
		Model   string          `json:"model"`
		Usage   *usage          `json:"usage"`
		Error   *failure        `json:"error"`
		Last    string          `json:"last_agent_message"`
		Sandbox *struct {
			Type string `json:"type"`
		} `json:"sandbox_policy"`
		Item *struct {
			ID       string   `json:"id"`
			Type     string   `json:"type"`
			Status   string   `json:"status"`
			Server   string   `json:"server"`
			Tool     string   `json:"tool"`
			ExitCode *int     `json:"exit_code"`
			Printed  string   `json:"aggregated_output"`
			Error    *failure `json:"error"`
			Content  []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"item"`
	} `json:"payload"`
}

func (r *rollout) line(data []byte) {
	if !wanted(data) {
		return
	}
	var rec record
	if json.Unmarshal(data, &rec) != nil {
		r.told = false
		return
	}
	p := &rec.Payload
	switch rec.Type + "/" + p.Type {
	case "turn_context/":
		r.model = p.Model
		r.sandboxed = p.Sandbox != nil && p.Sandbox.Type != fullAccess
	case "token_usage_record/":
		r.count(p.Usage)
	case "event_msg/task_started":
		r.failure, r.ended = nil, false
	case "event_msg/task_complete":
		r.failure, r.ended = p.Error, true
		r.answered = r.answered || p.Last != ""
	case "event_msg/item_completed":
		r.item(&rec)
	case "response_item/function_call", "response_item/custom_tool_call":
		r.answered = true
		if p.Type == "custom_tool_call" && p.Name == "exec" {
			r.told = false // a script of the model, which may catch the refusal of what it calls
		}
		if len(r.calls) < maxOpen {
			r.calls[p.CallID] = p.Name
		}
	case "response_item/function_call_output", "response_item/custom_tool_call_output":
		r.result(p.CallID, p.Output)
	}
}

// result reads what a tool gave back to the model.
func (r *rollout) result(id string, output json.RawMessage) {
	tool, known := r.calls[id]
	if !known {
		return
	}
	delete(r.calls, id)
	text, script := outputText(output)
	if reason, denied := rejected(text, script); denied {
		r.deny(id, tool, reason)
	} else if printed, failed, ran := ranCommand(text); ran && tool == "exec_command" {
		r.command(id, tool, printed, failed)
	}
}

// command reads what a command printed that was run, in the sandbox if there is one.
func (r *rollout) command(id, tool, printed string, failed bool) {
	switch {
	case !r.sandboxed:
	case failed && unstarted(printed):
		r.broken = strings.TrimSpace(printed)
	default:
		r.worked = true
		if failed && stopped(printed) {
			r.deny(id, tool, stoppedBy)
		}
	}
}

// wanted looks at the beginning of a line only, since most of them are long and of no use here.
func wanted(data []byte) bool {
	head := data[:min(len(data), 256)]
	for _, word := range []string{
		`"event_msg"`, `"turn_context"`, `"token_usage_record"`, `"function_call"`, `"custom_tool_call"`,
		`"function_call_output"`, `"custom_tool_call_output"`,
	} {
		if bytes.Contains(head, []byte(word)) {
			return true
		}
	}
	return false
}

func (r *rollout) item(rec *record) {
	it := rec.Payload.Item
	if it == nil {
		return
	}
	switch it.Type {
	case "AgentMessage":
		for _, c := range it.Content {
			r.answered = r.answered || c.Text != ""
		}
		return
	case "CommandExecution", "FileChange", "McpToolCall":
	default:
		return
	}
	tool := r.calls[it.ID]
	message := ""
	if it.Error != nil {
		message = it.Error.Message
	}
	switch {
	case it.Type == "McpToolCall":
		tool = it.Server + "/" + it.Tool
	case tool == "" && it.Type == "CommandExecution": // called by a script
		tool = "exec_command"
	case tool == "":
		tool = it.Type
	}
	if reason, denied := denial(it.Status, it.Error != nil, message); denied {
		r.deny(it.ID, tool, reason)
	} else if it.ExitCode != nil && it.Type == "CommandExecution" {
		r.command(it.ID, tool, it.Printed, *it.ExitCode != 0)
	}
}

// deny notes a denial, once for each call.
func (r *rollout) deny(id, tool, reason string) {
	for _, d := range r.denials {
		if d.CallID == id {
			return
		}
	}
	if len(r.denials) == maxOpen {
		r.told = false
		return
	}
	r.denials = append(r.denials, event.Denial{CallID: id, Tool: tool, Reason: reason})
}

func (r *rollout) count(u *usage) {
	if u == nil {
		return
	}
	if r.usage == nil {
		r.usage = &usage{}
	}
	r.usage.Input += u.Input
	r.usage.Cached += u.Cached
	r.usage.Output += u.Output
	r.usage.Reasoning += u.Reasoning
}

func (r *rollout) evidence() agent.Evidence {
	e := agent.Evidence{Denials: r.denials, DenialsTold: r.told, Model: r.model, Usage: r.usage.event()}
	switch {
	case r.answered:
		e.Answered = agent.Yes
	case r.ended:
		e.Answered = agent.No
	}
	switch {
	case r.failure != nil:
		e.Fault = faultOf(r.failure.Message, r.failure.Info)
	case r.broken != "" && !r.worked:
		e.Fault = fault.New(fault.AgentRefused, "its sandbox cannot run a command here: %s", r.broken)
	}
	return e
}

// rejected says whether a tool's result is a refusal by Codex itself. The result of a tool that ran begins otherwise,
// whatever it printed: with "Chunk ID:", "Wall time:" or "Exit code:".
func rejected(text string, script bool) (reason string, denied bool) {
	if script { // of a script that failed, and which nothing else follows
		text = strings.TrimPrefix(text, "Script error:\n")
	}
	first, _, _ := strings.Cut(text, "\n")
	for _, begin := range []string{
		"approval policy is Never; reject command",
		"patch rejected: ",
	} {
		if strings.HasPrefix(text, begin) {
			return first, true
		}
	}
	if rest, ok := strings.CutPrefix(text, `exec_command failed: CreateProcess { message: "Rejected(\"`); ok &&
		!strings.HasPrefix(rest, `rejected by user\"`) {
		reason, _, _ = strings.Cut(rest, `\")" }`)
		return reason, true
	}
	return "", false
}

// stopped says whether the sandbox stopped a command: it failed inside one, and said so in the kernel's words about a
// file system that is read-only, which is how Codex's sandbox looks from within. Codex draws no such conclusion in its
// records, and a command that fails at once has an item of its own or not, as chance will have it; so both places are
// read.
func stopped(output string) bool {
	return regexp.MustCompile(
		`(?m): Read-only file system\r?$|\[Errno 30\] Read-only file system|\(os error 30\)|\bEROFS: `).MatchString(
		output)
}

const stoppedBy = "the sandbox: Read-only file system"

// unstarted says whether the sandbox itself failed, so that the command was never run: all that there is, is one line
// of the program that makes it. Codex takes that for the command's own failure, tells the model, and ends with exit
// code 0.
func unstarted(output string) bool {
	return regexp.MustCompile(`^bwrap: [^\n]+\n*$`).MatchString(strings.ReplaceAll(output, "\r", ""))
}

// ranCommand reads what a shell tool gave back: a head, and behind it what the command printed.
func ranCommand(text string) (output string, failed, ran bool) {
	head, output, ok := strings.Cut(text, "\nOutput:\n")
	if !ok || !strings.HasPrefix(head, "Chunk ID: ") {
		return "", false, false
	}
	code := regexp.MustCompile(`(?m)^Process exited with code (-?\d+)`).FindStringSubmatch(head)
	return output, code != nil && code[1] != "0", code != nil
}

// outputText is the text of a tool's result: a string, or a list of parts. script says that it is the error of a
// script.
func outputText(output json.RawMessage) (text string, script bool) {
	if json.Unmarshal(output, &text) == nil {
		return text, false
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(output, &parts) != nil || len(parts) == 0 {
		return "", false
	}
	last := parts[len(parts)-1].Text
	if strings.HasPrefix(parts[0].Text, "Script failed\n") && strings.HasPrefix(last, "Script error:\n") {
		return last, true
	}
	return parts[0].Text, false
}
