//go:build unix

package agenttest

import (
	"fmt"
	"os"
	"strings"
)

// request asks the host something and returns the id.
func (l *live) ask(tool, call, parent string) string {
	l.sent++
	id := fmt.Sprintf("ask-%d-%d", os.Getpid(), l.sent)
	request := map[string]any{
		"subtype": "can_use_tool", "tool_name": tool, "tool_use_id": call, "input": map[string]any{"file_path": call},
	}
	if l.hooking && parent == "" { // the hook decides where the mode is kept by the host
		request = map[string]any{
			"subtype": "hook_callback", "callback_id": "PreToolUse", "tool_use_id": call,
			"input": map[string]any{
				"hook_event_name": "PreToolUse", "tool_name": tool, "tool_use_id": call, "tool_input": map[string]any{},
			},
		}
	}
	l.line(map[string]any{"type": "control_request", "request_id": id, "request": request})
	return id
}

func (l *live) takeBack(id string) {
	l.line(map[string]any{"type": "control_cancel_request", "request_id": id})
}

// may asks if the mode requires it. No answer means that the turn was interrupted.
func (l *live) may(id, name, parent string) []string {
	if l.mode == "bypassPermissions" || l.mode == "acceptEdits" {
		return []string{"allow"}
	}
	if l.mode == "plan" {
		return []string{"deny"}
	}
	request := l.ask(name, id, parent)
	if !l.wait(func() bool { return l.answers[request] != "" }) {
		l.takeBack(request)
		l.result(id, "interrupted", true)
		return nil
	}
	word := l.answers[request]
	if l.hooking && word == "ask" { // the hook leaves it to a person
		l.hooking = false
		defer func() { l.hooking = true }()
		return l.may(id, name, parent)
	}
	return []string{word}
}

// special does what only a live agent can do.
func (l *live) special(s step) (known, goesOn bool) {
	switch s.verb {
	case "work", "busy":
		return true, l.work(s.verb == "work")
	case "asks":
		return true, l.asks(number(s.rest))
	case "takeback":
		id := fmt.Sprintf("taken-%d", l.sent)
		l.call(id, "Write", map[string]any{"file_path": "f"})
		request := l.ask("Write", id, "")
		l.takeBack(request)
		l.result(id, "not needed any more", true)
	case "mode":
		l.mode = s.rest
		l.system("status", "status", nil)
	case "wake":
		l.end("")
		l.init()
		l.piece("woken")
		l.whole()
		l.line(map[string]any{
			"type": "result", "subtype": "success", "is_error": false, "session_id": l.session,
			"result": "woken", "num_turns": 1,
			"origin": map[string]any{"kind": "task-notification"},
		})
		l.ended = true
		return true, false
	case "deaf":
		l.piece("working")
		l.whole()
		l.deaf = true
		l.wait(func() bool { return false })
	default:
		return false, false
	}
	return true, true
}

// work calls a tool that ends when somebody steers the agent with "over", or interrupts it.
func (l *live) work(hears bool) bool {
	id := fmt.Sprintf("work-%d", l.sent)
	l.piece("working")
	l.whole()
	l.call(id, "Bash", map[string]any{"command": "sleep 1000"})
	over := false
	l.steered = func(f frame) bool {
		if !hears {
			l.lifecycle(f.UUID, "refused")
			return true
		}
		l.lifecycle(f.UUID, "queued")
		l.lifecycle(f.UUID, "started")
		said := steps(f.text())[0].rest
		over = over || said == "over"
		l.piece("steered " + said)
		l.whole()
		return true
	}
	defer func() { l.steered = nil }()
	if !l.wait(func() bool { return over }) {
		l.result(id, "interrupted", true)
		return false
	}
	l.result(id, "over", false)
	return true
}

// asks makes several sub-agents ask at once.
func (l *live) asks(n int) bool {
	var requests, helpers []string
	for i := range n {
		helper := fmt.Sprintf("helper-%d-%d", l.sent, i)
		l.call(helper, "Agent", map[string]any{"prompt": "ask"})
		helpers = append(helpers, helper)
	}
	for _, helper := range helpers {
		l.message(helper, map[string]any{
			"type": "tool_use", "id": helper + "-call", "name": "Write", "input": map[string]any{"file_path": helper},
		})
		requests = append(requests, l.ask("Write", helper+"-call", helper))
	}
	told := map[string]bool{}
	for len(told) < n {
		whole := l.wait(func() bool {
			for _, r := range requests {
				if l.answers[r] != "" && !told[r] {
					return true
				}
			}
			return false
		})
		if !whole {
			return false
		}
		for i, r := range requests {
			if word := l.answers[r]; word != "" && !told[r] {
				told[r] = true
				l.resultOf(helpers[i], helpers[i]+"-call", "answered "+word, !strings.HasPrefix(word, "allow"))
				l.result(helpers[i], "answered "+word, false)
			}
		}
	}
	return true
}
