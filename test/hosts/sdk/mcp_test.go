package sdk

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// serveMCP is an MCP server with one tool.
func serveMCP() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tide","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"level","description":"The level of the tide","inputSchema":{"type":"object","properties":{}}}]}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":"low tide"}]}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}
