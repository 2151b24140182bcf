package launch

import (
	"os"
	"path/filepath"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/policy"
)

// laterOf returns the function that says which files of a directory run later by themselves. It returns nil in a run,
// which reports them with its changes.
func (p *Plan) laterOf() func(dir string) autorun.Policy {
	if p.env.Run != "" {
		return nil
	}
	return func(dir string) autorun.Policy {
		return policy.Later(dir, p.env.Native.Walls.Agents, p.env.Home, p.env.Lookup).Once()
	}
}

// sayLater logs the changed files of a turn that run later by themselves. Names are relative to top, the directory of
// the snapshots, or absolute.
func (w *witness) sayLater(limits autorun.Policy, top string, changed []string) {
	var later []string
	for _, name := range changed {
		path := pathname.From(top, filepath.FromSlash(name))
		if info, err := os.Lstat(path); err == nil && !info.IsDir() && limits.Why(path, true) != "" {
			later = append(later, name)
		}
	}
	if len(later) > 0 {
		w.log("%s", autorun.Sentence(later))
	}
}
