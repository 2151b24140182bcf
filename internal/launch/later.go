package launch

import (
	"os"
	"path/filepath"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/policy"
)

// laterOf returns the function that tells which files of a directory run later by themselves, or nil in a run, which
// says it with all that it has changed.
func (p *Plan) laterOf() func(dir string) autorun.Policy {
	if p.env.Run != "" {
		return nil
	}
	return func(dir string) autorun.Policy {
		return policy.Later(dir, p.env.Own.Known, p.env.Home, p.env.Lookup).Once()
	}
}

// sayLater prints one line that names the changed files of a turn that are run later by themselves. Names are relative
// to the directory of the snapshots, or absolute.
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
