package opening

import (
	"strings"
	"testing"

	"omniagent/internal/fault"
)

func TestBehindWalls(t *testing.T) {
	for step, want := range map[string]string{
		"log in": "log in. A login in a keyring", "Log in.": "Log in. A login in a keyring", "": "A login in a keyring",
	} {
		if got := behindWalls(fault.Fault{Suggestion: step}); !strings.HasPrefix(got, want) {
			t.Errorf("%q", got)
		}
	}
	if got := behindWalls(fault.Fault{FixCommand: "x login"}); !strings.HasPrefix(got, "x login. A login in a") {
		t.Errorf("the command is not the first step: %q", got)
	}
}
