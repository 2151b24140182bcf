package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

// inHost is a server in a host: it answers as one does, but for what a test has it do otherwise.
type inHost struct {
	mu    sync.Mutex
	heard []string
	odd   func(ctx context.Context, method string, id json.RawMessage) (answer []byte, err error, ok bool)
}

func (h *inHost) carry(ctx context.Context, server string, m []byte) ([]byte, error) {
	var q struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(m, &q); err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.heard = append(h.heard, server+" "+q.Method)
	h.mu.Unlock()
	if h.odd != nil {
		if answer, err, ok := h.odd(ctx, q.Method, q.ID); ok {
			return answer, err
		}
	}
	result := "{}"
	switch q.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"in the host","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"add","description":"adds","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":"3"}]}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result), nil
}

// TestServerInTheHost: its tools are there, in the order of the protocol, and can be called.
func TestServerInTheHost(t *testing.T) {
	h := &inHost{}
	c, err := Open(t.Context(), Server{Name: "calc", Hosted: true}, Options{Carry: h.carry})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if tools := c.Tools(); len(tools) != 1 || tools[0].Name != "add" {
		t.Errorf("%+v", tools)
	}
	got, err := c.Call(t.Context(), "add", json.RawMessage(`{"a":1}`), nil)
	if err != nil || got.Text != "3" {
		t.Errorf("%+v, %v", got, err)
	}
	if said := strings.Join(h.heard,
		", "); said != "calc initialize, calc notifications/initialized, calc tools/list, calc tools/call" {
		t.Error(said)
	}
	c.Close()
	if _, err := c.Call(t.Context(), "add", nil, nil); !errors.Is(err, fault.Interrupted) {
		t.Error(err)
	}
}

// TestBadHosts: whatever a host does with a call, the call ends with words for it, and so does the connection.
func TestBadHosts(t *testing.T) {
	forever := make(chan struct{})
	defer close(forever)
	for name, tt := range map[string]struct {
		odd  func(context.Context, json.RawMessage) ([]byte, error)
		want string
	}{
		"error":   {func(context.Context, json.RawMessage) ([]byte, error) { return nil, errors.New("gone") }, "gone"},
		"panic":   {func(context.Context, json.RawMessage) ([]byte, error) { panic("oh") }, "panicked: oh"},
		"nothing": {func(context.Context, json.RawMessage) ([]byte, error) { return nil, nil }, "no response"},
		"garbage": {
			func(context.Context, json.RawMessage) ([]byte, error) { return []byte("\x00{"), nil },
			"no matching response",
		},
		"other": {func(context.Context, json.RawMessage) ([]byte, error) {
			return []byte(`{"jsonrpc":"2.0","id":999,"result":{}}`), nil
		}, "no matching response"},
		"huge": {func(_ context.Context, id json.RawMessage) ([]byte, error) {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"x":"%s"}}`, id,
				strings.Repeat("x", maxMessage)), nil
		}, "more than"},
		"slow": {
			func(ctx context.Context, _ json.RawMessage) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
			"within 50ms",
		},
		"stuck": {func(context.Context, json.RawMessage) ([]byte, error) { <-forever; return nil, nil }, "within 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &inHost{odd: func(ctx context.Context, method string, id json.RawMessage) ([]byte, error, bool) {
				if method != "tools/call" {
					return nil, nil, false
				}
				answer, err := tt.odd(ctx, id)
				return answer, err, true
			}}
			c, err := Open(t.Context(), Server{Name: "calc", Hosted: true, Call: 50 * time.Millisecond},
				Options{Carry: h.carry, Rest: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if name != "slow" && name != "stuck" {
				c.server.Call = 20 * time.Second
			}
			if _, err := c.Call(t.Context(), "add", nil, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Error(err)
			}
			c.Close()
		})
	}
	if _, err := Open(t.Context(), Server{Name: "calc", Hosted: true}, Options{}); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}

// TestParseHosted: in either form; what lives in the host only where a host names it.
func TestParseHosted(t *testing.T) {
	for _, text := range []string{
		`{"a":{"type":"sdk","name":"a"},"b":{"command":"b","args":["${X:-y}"]},"c":{"type":"http","url":"http://127.0.0.1/"},"d":{"type":"sse","url":"http://127.0.0.1/"}}`,
		`{"mcpServers":{"a":{"type":"sdk","name":"a"},"b":{"command":"b","args":["${X:-y}"]},"c":{"type":"http","url":"http://127.0.0.1/"},"d":{"type":"sse","url":"http://127.0.0.1/"}}}`,
	} {
		servers, problems, err := ParseHosted([]byte(text), nil)
		if err != nil || len(servers) != 3 || !servers[0].Hosted || servers[1].Command[1] != "y" ||
			servers[2].URL == "" {
			t.Fatalf("%+v, %v", servers, err)
		}
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), "sse") {
			t.Errorf("%v", problems)
		}
	}
	for _, text := range []string{``, `[]`, `{"mcpServers":[]}`, `nonsense`} {
		if _, _, err := ParseHosted([]byte(text), nil); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	servers, problems, err := parseServers([]byte(`{"mcpServers":{"a":{"type":"sdk","name":"a"}}}`), nil)
	if err != nil || len(servers) != 0 || len(problems) != 1 {
		t.Errorf("a file names a server in a host: %v, %v, %v", servers, problems, err)
	}
}
