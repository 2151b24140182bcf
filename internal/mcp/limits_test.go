package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"omniagent/internal/proto/jsonrpc"
)

// TestWhatAServerSaysIsShort: each description, message and image is a part of a conversation with a model, and the
// answers to a server that reads nothing are held in memory.
func TestWhatAServerSaysIsShort(t *testing.T) {
	long := strings.Repeat("x", 4*maxDescribe)
	raw, err := json.Marshal(map[string]string{"name": "a", "description": long})
	if err != nil {
		t.Fatal(err)
	}
	if tool, why := readTool(raw); why != "" || len(tool.Description) > maxDescribe+100 {
		t.Errorf("a description of %d bytes: %s", len(tool.Description), why)
	}
	var r Result
	for range 2 * maxImages {
		r.image("image/png", "AAAA", "an image")
	}
	if len(r.Images) != maxImages {
		t.Errorf("%d images", len(r.Images))
	}
	one := &call{progress: make(chan string, 1)}
	params, err := json.Marshal(map[string]any{"progressToken": 1, "message": long})
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{pending: map[int64]*call{1: one}, stop: make(chan struct{}), busy: maxAnswers}
	c.notification(jsonrpc.Message{Method: "notifications/progress", Params: params})
	if said := <-one.progress; len(said) > maxProgress+10 {
		t.Errorf("progress of %d bytes", len(said))
	}
	c.options.Log = func(string) {}
	c.background(func(context.Context) { t.Error("one more answer waits") })
	c.group.Wait()
}
