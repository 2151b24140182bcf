package claim

import (
	"os"
	"testing"

	"omniagent/internal/sys/workspace"
)

// moment is a workspace of which the statuses alone are known.
type moment map[string]workspace.Status

func (m moment) Status(path string) workspace.Status { return m[path] }

func (m moment) Content(string) ([]byte, bool) { return nil, false }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
