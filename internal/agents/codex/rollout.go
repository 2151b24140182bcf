package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/text"
)

const (
	maxRead = 16 << 20 // bytes of a transcript; if it is longer, only its last maxTail bytes are read
	maxTail = 4 << 20
	maxLine = 4 << 20 // a longer line is ignored
	maxOpen = 4096    // calls without a result, and denials
)

// readRollout collects the evidence in a transcript from an offset on.
func readRollout(path string, from int64) agent.Evidence {
	r := rollout{calls: map[string]string{}, complete: true}
	if size := cli.Size(path); size-from > maxRead {
		from, r.complete = size-maxTail, false
	}
	if !cli.EachLine(path, from, maxLine, func(l lines.Line) bool {
		if l.Long {
			r.complete = false
		} else if !l.Torn {
			r.line(l.Text)
		}
		return true
	}) {
		return agent.Evidence{}
	}
	return r.evidence()
}

// rollout collects the evidence in a transcript.
type rollout struct {
	calls     map[string]string // the tools of calls without a result
	denials   []event.Denial
	complete  bool // no denial is missing
	sandboxed bool
	answered  bool
	worked    bool   // the sandbox started a command
	broken    string // the sandbox's message when it could not
	ended     bool
	failure   *failure
	model     string
	usage     *event.Usage
	done      cli.Calls
}

type failure struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codex_error_info"`
}

// transcriptLine is one line of a transcript.
type transcriptLine struct {
	Type    string `json:"type"`
	Time    string `json:"timestamp"`
	Payload struct {
		Type    string          `json:"type"`
		Name    string          `json:"name"`
		Input   string          `json:"input"`
		Args    string          `json:"arguments"`
		CallID  string          `json:"call_id"`
		Output  json.RawMessage `json:"output"`
		Model   string          `json:"model"`
		Usage   *usage          `json:"usage"`
		Error   *failure        `json:"error"`
		Last    string          `json:"last_agent_message"`
		Sandbox *struct {
			Type string `json:"type"`
		} `json:"sandbox_policy"`
		Item json.RawMessage `json:"item"`
	} `json:"payload"`
}

func (r *rollout) line(data []byte) {
	if !wanted(data) {
		return
	}
	var rec transcriptLine
	if json.Unmarshal(data, &rec) != nil {
		r.complete = false
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
		r.item(p.Item)
	case "response_item/function_call", "response_item/custom_tool_call":
		r.answered = true
		if p.Type == "custom_tool_call" && p.Name == "exec" {
			r.complete = false // a script by the model, which may hide refusals
		}
		if len(r.calls) == maxOpen {
			r.complete = false // the result of this one will not be understood
			return
		}
		r.calls[p.CallID] = p.Name
		r.done.Begin(recordedCall(p.CallID, p.Name, p.Args, p.Input), cli.Time(rec.Time))
	case "response_item/function_call_output", "response_item/custom_tool_call_output":
		r.done.End(p.CallID, cli.Time(rec.Time), r.failedShell(p.CallID, p.Output))
		r.result(p.CallID, p.Output)
	}
}

// recordedCall returns a recorded call of a tool that may change files, which has arguments or a text as its input. It
// returns nil for other tools.
func recordedCall(id, name, args, input string) *event.Call {
	call := &event.Call{ID: id, Name: name, Kind: event.Shell, Input: json.RawMessage(args)}
	switch name {
	case "exec_command":
		call.Command = event.Texts(call.Input, "cmd")["cmd"]
	case "shell_command":
		call.Command = event.Texts(call.Input, "command")["command"]
	case "apply_patch":
		call.Kind = event.Write
		if input != "" {
			call.Input, _ = text.JSON(map[string]string{"input": input}) // strings always encode
		}
	default:
		return nil
	}
	return call
}

// result reads the result of a tool.
func (r *rollout) result(id string, output json.RawMessage) {
	tool, known := r.calls[id]
	if !known {
		return
	}
	delete(r.calls, id)
	text, script := outputText(output)
	if strings.HasPrefix(text, "exec_command failed: CreateProcess {") {
		r.done.Drop(id) // it was rejected, or did not start
	}
	if reason, denied := rejected(text, script); denied {
		r.done.Drop(id)
		r.deny(id, tool, reason)
	} else if printed, failed, ran := ranCommand(text); ran && tool == "exec_command" {
		r.command(id, tool, printed, failed)
	}
}

// command reads the output of a command that was run.
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

