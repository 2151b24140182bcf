package acp

import (
	"context"
	"encoding/json"
	"strings"

	"omniagent/internal/kit/ident"
	wire "omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// Our own commands. A message with only such a command does not reach the agent.
const (
	undoCommand = "undo"
	redoCommand = "redo"
)

// offer tells the client the available commands.
func (s *clientSession) offer() {
	if s.host.Undo == nil {
		return
	}
	s.tell(wire.Update{Kind: wire.Commands, Commands: []wire.Command{
		{Name: undoCommand, About: "take back what the last turn of this session did to the workspace"},
		{Name: redoCommand, About: "take back the last undo"},
	}})
}

// command returns the command of ours that a message consists of.
func (s *clientSession) command(blocks []wire.Block) (name string, is bool) {
	if s.host.Undo == nil || len(blocks) != 1 || blocks[0].Media != "" {
		return "", false
	}
	name, is = strings.CutPrefix(strings.TrimSpace(blocks[0].Text), "/")
	return name, is && (name == undoCommand || name == redoCommand)
}

// carryOut carries out a command and answers its request. Later requests of the session wait for it.
func (s *clientSession) carryOut(id json.RawMessage, blocks []wire.Block, command string) {
	wrong := s.post(func() {
		said := "Nothing was taken back: the agent is at work. Send /" + command + " again when its turn is over."
		if !s.busy() { // new messages wait meanwhile
			var err error
			said, err = s.host.Undo(context.Background(), s.spec.Dir, s.id, command == redoCommand)
			if err != nil {
				said = "Nothing was taken back: " + err.Error()
			}
		}
		number := ident.Hex(4)
		if s.encoder.Version == wire.V2 {
			s.tell(wire.Update{Kind: wire.UserMessage, Message: "u" + number, Blocks: blocks})
			s.host.put(jsonrpc.Result(id, wire.Taken("u"+number)))
			s.state("running", "", nil)
		}
		s.tell(wire.Update{Kind: wire.Answer, Message: "a" + number, Text: said})
		if s.encoder.Version == wire.V2 {
			s.state("idle", "end_turn", nil)
			return
		}
		s.host.put(jsonrpc.Result(id, wire.Stopped("end_turn", nil)))
	})
	if wrong != nil {
		s.host.put(jsonrpc.Failure(id, wrong))
	}
}
