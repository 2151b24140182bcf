package modelserver

import (
	"slices"
	"strings"
	"testing"
)

// TestScriptText: the description has every member of a step and of a script.
func TestScriptText(t *testing.T) {
	for _, name := range slices.Concat(actions(), modifiers(), []string{"steps", "toolless", "slow"}) {
		if !strings.Contains(ScriptText, `"`+name+`"`) {
			t.Errorf("it lacks %q", name)
		}
	}
}
