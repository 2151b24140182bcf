package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/sys/process"
)

// everything is the directory that the protocol's own test server was installed into:
//
//	npm install --prefix DIR @modelcontextprotocol/server-everything@2026.8.31
const everything = "OMNIAGENT_MCP_EVERYTHING"

// TestRealServer talks to the server that the protocol's authors test clients with.
func TestRealServer(t *testing.T) {
	dir := os.Getenv(everything)
	if dir == "" {
		t.Skip(everything + " does not say where the real server is installed")
	}
	var log logged
	s := Server{
		Name:    "everything",
		Command: []string{filepath.Join(dir, "node_modules", ".bin", "mcp-server-everything")},
	}
	c := open(t, s, Options{
		Programs: process.Programs{Env: os.Environ()}, Log: log.add, Roots: []string{dir}, Rest: 5 * time.Second,
	})
	var names []string
	for _, tool := range c.Tools() {
		names = append(names, tool.Name)
	}
	t.Logf("version %s, tools %v, told %q", c.Protocol, names, log.all)
	if got := callText(t, c, "echo", `{"message":"hello"}`); got != "Echo: hello" {
		t.Errorf("got %q", got)
	}
	r, err := c.Call(t.Context(), "get-tiny-image", nil, nil)
	if err != nil || len(r.Images) != 1 || r.Images[0].Media != "image/png" {
		t.Errorf("an image: %d, %v", len(r.Images), err)
	}
	var progress []string
	long := json.RawMessage(`{"duration":1,"steps":4}`)
	if _, err := c.Call(t.Context(), "trigger-long-running-operation", long,
		func(s string) { progress = append(progress, s) }); err != nil || len(progress) < 3 {
		t.Errorf("progress %q, %v", progress, err)
	}
	r, err = c.Call(t.Context(), "get-structured-content", json.RawMessage(`{"location":"New York"}`), nil)
	if err != nil || len(r.Structured) == 0 || !strings.Contains(r.Text, "temperature") {
		t.Errorf("structured: %+v, %v", r, err)
	}
	if _, err := c.Call(t.Context(), "no-such-tool", nil, nil); err == nil {
		t.Log("an unknown tool is a result")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "trigger-long-running-operation", json.RawMessage(`{"duration":60,"steps":2}`),
		nil); err == nil {
		t.Error("it was not given up")
	}
	within(t, 20*time.Second, "Close", c.Close)
}
