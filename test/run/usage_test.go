//go:build unix

package run

import (
	"encoding/json"
	"strings"
	"testing"
)

type used struct {
	Agent, Model string
	Turns        int
	Input        *int64   `json:"input_tokens"`
	Output       *int64   `json:"output_tokens"`
	Cost         *float64 `json:"cost_usd"`
	UnknownTurns int      `json:"unknown_turns"`
}

// usage is what the program says was used, by agent, and the total.
func (p *place) usage(args ...string) (rows map[string]used, total used) {
	p.t.Helper()
	out, err := p.command(append([]string{"usage", "--json"}, args...)...).Output()
	var answer struct {
		Data struct {
			Usage []used
			Total used
		}
	}
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	if err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	rows = map[string]used{}
	for _, row := range answer.Data.Usage {
		rows[row.Agent] = row
	}
	return rows, answer.Data.Total
}

// TestUsage: what agents told is added up, turn by turn; what nobody told is unknown, and in no sum. A fork is not
// counted twice, and a run still counts when its conversation is gone.
func TestUsage(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("mute", `cat >/dev/null; echo "Done."`)
	p.model(`[{"say":"one"},{"say":"two"}]`)
	native := func() answer { return p.run("native", "--provider", "openai", "--model", "gpt-x") }
	first := native()
	first.is(t, 0, "succeeded", "done_unchanged")
	rows, _ := p.usage("--by", "agent")
	one := rows["native"]
	if one.Turns != 1 || one.Input == nil || *one.Input == 0 || *one.Output == 0 || one.UnknownTurns != 0 {
		t.Fatalf("%+v", rows)
	}
	p.run("mute", "--yolo").is(t, 0, "succeeded", "done_unchanged")
	rows, total := p.usage("--by", "agent")
	if mute := rows["mute"]; mute.Turns != 1 || mute.UnknownTurns != 1 || mute.Input != nil || mute.Cost != nil ||
		total.Turns != 2 || total.UnknownTurns != 1 || *total.Input != *one.Input {
		t.Errorf("%+v %+v", rows, total)
	}
	shown, err := p.command("usage", "--agent", "mute", "--output", "plain").CombinedOutput()
	if err != nil || strings.Count(string(shown), "unknown") < 3 {
		t.Errorf("a person sees %v %s", err, shown)
	}
	if rows, _ := p.usage("--agent", "native"); len(rows) != 1 || rows["native"].Model != "gpt-x" {
		t.Errorf("%+v", rows)
	}
	if out, err := p.command("session", "fork", first.Data.Session).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if rows, _ := p.usage("--by", "agent"); rows["native"].Turns != 1 || *rows["native"].Input != *one.Input {
		t.Errorf("with a fork: %+v", rows)
	}
	out, err := p.command("session", "delete", first.Data.Session, "--confirm-destructive").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if rows, _ := p.usage("--by", "agent"); rows["native"].Turns != 1 || *rows["native"].Input != *one.Input {
		t.Errorf("without its conversation: %+v", rows)
	}
	if rows, total := p.usage("--since", "2099-01-01T00:00:00Z"); len(rows) != 0 || total.Turns != 0 {
		t.Errorf("in the future: %+v %+v", rows, total)
	}
}

// TestUsageOfWhatNeverRan checks that a run whose agent got no message counts as no turn.
func TestUsageOfWhatNeverRan(t *testing.T) {
	t.Parallel()
	p := newPlace(t).configured("")
	p.run("native").is(t, 8, "failed", "not_logged_in")
	if rows, total := p.usage(); total.Turns != 0 {
		t.Errorf("%+v", rows)
	}
}