// wanted reports whether a line may have evidence, judging by its beginning. Most lines have none, and are long.
func wanted(data []byte) bool {
	head := data[:min(len(data), 256)]
	return slices.ContainsFunc([]string{
		`"event_msg"`, `"turn_context"`, `"token_usage_record"`, `"function_call"`, `"custom_tool_call"`,
		`"function_call_output"`, `"custom_tool_call_output"`,
	}, func(word string) bool { return bytes.Contains(head, []byte(word)) })
}

func (r *rollout) item(raw json.RawMessage) {
	it, ok := readItem(raw)
	if !ok {
		r.complete = r.complete && raw == nil
		return
	}
	kind := it.kind()
	tool := r.calls[it.ID]
	switch {
	case kind == messageItem:
		var parts []struct{ Text string }
		_ = json.Unmarshal(it.Content, &parts)
		r.answered = r.answered ||
			slices.ContainsFunc(parts, func(p struct{ Text string }) bool { return p.Text != "" })
		return
	case kind == mcpItem:
		tool = it.Server + "/" + it.Tool
	case kind == commandItem:
		tool = cmp.Or(tool, "exec_command") // otherwise a script called it
	case kind == changeItem:
		tool = cmp.Or(tool, it.Type)
	default:
		return
	}
	if reason, denied := it.denial(); denied {
		r.deny(it.ID, tool, reason)
	} else if it.ExitCode != nil && kind == commandItem {
		r.command(it.ID, tool, it.Output, *it.ExitCode != 0)
	}
}

// deny records a denial, once for each call.
func (r *rollout) deny(id, tool, reason string) {
	if slices.ContainsFunc(r.denials, func(d event.Denial) bool { return d.CallID == id }) {
		return
	}
	if len(r.denials) == maxOpen {
		r.complete = false
		return
	}
	r.denials = append(r.denials, event.Denial{CallID: id, Tool: tool, Reason: reason})
}

func (r *rollout) count(u *usage) {
	if u == nil {
		return
	}
	r.usage = cmp.Or(r.usage, &event.Usage{})
	r.usage.Add(*u.event())
}

func (r *rollout) evidence() agent.Evidence {
	e := agent.Evidence{
		Denials: r.denials, DenialsKnown: r.complete, Model: r.model, Usage: r.usage, Calls: r.done.Done(),
	}
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

// rejected reports whether a tool's result is a refusal by Codex itself. The output of a tool cannot imitate one: its
// result always begins with "Chunk ID:", "Wall time:" or "Exit code:".
func rejected(text string, script bool) (reason string, denied bool) {
	if script {
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

// stopped reports whether the sandbox stopped a command. Codex does not record that. Inside its sandbox the file system
// is read-only, so the kernel's message about that is the sign. A command that fails at once may or may not have its
// own item, so the results of calls are read too.
func stopped(output string) bool {
	return regexp.MustCompile(
		`(?m): Read-only file system\r?$|\[Errno 30\] Read-only file system|\(os error 30\)|\bEROFS: `).MatchString(
		output)
}

const stoppedBy = "the sandbox: Read-only file system"

// unstarted reports whether the sandbox itself failed, and the command never ran: the output is a single line by the
// program that creates the sandbox. Codex treats that as a failed command, and exits with 0.
func unstarted(output string) bool {
	return regexp.MustCompile(`^bwrap: [^\n]+\n*$`).MatchString(strings.ReplaceAll(output, "\r", ""))
}

// ranCommand splits the result of a shell tool into its head and the output of the command.
func ranCommand(text string) (output string, failed, ran bool) {
	head, output, ok := strings.Cut(text, "\nOutput:\n")
	if !ok || !strings.HasPrefix(head, "Chunk ID: ") {
		return "", false, false
	}
	code := regexp.MustCompile(`(?m)^Process exited with code (-?\d+)`).FindStringSubmatch(head)
	return output, code != nil && code[1] != "0", code != nil
}

// failedShell reports whether the result of a shell tool does not say that its command succeeded.
func (r *rollout) failedShell(id string, output json.RawMessage) bool {
	switch r.calls[id] {
	case "exec_command", "shell_command":
	default:
		return false
	}
	text, _ := outputText(output)
	head, _, _ := strings.Cut(text, "\nOutput:\n")
	return !regexp.MustCompile(`(?m)^(Process exited with code|Exit code:) 0$`).MatchString(head)
}

// outputText returns the text of a tool's result: a string, or a list of parts. script reports whether it is the error
// of a script.
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
