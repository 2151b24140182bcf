package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/relay"
	"omniagent/internal/core/event"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
)

// TestClaudeRelayed: the CLI's own lines go to the host as they are, and the exit code says how it went.
func TestClaudeRelayed(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		asks         bool
		code         int
	}{
		{"answers", `[{"say":"hello"}]`, false, 0},
		{"denied", python, false, 3},
		{"asks", python, true, 0},
		{"fails", `[{"error":400}]`, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "claude")
			spec := b.wanted(claude.New(), scripted(t, tt.script))
			launch, err := claude.New().(relay.Speaker).Relayed(spec, relay.Wishes{CanAsk: tt.asks})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range launch.Files {
				b.put(f.Path, string(f.Data))
			}
			in, say := io.Pipe()
			host := &answering{say: say}
			go func() {
				_, _ = say.Write(append([]byte("garbage\n"), `{"type":"user","message":{"role":"user","content":"go"},"session_id":""}`+"\n"...))
				if !tt.asks {
					_ = say.Close()
				}
			}()
			journal, err := session.Open(t.TempDir()).Unlinked(session.Begin{ID: "s", Agent: "claude"})
			if err != nil {
				t.Fatal(err)
			}
			record := stream.Record(conversation.Record(journal, t.Errorf), claude.New().Decode(setting.StreamJSON))
			code, err := relay.Relay{
				Launch: launch, Name: "claude", In: in, Out: host, Grace: 5 * time.Second, Log: t.Logf, Record: record,
			}.Run(t.Context())
			kinds := recorded(t, journal, record)
			if kinds[event.Prompted] != 1 || kinds[event.Ended] != 1 ||
				kinds[event.ToolCall] != kinds[event.ToolResult] || (kinds[event.Question] == 1) != tt.asks ||
				kinds[event.Question] != kinds[event.Replied] {
				t.Errorf("on record are %v", kinds)
			}
			if err != nil || code != tt.code || b.took("made") != tt.asks {
				t.Errorf("%d, %v: %s", code, err, host.seen.String())
			}
			for line := range strings.Lines(host.seen.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("not a line of the protocol: %q", line)
				}
			}
		})
	}
}

// TestClaudeRehearsedForItsHosts: where a host of Claude Code rehearses, the model that its variables name is not
// asked.
func TestClaudeRehearsedForItsHosts(t *testing.T) {
	needAgents(t)
	t.Parallel()
	frame := []string{`{"type":"user","message":{"role":"user","content":"go"},"session_id":""}`}
	for name, frames := range map[string][]string{"a prompt": nil, "frames": frame} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "claude")
			h := b.hears("claude", `[{"say":"the model of the variables"}]`, frames, "--rehearse")
			if h.code != 0 || h.asked != "" || h.result["result"] != "ok" || h.result["total_cost_usd"] != 0.0 {
				t.Errorf("asked %q: %v", h.asked, h)
			}
		})
	}
}

// recorded counts what is on record, by kinds.
func recorded(t *testing.T, journal *session.Session, record *stream.Recording) map[event.Kind]int {
	t.Helper()
	told, kinds := journal.Reader(1), map[event.Kind]int{}
	all := make(chan struct{})
	go func() {
		defer close(all)
		for {
			entry, err := told.Next(context.Background())
			if err != nil {
				return
			}
			if e := entry.Event(); e != nil {
				kinds[e.Kind]++
			}
		}
	}()
	if err := record.Close(); err != nil {
		t.Error(err)
	}
	<-all
	return kinds
}

// answering is a host that agrees to everything.
type answering struct {
	say  *io.PipeWriter
	seen bytes.Buffer
}

func (a *answering) Write(p []byte) (int, error) {
	a.seen.Write(p)
	for line := range bytes.Lines(p) {
		var l struct {
			Type    string `json:"type"`
			ID      string `json:"request_id"`
			Request struct {
				Input json.RawMessage `json:"input"`
			} `json:"request"`
		}
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		switch l.Type {
		case "control_request":
			go func() {
				_, _ = io.WriteString(a.say,
					`{"type":"control_response","response":{"subtype":"success","request_id":"`+l.ID+
						`","response":{"behavior":"allow","updatedInput":`+string(l.Request.Input)+"}}}\n")
			}()
		case "result":
			go func() { _ = a.say.Close() }()
		}
	}
	return len(p), nil
}
