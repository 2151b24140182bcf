package custom_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// TestACP: one entry is enough for an agent that speaks ACP, and its terms are kept or refused.
func TestACP(t *testing.T) {
	d := made(t, `{"targets":[{"id":"mine","cli":{"modes":{"acp":{"command":"/bin/mine","args":["serve"]}}}}]}`)
	mind := func(by string, mode setting.Approval) fault.Code {
		s := agent.Spec{
			Install: agent.Install{Path: "/bin/mine"}, Dir: t.TempDir(), Temp: t.TempDir(),
			Terms: agent.Terms{Transport: by, Mode: mode},
		}
		m, err := d.Mind(context.Background(), s, agent.Services{})
		if err == nil {
			if _, err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
			return ""
		}
		return fault.Of(err).Code
	}
	if d.Describe().Binary != "/bin/mine" {
		t.Errorf("%+v", d.Describe())
	}
	for _, by := range []string{"", agent.ByACP, agent.ByChoice} {
		for _, mode := range setting.Approvals() {
			want := fault.Code("")
			if mode == setting.DenyAll || mode == setting.AskAll {
				want = "UNSUPPORTED"
			}
			if got := mind(by, mode); got != want {
				t.Errorf("%q %s: %s", by, mode, got)
			}
		}
	}
	if got := mind(agent.ByStream, setting.Prompt); got == "" {
		t.Error("it has no stream")
	}
	both := parse(t, of(`{"type":"stdin"}`, "")).Targets[0].CLI
	if both.ACP.Command != "" || both.OneShot.Command == "" {
		t.Errorf("%+v", both)
	}
}

// TestACPIsNamedInFull: what is missing, and what does not belong there.
func TestACPIsNamedInFull(t *testing.T) {
	for _, modes := range []string{
		`{"acp":{"args":["serve"]}}`, `{"acp":{"command":"mine","args":"serve"}}`,
		`{"oneShot":{"command":"mine"}}`,
	} {
		_, err := agentsfile.Parse("/x/omniagent.config.json",
			[]byte(`{"targets":[{"id":"mine","cli":{"modes":`+modes+`}}]}`))
		var f *fault.Fault
		if !errors.As(err, &f) || len(f.Problems) == 0 || !slices.Contains([]fault.Code{"CONFIG_INVALID"}, f.Code) {
			t.Errorf("%s: %v", modes, err)
		}
	}
}
