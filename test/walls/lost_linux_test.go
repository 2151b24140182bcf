package walls

import (
	"bytes"
	"strings"
	"testing"
)

// TestLostIsTold: sandbox run says which files end with it, and says nothing if there are none.
func TestLostIsTold(t *testing.T) {
	t.Parallel()
	for _, where := range []tier{namespaces(), landlock()} {
		for line, want := range map[string][]string{
			`cd "$TMPDIR" && echo 1 > report.md && mkdir -p d e && echo 2 > d/y`: {"/d/, ", "/report.md. Behind the walls"},
			`echo 1 > kept.md && mkdir "$TMPDIR/e"`:                              nil,
		} {
			g := newGround(t)
			cmd := g.command(where, "sandbox", "run", "--", "sh", "-c", line)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			told := strings.Contains(stderr.String(), "omniagent: not kept: ")
			for _, part := range want {
				told = told && strings.Contains(stderr.String(), part)
			}
			if err != nil || told != (want != nil) {
				t.Errorf("%s: %s: %v\n%s", where.name, line, err, stderr.String())
			}
		}
	}
}
