package command

import (
	"testing"

	"omniagent/internal/contract"
)

// TestSettingsOpenNothing: what a flag has closed, settings that a host hands over do not open; else their list counts.
func TestSettingsOpenNothing(t *testing.T) {
	for flag, want := range map[string]string{"off": "off", "": "a.example"} {
		var p plan
		p.spec.Terms.Network = flag
		if err := p.settings(&contract.Call{}, "--settings", []byte(`{"sandbox":{"enabled":true,"network":{"allowedDomains":["a.example"]}}}`), false); err != nil || p.spec.Terms.Network != want {
			t.Errorf("--network %q: %q, %v", flag, p.spec.Terms.Network, err)
		}
	}
}
