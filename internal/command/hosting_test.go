package command

import (
	"bytes"
	"testing"

	"omniagent/internal/contract"
)

// TestTold: what programs try again is said once for each host, and a hint looks as everywhere.
func TestTold(t *testing.T) {
	var b bytes.Buffer
	c := &contract.Call{Host: contract.Host{Stderr: &b}}
	tell := firstOf(func(host, why string) { logLine(c, "kept from %s: %s", host, why) })
	for _, host := range []string{"a:443", "a:443", "b:443", "a:443"} {
		tell(host, "no")
	}
	logLine(c, "hint: %s", "do that")
	if got, want := b.String(), "omniagent: kept from a:443: no\nomniagent: kept from b:443: no\nhint: do that\n"; got != want {
		t.Errorf("%q", got)
	}
}
