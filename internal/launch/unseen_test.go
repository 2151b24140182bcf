package launch

import (
	"testing"
	"time"

	"omniagent/internal/repo/undo"
)

// TestTurnsWithoutALog: a turn has its snapshots where nothing gets what the agent writes.
func TestTurnsWithoutALog(t *testing.T) {
	t.Parallel()
	w := &witness{
		store: undo.Store{Dir: t.TempDir()}, origin: undo.Origin{Dir: t.TempDir(), Agent: "a"}, log: t.Logf,
	}
	turn := w.Begin(1)
	turn.Ready()
	if roots := turn.Cover().Roots; len(roots) != 1 {
		t.Errorf("the snapshot covers %v", roots)
	}
	turn.End(time.Now())
}
