package parts

import (
	"bytes"
	"testing"

	"omniagent/internal/cli/contract"
)

// TestLines: a host is reported once, a line has no control characters, and it begins as told.
func TestLines(t *testing.T) {
	var b bytes.Buffer
	c := &contract.Call{Host: contract.Host{Stderr: &b, Lookup: func(string) (string, bool) { return "", false }}}
	tell := ReportRefusedHosts(c)
	for _, host := range []string{"a:443", "a:443", "b:443", "a:443"} {
		tell(host, "no\x1b[31m")
	}
	LineWriter(c, "hint: ")("do %s", "that\nnow")
	const start = "omniagent: the command was kept from "
	if got, want := b.String(), start+"a:443: no\n"+start+"b:443: no\nhint: do that now\n"; got != want {
		t.Errorf("%q", got)
	}
}
