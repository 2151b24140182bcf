package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native"
)

// inHost is a server in a host, of one tool.
func inHost(_ context.Context, server string, message []byte) ([]byte, error) {
	var q struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	_ = json.Unmarshal(message, &q)
	result := "{}"
	switch q.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"the sum of ` + server +
			`"},{"type":"image","mimeType":"image/png","data":"UE5H"}]}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result), nil
}

// TestServersOfTheHost: servers inside and outside of the host, with those of the user's file or alone; their state is
// reported, and rules apply to their tools.
func TestServersOfTheHost(t *testing.T) {
	d := newDesk(t, `[{"call":{"name":"mcp__calc__add","input":{}}},{"say":"ok"}]`)
	file := filepath.Join(d.home, "mcp.json")
	_ = os.WriteFile(file,
		[]byte(`{"mcpServers":{"own":{"command":"no-such-program"},"calc":{"command":"no-such-program"}}}`), 0o600)
	for _, tt := range []struct {
		only    bool
		terms   agent.Terms
		servers string
		tool    bool
		failed  bool
	}{
		{
			false,
			agent.Terms{Allow: []string{"mcp__calc"}},
			"[{own failed} {calc connected} {gone failed}]", true,
			false,
		},
		{true, agent.Terms{Allow: []string{"mcp__calc__add"}}, "[{calc connected} {gone failed}]", true, false},
		{
			true,
			agent.Terms{Allow: []string{"mcp__calc"}, Tools: []string{}},
			"[{calc connected} {gone failed}]", true,
			false,
		},
		{true, agent.Terms{}, "[{calc connected} {gone failed}]", true, true},
		{true, agent.Terms{Deny: []string{"mcp__calc"}}, "[{calc connected} {gone failed}]", false, true},
		{true, agent.Terms{Deny: []string{"mcp__calc__add"}}, "[{calc connected} {gone failed}]", false, true},
	} {
		c := d.open(t, func(o *native.Options) {
			o.Terms, o.Servers = tt.terms, file
			o.Terms.OnlyThese, o.Terms.Servers = tt.only,
				[]byte(`{"calc":{"type":"sdk","name":"calc"},"gone":{"type":"stdio","command":"no-such-program"}}`)
			o.Services.Serve = inHost
		})
		f := c.Facts()
		if got := fmt.Sprint(f.Servers); got != tt.servers || slices.Contains(f.Tools, "mcp__calc__add") != tt.tool {
			t.Errorf("%+v: %s, %v", tt.terms, got, f.Tools)
		}
		got := results(say(t, c, "go"))
		if strings.Contains(got, "the sum of calc") == tt.failed {
			t.Errorf("%+v: %s", tt.terms, got)
		}
		if all := d.server.Requests(); !tt.failed && !strings.Contains(string(all[len(all)-1].Raw), "UE5H") {
			t.Error("the picture is not there")
		}
	}
}

// TestCloseIsNotHeldUp by a host that never answers.
func TestCloseIsNotHeldUp(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	closeHeldUp(t, t.Context())
	closeHeldUp(t, over)
}

func closeHeldUp(t *testing.T, ctx context.Context) {
	t.Helper()
	d := newDesk(t, `[{"call":{"name":"mcp__calc__add","input":{}}},{"say":"ok"}]`)
	called, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	c := d.open(t, func(o *native.Options) {
		o.Mode, o.Terms.Servers = setting.Yolo, []byte(`{"mcpServers":{"calc":{"type":"sdk"}}}`)
		o.Services.Serve = func(ctx context.Context, server string, message []byte) ([]byte, error) {
			if strings.Contains(string(message), "tools/call") {
				close(called)
				<-over
			}
			return inHost(ctx, server, message)
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- c.Turn(t.Context(), []event.Block{{Text: "go"}}) }()
	<-called
	if _, err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
