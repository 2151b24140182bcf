//go:build unix

package tool

import (
	"strings"
	"testing"
)

// TestBashRoute: output and exit code; what seed 2 blocks does not run.
func TestBashRoute(t *testing.T) {
	t.Parallel()
	d := withShell(t)
	bash := routeNamed("bash")
	for command, want := range map[string]string{
		"echo out; echo err 1>&2; exit 3": "out\n\nerr\n[exit code 3]", "echo out; echo err 1>&2": "out\n\nerr",
		"true":  "",
		"false": "[exit code 1]",
	} {
		if r := d.says(bash, object{"command": command}); r.Text != want || r.Exit == nil {
			t.Errorf("%s: %q", command, r.Text)
		}
	}
	d.fails(bash, object{"command": "touch ran; sudo ls"}, "Command blocked for safety")
	d.fails(bash, object{"command": "touch ran; rm -fr build"}, "Command blocked for safety")
	d.fails(bash, object{}, "Empty command rejected")
	d.fails(bash, object{"command": "echo begun; sleep 60", "timeoutMs": 1}, "Command timed out after 1s", "begun")
	if r := d.says(bash, object{"command": "mkdir sub && cd sub; pwd", "timeoutMs": 900000}); !strings.HasSuffix(r.Text,
		"sub") {
		t.Error(r.Text)
	}
}
