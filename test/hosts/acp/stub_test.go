package acp

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// stub is Claude Code as far as these tests need it: this test binary under that name. What it does with a message, the
// message says.
type stub struct {
	session string
	started bool
	last    string            // text
	asked   []string          // requests without an answer, in order
	answers map[string]string // what was answered, by request
}

// What the test binary is called then, and when it is Gemini CLI.
const (
	stubName    = "claude"
	perTurnName = "gemini"
)

func isStub() bool {
	name := filepath.Base(os.Args[0])
	return name == stubName || name == perTurnName
}

// runPerTurn is Gemini CLI as far as these tests need it: one message, which it repeats, with its arguments.
func runPerTurn() {
	message, _ := io.ReadAll(os.Stdin)
	session := ""
	for _, arg := range os.Args {
		if name, id, _ := strings.Cut(arg, "="); name == "--session-id" || name == "--resume" {
			session = id
		}
	}
	for _, line := range []object{
		{"type": "init", "session_id": session, "model": "stub-model"},
		{"type": "message", "role": "assistant", "content": "You said " + string(message) + " " +
			strings.Join(os.Args[1:], " ")},
		{"type": "result", "status": "success"},
	} {
		data, _ := json.Marshal(line)
		_, _ = os.Stdout.Write(append(data, '\n'))
	}
}

func runStub() {
	if filepath.Base(os.Args[0]) == perTurnName {
		runPerTurn()
		return
	}
	s := &stub{session: "its-own-id", answers: map[string]string{}}
	if slices.Contains(os.Args, "--fork-session") {
		s.session = "its-copy"
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		var l struct {
			Type    string
			ID      string `json:"request_id"`
			Request struct{ Subtype, Model string }
			Message struct{ Content []struct{ Text string } }
			Answer  struct {
				ID   string `json:"request_id"`
				Said struct {
					Behavior string
					Input    json.RawMessage `json:"updatedInput"`
				} `json:"response"`
			} `json:"response"`
		}
		if json.Unmarshal(line, &l) == nil {
			switch l.Type {
			case "control_request":
				response := object{"subtype": "success", "request_id": l.ID, "response": object{}}
				if l.Request.Model == "refused" {
					response = object{"subtype": "error", "request_id": l.ID, "error": "no such model"}
				}
				s.say(object{"type": "control_response", "response": response})
				if l.Request.Subtype == "interrupt" {
					s.result("error_during_execution", "aborted")
				}
			case "control_response":
				s.answered(l.Answer.ID, l.Answer.Said.Behavior+string(l.Answer.Said.Input))
			case "user":
				s.take(l.Message.Content[0].Text)
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *stub) say(m object) {
	m["session_id"] = s.session
	data, _ := json.Marshal(m)
	_, _ = os.Stdout.Write(append(data, '\n'))
}

func (s *stub) text(words string) {
	s.last = words
	s.say(object{"type": "assistant", "message": object{
		"id": "m", "role": "assistant",
		"content": []object{{"type": "text", "text": words}},
	}})
}

func (s *stub) piece(words string) {
	s.say(object{"type": "stream_event", "event": object{
		"type":  "content_block_delta",
		"delta": object{"type": "text_delta", "text": words},
	}})
}

func (s *stub) result(subtype, words string) {
	s.say(object{
		"type": "result", "subtype": subtype, "is_error": subtype != "success", "result": words,
		"num_turns": 1,
	})
}

func (s *stub) ask(id, tool string, input any) {
	s.asked = append(s.asked, id)
	s.say(object{"type": "control_request", "request_id": id, "request": object{
		"subtype": "can_use_tool", "tool_name": tool, "tool_use_id": "call-" + id, "input": input,
	}})
}

// answered ends the turn when nothing is asked any more.
func (s *stub) answered(id, answer string) {
	s.answers[id] = answer
	var all []string
	for _, id := range s.asked {
		if s.answers[id] == "" {
			return
		}
		all = append(all, id+"="+s.answers[id])
	}
	s.text(strings.Join(all, " "))
	s.result("success", s.last)
	s.asked, s.answers = nil, map[string]string{}
}

// take does what a message says.
func (s *stub) take(message string) {
	if !s.started {
		s.started = true
		s.say(object{
			"type": "system", "subtype": "init", "model": "stub-model", "tools": []string{},
			"claude_code_version": "2.0.0", "permissionMode": "default",
		})
	}
	word, rest, _ := strings.Cut(message, " ")
	switch word {
	case "args":
		s.text(strings.Join(os.Args[1:], " "))
	case "pieces":
		for _, piece := range strings.SplitAfter(rest, " ") {
			s.piece(piece)
		}
		s.text(rest)
	case "tool":
		s.say(object{
			"type": "assistant",
			"message": object{
				"id": "m",
				"content": []object{{
					"type": "tool_use", "id": "c1", "name": "Bash",
					"input": object{"command": "ls"},
				}},
			},
		})
		s.say(object{
			"type":    "user",
			"message": object{"content": []object{{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}}},
		})
		s.text("Bye.")
	case "form":
		s.ask("q", "AskUserQuestion", object{"questions": json.RawMessage(rest)})
		return
	case "permit":
		for _, id := range strings.Fields(rest) {
			s.ask(id, "Bash", object{"command": "echo " + id})
		}
		return
	case "withdraw":
		s.ask("w", "Bash", object{"command": "ls"})
		s.say(object{"type": "control_cancel_request", "request_id": "w"})
		s.asked = nil
		s.text("Never mind.")
	case "wait":
		s.text("I")
		return
	case "die":
		s.text("I")
		os.Exit(3)
	case "woken":
		s.text("first")
		s.result("success", s.last)
		s.text("a task has ended")
	default:
		s.text("You said " + message)
	}
	s.result("success", s.last)
}

// installed is a place in which the stub is the agent that is talked with.
func installed(t *testing.T) place {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("an agent of a test needs a name without an ending")
	}
	p := newPlace(t, `[]`)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{stubName, perTurnName} {
		if os.Link(self, filepath.Join(dir, name)) == nil {
			continue
		}
		data, err := os.ReadFile(self)
		if err == nil {
			err = hermetic.WriteProgram(filepath.Join(dir, name), data, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range p.env {
		if strings.HasPrefix(v, "PATH=") {
			p.env[i] = "PATH=" + dir + string(os.PathListSeparator) + v[len("PATH="):]
		}
	}
	p.args = []string{"acp", "--agent", stubName, "--model", "one,two,refused"}
	return p
}
