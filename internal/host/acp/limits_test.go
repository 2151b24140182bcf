package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/lines"
	wire "omniagent/internal/wire/acp"
)

// TestManyRequests: of a client that asks for more than can be done at once, and never waits, the rest is refused.
func TestManyRequests(t *testing.T) {
	var out bytes.Buffer
	h := &Host{out: lines.NewWriter(&out), requests: map[string]context.CancelFunc{}}
	for i := range mostAside {
		h.requests[fmt.Sprint(i)] = func() {}
	}
	h.aside(t.Context(), json.RawMessage("1000"), func(context.Context) (any, error) {
		t.Error("one more is done")
		return nil, nil
	})
	h.beginning.Wait()
	h.out.Finish()
	if <-h.out.Written(); !strings.Contains(out.String(), "too many requests at once") {
		t.Errorf("%s", out.String())
	}
	s := newSession(h, "x", nil, agent.Spec{}, wire.Encoder{}, false) // nobody takes its requests
	for i := range mostRequests + 1 {
		if refused := s.post(func() {}); (refused != nil) != (i == mostRequests) {
			t.Fatalf("request %d: %v", i, refused)
		}
	}
}

// TestLittleIsShown: of a long output both ends, and of a large file no changes.
func TestLittleIsShown(t *testing.T) {
	got := clipped("begin" + strings.Repeat("x", 2*longestOutput) + "end")
	if len(got) > longestOutput+100 || !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") {
		t.Errorf("%d bytes of output", len(got))
	}
	n := newNarrator("m", t.TempDir(), nil)
	input, err := json.Marshal(map[string]string{"content": strings.Repeat("x", longestShown+1)})
	if err != nil {
		t.Fatal(err)
	}
	if all := n.preview(&event.Call{Kind: event.Write, Path: "a", Input: input}); all != nil {
		t.Errorf("%d bytes of a file", len(all[0].Diff.New))
	}
}
