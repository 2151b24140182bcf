package fork

import (
	"context"
	"path/filepath"

	"omniagent/internal/sys/workspace"
)

// undone reports whether a turn was undone, so that its changes are gone.
func (f *Fork) undone(turn string) bool {
	if turn == "" || f.store.Undone == nil {
		return false
	}
	if _, decided := f.turns[turn]; !decided {
		if f.turns == nil {
			f.turns = map[string]bool{}
		}
		undone, known := f.store.Undone(f.Workspace, turn)
		f.turns[turn] = undone || !known && !f.stands(turn)
	}
	return f.turns[turn]
}

// stands reports whether the workspace still has something that a turn applied. The record that says whether the turn
// was undone may have been deleted.
func (f *Fork) stands(turn string) bool {
	root, err := f.openRoot()
	if err != nil {
		return false
	}
	defer root.Close()
	var applied map[string][]appliedFileState
	_ = workspace.ReadJSON(filepath.Join(f.dir, appliedFile), filesLimit, &applied)
	here, gone, alike := 0, 0, 0 // files as applied, as they were before, and as applied without a known before
	for name, states := range applied {
		for i, s := range states {
			if s.Turn != turn || s.Dir {
				continue
			}
			m, err := mine(root, name)
			switch {
			case err != nil:
			case s.describes(m) && i > 0:
				here++
			case s.describes(m):
				alike++
			case i > 0 && states[i-1].describes(m):
				gone++
			}
		}
	}
	for i, h := range f.Heads {
		if h.Turn != turn {
			continue
		}
		if is, err := f.home().Head(); err == nil && is == h.Head {
			here++
		} else if err == nil && i > 0 && is == f.Heads[i-1].Head {
			gone++
		} else if _, err := f.git(context.Background(), "merge-base", "--is-ancestor", h.Commit, "HEAD"); err == nil {
			here++
		}
	}
	return here > 0 || gone == 0 && alike > 0
}

// describes reports whether a file has the state.
func (s appliedFileState) describes(m *side) bool {
	switch {
	case s.Gone || m == nil:
		return s.Gone && m == nil
	case s.Dir || m.isDir():
		return s.Dir && m.isDir()
	case s.Target != "" || m.isLink():
		return s.Target == m.target
	case !m.isFile() || s.Size != m.status.Size || s.Perm != m.status.Mode.Perm():
		return false
	}
	sum, err := m.digest()
	return err == nil && sum == s.Sum
}
