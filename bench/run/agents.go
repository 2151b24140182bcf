package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

const (
	printed = 100_000   // events
	lasting = "lasting" // the file in the workspace as long as which is there the agent goes on
)

// printer is an agent that prints events, at once or slowly.
func printer() int {
	if slices.Contains(os.Args, "--version") {
		fmt.Println("0.61.0")
		return 0
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	fmt.Fprintln(out, `{"type":"init","session_id":"s","model":"m"}`)
	fmt.Fprintln(out, `{"type":"message","role":"user","content":"x"}`)
	_, err := os.Stat(lasting)
	for i := 0; i < printed || err == nil; i++ {
		fmt.Fprintf(out, `{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","role":"assistant",`+
			`"content":"word %d ","delta":true}`+"\n", i)
		if err == nil {
			_ = out.Flush()
			time.Sleep(50 * time.Millisecond) // the pace of a model
			_, err = os.Stat(lasting)
		}
	}
	fmt.Fprintln(out, `{"type":"result","status":"success","stats":{"input_tokens":5,"output_tokens":5}}`)
	return 0
}

// speaker is an agent of the Agent Client Protocol that says one word.
func speaker() int {
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		type object = map[string]any
		result := object{}
		switch m.Method {
		case "initialize":
			result = object{"protocolVersion": 1, "agentCapabilities": object{}, "authMethods": []any{}}
		case "session/new":
			result = object{"sessionId": "s"}
		case "session/prompt":
			_ = out.Encode(object{"jsonrpc": "2.0", "method": "session/update", "params": object{
				"sessionId": "s", "update": object{
					"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": "done"},
				},
			}})
			result = object{"stopReason": "end_turn"}
		}
		if err := out.Encode(object{"jsonrpc": "2.0", "id": m.ID, "result": result}); err != nil {
			return 1
		}
	}
	if err := in.Err(); err != nil && err != io.EOF {
		return 1
	}
	return 0
}
