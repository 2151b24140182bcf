package undo_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/touch"
)

// TestWhatTwoTurnsSayIsKept: nothing sees the writes, and the calls of two agents that work at the same time say that
// they changed a file. The turn of one that worked for the other is in both.
func TestWhatTwoTurnsSayIsKept(t *testing.T) {
	t.Parallel()
	for name, under := range map[string]bool{"beside": false, "for the other": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
			path := filepath.Join(root, "f")
			sh(t, root, `echo one > f`)
			one := touch.New()
			two := touch.New()
			if under {
				two = touch.Under(one)
			}
			one.Unseen(touch.ReasonUnwatched)
			two.Unseen(touch.ReasonUnwatched)
			seen := []*touch.Window{one.Open(), two.Open()}
			first, began := begin(t, s, root), time.Now()
			second := begin(t, s, root)
			sh(t, root, `echo two > f`)
			for i, log := range []*touch.Log{one, two} {
				if i == 1 || !under {
					log.Claim(touch.Claim{Path: path, Whole: true, Began: began, Ended: time.Now()})
				}
			}
			second.Watch(seen[1])
			end(t, second)
			first.Watch(seen[0])
			id := end(t, first).ID
			kept := back(t, s, undo.Request{Dir: root, ID: id}).NotRestored
			if under && len(kept) > 0 || !under && (len(kept) != 1 || !strings.HasSuffix(kept[0].Reason, second.ID())) {
				t.Errorf("%+v", kept)
			}
			same(t, "the file", map[bool]string{true: "one\n", false: "two\n"}[under], sh(t, root, `cat f`))
		})
	}
}
