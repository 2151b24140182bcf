//go:build unix

package walk

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/touch"
)

// snapshots is where the states of workspaces are kept.
func (b *box) snapshots() string { return filepath.Join(b.home, ".local/state/omniagent/undo") }

// triedWalls is where a conversation records that its walls held.
func (b *box) triedWalls() string { return filepath.Join(b.home, ".local/state/omniagent/agent-walls") }

// destroy leaves what the commands need that are about snapshots: a turn in which an agent changed the project, under
// the id that the examples name, and for redo its undo.
func (b *box) destroy(t *testing.T, about ...*command) {
	t.Helper()
	if len(about) == 0 || !slices.Contains([]string{"undo", "redo", "snapshots.list", "snapshots.delete"},
		about[0].key) {
		return
	}
	store := undo.Store{Dir: b.snapshots(), Home: b.home}
	b.write(t, "project/lock.txt", "one\n")
	turn, err := store.Begin(t.Context(), undo.Origin{
		Dir: b.project, Session: "sess-1a2b3c4d", Turn: 1, Agent: "codex", Run: "run-1a2b3c4d",
	})
	must(t, err)
	turn.Watch(touch.Only(func(string) bool { return true }))
	b.write(t, "project/lock.txt", "two\n")
	record, err := turn.End(t.Context(), time.Now())
	must(t, err)
	if about[0].key == "redo" {
		_, err := store.Undo(t.Context(), undo.Request{Dir: b.project})
		must(t, err)
		return
	}
	const named = "6nk2b0p5"
	at, err := filepath.Glob(filepath.Join(b.snapshots(), "*", "turns", record.ID))
	must(t, err)
	if len(at) != 1 {
		t.Fatalf("the turn is in %v", at)
	}
	file := filepath.Join(at[0], "record.json")
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), record.ID, named, 1)), 0o600))
	must(t, os.Rename(at[0], filepath.Join(filepath.Dir(at[0]), named)))
}
