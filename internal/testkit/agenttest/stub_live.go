//go:build unix

package agenttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// frame is a line that a live agent reads, in the words of the wire that it speaks.
type frame struct {
	Type    string `json:"type"`
	UUID    string `json:"uuid"`
	ID      string `json:"request_id"`
	Message struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"message"`
	Request struct {
		Subtype string         `json:"subtype"`
		Mode    string         `json:"mode"`
		Model   string         `json:"model"`
		Hooks   map[string]any `json:"hooks"`
		Message string         `json:"message_uuid"`
	} `json:"request"`
	Response struct {
		Subtype string `json:"subtype"`
		ID      string `json:"request_id"`
		Content struct {
			Behavior string `json:"behavior"`
			Hook     struct {
				Decision string `json:"permissionDecision"`
			} `json:"hookSpecificOutput"`
		} `json:"response"`
	} `json:"response"`
}

func (f frame) text() string {
	var b strings.Builder
	for _, c := range f.Message.Content {
		b.WriteString(c.Text)
		if c.Type != "text" {
			fmt.Fprintf(&b, "[%s]", c.Type)
		}
	}
	return b.String()
}

// live is an agent that stays for many turns. It speaks Claude Code's side of the wire.
type live struct {
	printer
	in      chan frame
	queue   []frame
	answers map[string]string // of requests, by id
	steered func(frame) bool  // takes what is said while the turn runs

	session, mode, model string
	hooking              bool
	stops                bool // the turn is interrupted
	deaf, ended          bool
	sent                 int
	open                 strings.Builder // the text in pieces
}

func newLive() *live {
	l := &live{in: make(chan frame), answers: map[string]string{}, printer: printer{bufio.NewWriter(os.Stdout)}}
	l.session, l.mode, l.model = flag("--session-id"), flag("--permission-mode"), flag("--model")
	if id := flag("--resume"); id != "" {
		l.session = id
	}
	if l.mode == "" && slices.Contains(os.Args, "--dangerously-skip-permissions") {
		l.mode = "bypassPermissions"
	}
	if l.model == "" {
		l.model = "stub-1"
	}
	go l.read()
	return l
}

func (l *live) read() {
	defer close(l.in)
	lines := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var f frame
		if json.Unmarshal(line, &f) == nil {
			l.in <- f
		}
	}
}

// run runs the agent until its input ends.
func (l *live) run() int {
	for {
		if len(l.queue) > 0 {
			f := l.queue[0]
			l.queue = l.queue[1:]
			l.turn(f)
			continue
		}
		f, more := <-l.in
		if !more {
			return 0
		}
		l.take(f)
	}
}

// take handles a line.
func (l *live) take(f frame) {
	switch f.Type {
	case "user":
		if l.steered == nil || !l.steered(f) {
			l.lifecycle(f.UUID, "queued")
			l.queue = append(l.queue, f)
		}
	case "control_response":
		word := f.Response.Content.Behavior
		if word == "" {
			word = f.Response.Content.Hook.Decision
		}
		if f.Response.Subtype != "success" {
			word = "error"
		}
		l.answers[f.Response.ID] = word
	case "control_request":
		if l.deaf {
			return
		}
		l.request(f)
	}
}

func (l *live) request(f frame) {
	switch f.Request.Subtype {
	case "initialize":
		l.hooking = len(f.Request.Hooks) > 0
	case "interrupt":
		l.stops = true
	case "set_permission_mode":
		l.mode = f.Request.Mode
	case "set_model":
		l.model = f.Request.Model
	case "cancel_async_message":
		l.queue = slices.DeleteFunc(l.queue, func(q frame) bool {
			if q.UUID == f.Request.Message {
				l.lifecycle(q.UUID, "cancelled")
			}
			return q.UUID == f.Request.Message
		})
	}
	l.line(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": f.ID, "response": map[string]any{},
	}})
}

func (l *live) lifecycle(id, state string) {
	l.line(map[string]any{"type": "command_lifecycle", "command_uuid": id, "state": state, "session_id": l.session})
}

func (l *live) system(subtype string, more ...any) {
	line := map[string]any{"type": "system", "subtype": subtype, "session_id": l.session, "permissionMode": l.mode}
	for i := 0; i+1 < len(more); i += 2 {
		line[more[i].(string)] = more[i+1]
	}
	l.line(line)
}

func (l *live) init() {
	cwd, _ := os.Getwd()
	l.system("init", "model", l.model, "cwd", cwd, "claude_code_version", "0.0.0-stub", "tools",
		[]string{"Bash", "Write"})
}

// turn answers a message.
func (l *live) turn(f frame) {
	l.stops, l.deaf = false, false
	l.lifecycle(f.UUID, "started")
	l.init()
	l.ended = false
	if why := perform(l, f.text()); !l.ended {
		l.end(why)
	}
}

// end ends a turn; why is "" if it succeeded.
func (l *live) end(why string) {
	line := map[string]any{
		"type": "result", "subtype": "success", "is_error": why != "", "session_id": l.session, "num_turns": 1,
		"total_cost_usd": 0.01, "usage": map[string]any{"input_tokens": 10, "output_tokens": 5},
	}
	switch why {
	case "":
	case interrupted:
		line["subtype"], line["terminal_reason"] = "error_during_execution", "aborted_streaming"
	default:
		line["subtype"], line["errors"] = "error_during_execution", []string{why}
	}
	l.line(line)
}

func (l *live) stream(e map[string]any) {
	l.line(map[string]any{"type": "stream_event", "event": e, "session_id": l.session, "parent_tool_use_id": nil})
}

func (l *live) piece(text string) {
	if l.open.Len() == 0 {
		l.sent++
		begun := map[string]any{"id": fmt.Sprint("m", l.sent), "model": l.model}
		l.stream(map[string]any{"type": "message_start", "message": begun})
		l.stream(map[string]any{
			"type": "content_block_start", "index": 0,
			"content_block": map[string]any{"type": "text"},
		})
	}
	l.open.WriteString(text)
	l.stream(map[string]any{"type": "content_block_delta", "delta": map[string]any{"type": "text_delta", "text": text}})
	if l.open.Len() > 1<<20 { // as an agent does whose model may say so much and no more
		l.whole()
	}
}

func (l *live) whole() {
	if l.open.Len() == 0 {
		return
	}
	l.message("", map[string]any{"type": "text", "text": l.open.String()})
	l.open.Reset()
	l.stream(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": "end_turn"}})
}

func (l *live) message(parent string, block map[string]any) {
	line := map[string]any{"type": "assistant", "session_id": l.session, "message": map[string]any{
		"id": fmt.Sprint("m", l.sent), "role": "assistant", "model": l.model, "content": []any{block},
	}}
	if parent != "" {
		line["parent_tool_use_id"] = parent
	}
	l.line(line)
}

func (l *live) call(id, name string, input map[string]any) {
	l.message("", map[string]any{"type": "tool_use", "id": id, "name": name, "input": input})
}

func (l *live) result(id, text string, failed bool) { l.resultOf("", id, text, failed) }

func (l *live) resultOf(parent, id, text string, failed bool) {
	said := map[string]any{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}
	message := map[string]any{"role": "user", "content": []any{said}}
	line := map[string]any{"type": "user", "session_id": l.session, "message": message}
	if parent != "" {
		line["parent_tool_use_id"] = parent
	}
	l.line(line)
}

func (l *live) wait(done func() bool) bool {
	for !done() {
		if l.stops {
			return false
		}
		select {
		case f, more := <-l.in:
			if !more {
				os.Exit(0)
			}
			l.take(f)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

func (l *live) where() string {
	return fmt.Sprintf("mode=%s model=%s session=%s pid=%d", l.mode, l.model, l.session, os.Getpid())
}
