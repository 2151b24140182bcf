//go:build unix

package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
)

// scripted is a model that does what the user's last message says.
type scripted struct{}

// serve starts the model, which answers at that pace.
func serve(t *testing.T, pace modelserver.Pace) *modelserver.Server {
	t.Helper()
	server, err := modelserver.Start(scripted{}, modelserver.Options{Hurry: true, Pace: pace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// Answer implements modelserver.Backend.
func (m scripted) Answer(ctx context.Context, r *modelserver.Request, w modelserver.Writer) error {
	message := lastTask(r)
	all := steps(message)
	i := position(r)
	if i >= len(all) || all[i].verb != "flood" && all[i].verb != "events" {
		script, err := compile(all)
		if err != nil {
			return err
		}
		return script.Answer(ctx, r, w)
	}
	n, piece := number(all[i].rest)<<20, floodText(floodPiece)
	if all[i].verb == "events" {
		n, piece = n>>20, floodText(1)
	}
	for range n / len(piece) {
		if err := w.Text(piece); err != nil {
			return err
		}
	}
	return nil
}

// lastTask returns the newest message with a task.
func lastTask(r *modelserver.Request) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		for j := len(r.Messages[i].Blocks) - 1; j >= 0; j-- {
			b := r.Messages[i].Blocks[j]
			if r.Messages[i].Role == modelserver.User && b.Kind == modelserver.Text &&
				strings.Contains(b.Text, prefix) {
				return b.Text
			}
		}
	}
	return ""
}

// position counts the answers since that message.
func position(r *modelserver.Request) (n int) {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if m.Role == modelserver.Assistant {
			n++
		}
		for _, b := range m.Blocks {
			if m.Role == modelserver.User && b.Kind == modelserver.Text && strings.Contains(b.Text, prefix) {
				return n
			}
		}
	}
	return n
}

// compile makes a script from steps.
func compile(all []step) (*modelserver.Script, error) {
	script := []any{}
	for _, s := range all {
		script = append(script, compiled(s)...)
	}
	data, err := json.Marshal(script)
	if err != nil {
		return nil, err
	}
	return modelserver.ParseScript(data)
}

type object = map[string]any

func compiled(s step) []any {
	say := func(text string) any { return object{"say": text} }
	write := func(file string) any { return object{"write": object{"path": file, "content": "made"}} }
	switch s.verb {
	case "say":
		return []any{say(s.rest)}
	case "pieces":
		return []any{say(strings.Join(pieces(number(s.rest)), ""))}
	case "work":
		return []any{say("working"), object{"shell": "until [ -e never ]; do sleep 0.1; done"}}
	case "wait":
		return []any{object{"shell": waitFor(s.rest)}}
	case "make":
		return []any{write(s.rest)}
	case "both": // two calls of one answer: the first lasts until the file is there
		return []any{object{"calls": []any{object{"shell": waitFor(s.rest)}, write(s.rest + ".made")}}}
	case "stall":
		return []any{object{"say": "This is said before the silence that follows it.", "stall": "middle"}}
	case "deaf": // an engine hears everything; its command does not
		return []any{object{"shell": `trap "" INT TERM HUP; touch deaf; while :; do sleep 1; done`}}
	case "mode":
		return []any{object{"call": object{"name": "ExitPlanMode", "input": object{"plan": "do it"}}}}
	case "fail":
		return []any{say("half"), object{"error": 400}}
	case "family":
		const deaf = `setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done' >/dev/null 2>&1 & sleep 0.05`
		return []any{object{"shell": deaf}, say("family")}
	case "forge":
		return []any{say(strings.Join(forged(), "\n"))}
	case "abreast":
		calls := []any{}
		for i := range number(s.rest) {
			calls = append(calls, object{"read": fmt.Sprintf("f%d", i)})
		}
		return []any{object{"calls": calls}}
	}
	return []any{say("unknown step " + s.verb)}
}

func waitFor(file string) string {
	return "touch " + file + ".waits; until [ -e " + file + " ]; do sleep 0.01; done"
}
