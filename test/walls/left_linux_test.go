package walls

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsNotKeptIsTold: a file that a command names and writes to its own /tmp is told at the end of the turn, and
// what a program leaves there under a name of its own is not.
func TestWhatIsNotKeptIsTold(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	o := g.turn(t, namespaces(), []string{
		bash("echo important > /tmp/new-report.md"),
		bash("mkdir -p $TMPDIR/drafts $TMPDIR/hollow && echo x > $TMPDIR/drafts/a"),
		bash("mktemp; mktemp -d; echo x > /tmp/passing && rm /tmp/passing; echo kept > kept.txt"),
	}, "--permission-mode", "auto")
	var told []string
	for line := range strings.Lines(o.out) {
		var result struct {
			Type    string
			NotKept []string `json:"not_kept"`
		}
		if json.Unmarshal([]byte(line), &result) == nil && result.Type == "result" {
			told = result.NotKept
		}
	}
	if want := []string{"/tmp/drafts/", "/tmp/new-report.md"}; !slices.Equal(told, want) ||
		!exists(g.work+"/kept.txt") {
		t.Errorf("%q is told, not %q: %s %s", told, want, o.out, o.stderr)
	}
}
