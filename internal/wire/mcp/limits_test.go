package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/wire/jsonrpc"
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
	one := &pendingCall{progress: make(chan string, 1)}
	params, err := json.Marshal(map[string]any{"progressToken": 1, "message": long})
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{pending: map[int64]*pendingCall{1: one}, life: t.Context(), busy: maxAnswers}
	c.notification(jsonrpc.Message{Method: "notifications/progress", Params: params})
	if said := <-one.progress; len(said) > maxProgress+10 {
		t.Errorf("progress of %d bytes", len(said))
	}
	c.options.Log = func(string) {}
	c.background(func(context.Context) { t.Error("one more answer waits") })
	c.group.Wait()
}

// TestLongHeaders: what a server says in front of an answer is not held in memory either.
func TestLongHeaders(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("X", strings.Repeat("x", 128<<10))
	}))
	defer s.Close()
	_, err := Open(t.Context(), Server{Name: "x", URL: s.URL}, Options{})
	if !errors.Is(err, fault.ServiceDown) || !strings.Contains(err.Error(), "headers exceeded") {
		t.Errorf("%v", err)
	}
}
