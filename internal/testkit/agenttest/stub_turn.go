//go:build unix

package agenttest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// perTurn is an agent that is started for each turn. It speaks like Gemini CLI.
type perTurn struct {
	printer
	signals chan os.Signal
	session string
	resumed bool
	open    strings.Builder // the text in pieces
}

func newPerTurn() *perTurn {
	p := &perTurn{
		printer: printer{bufio.NewWriter(os.Stdout)}, signals: make(chan os.Signal, 1), session: flag("--session-id"),
	}
	if id := flag("--resume"); id != "" {
		p.session, p.resumed = id, true
	}
	signal.Notify(p.signals, syscall.SIGINT, syscall.SIGTERM)
	return p
}

// exitInterrupted is the exit code of an agent that was interrupted.
const exitInterrupted = 130

// run runs one turn.
func (p *perTurn) run() int {
	message, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	p.line(map[string]any{"type": "init", "session_id": p.session, "model": "stub-1"})
	p.line(map[string]any{"type": "message", "role": "user", "content": string(message)})
	switch why := perform(p, string(message)); why {
	case "":
		spent := map[string]any{"input_tokens": 10, "output_tokens": 5}
		p.line(map[string]any{"type": "result", "status": "success", "stats": spent})
		return 0
	case interrupted:
		return exitInterrupted
	default:
		p.line(map[string]any{
			"type": "result", "status": "error",
			"error": map[string]any{"type": "Error", "message": why},
		})
		return 1
	}
}

func (p *perTurn) piece(text string) {
	p.open.WriteString(text)
	p.line(map[string]any{"type": "message", "role": "assistant", "content": text, "delta": true})
}

// whole repeats the text, as some agents do.
func (p *perTurn) whole() {
	if p.open.Len() < 1<<20 {
		p.line(map[string]any{"type": "message", "role": "assistant", "content": p.open.String()})
	}
	p.open.Reset()
}

func (p *perTurn) call(id, name string, input map[string]any) {
	p.line(map[string]any{"type": "tool_use", "tool_name": name, "tool_id": id, "parameters": input})
}

func (p *perTurn) result(id, text string, failed bool) {
	status := "success"
	if failed {
		status = "error"
	}
	p.line(map[string]any{"type": "tool_result", "tool_id": id, "status": status, "output": text})
}

func (p *perTurn) wait(done func() bool) bool {
	for !done() {
		select {
		case <-p.signals:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// may answers by the mode: nobody can be asked in a run of its own.
func (p *perTurn) may(string, string, string) []string {
	if mode := flag("--approval-mode"); mode == "yolo" || mode == "auto_edit" {
		return []string{"allow"}
	}
	return []string{"deny"}
}

func (p *perTurn) where() string {
	return fmt.Sprintf("mode=%s session=%s resumed=%v pid=%d", flag("--approval-mode"), p.session, p.resumed,
		os.Getpid())
}

func (p *perTurn) special(s step) (known, goesOn bool) {
	switch s.verb {
	case "work":
		id := "work"
		p.piece("working")
		p.call(id, "run_shell_command", map[string]any{"command": "sleep 1000"})
		p.wait(func() bool { return false })
		p.result(id, "interrupted", true)
		return true, false
	case "deaf":
		p.piece("working")
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
		forEver()
	}
	return false, false
}
