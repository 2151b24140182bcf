package opening

import (
	"strings"
	"testing"
)

func TestBehindWalls(t *testing.T) {
	for step, want := range map[string]string{
		"log in": "log in. A login in a keyring", "Log in.": "Log in. A login in a keyring", "": "A login in a keyring",
	} {
		if got := behindWalls(step); !strings.HasPrefix(got, want) {
			t.Errorf("%q", got)
		}
	}
}
