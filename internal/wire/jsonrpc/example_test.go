package jsonrpc_test

import (
	"encoding/json"
	"fmt"

	"omniagent/internal/wire/jsonrpc"
)

func ExampleRequest() {
	fmt.Printf("%s", jsonrpc.Request(1, "session/prompt", map[string]any{"text": "go"}))
	fmt.Printf("%s", jsonrpc.Result(json.RawMessage("1"), map[string]any{"stopReason": "end_turn"}))
	// Output:
	// {"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"text":"go"}}
	// {"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}
}
