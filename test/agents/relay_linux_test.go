package agents

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agent/claude"
	"omniagent/internal/relay"
)

// TestClaudeRelayed: the CLI's own lines go to the host as they are, and the exit code says how it went.
func TestClaudeRelayed(t *testing.T) {
	needAgents(t)
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
				_, _ = say.Write(append([]byte("garbage\n"), relay.Message("go")...))
				if !tt.asks {
					_ = say.Close()
				}
			}()
			code, err := relay.Relay{Launch: launch, Name: "claude", In: in, Out: host, Grace: 5 * time.Second, Log: t.Logf}.Run(t.Context())
			if err != nil || code != tt.code || b.took("made") != tt.asks {
				t.Errorf("%d, %v: %s", code, err, host.seen.String())
			}
			for line := range strings.Lines(host.seen.String()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("a line that is none: %q", line)
				}
			}
		})
	}
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
				_, _ = io.WriteString(a.say, `{"type":"control_response","response":{"subtype":"success","request_id":"`+l.ID+
					`","response":{"behavior":"allow","updatedInput":`+string(l.Request.Input)+"}}}\n")
			}()
		case "result":
			go func() { _ = a.say.Close() }()
		}
	}
	return len(p), nil
}
