package measure

import (
	"os"
	"path/filepath"
)

// InFront builds, into dir, a stand-in for an agent that ends at once, and returns three programs: it alone, it behind
// Wrapper, it behind the shim of the module at root. The home is an empty one. There are no snapshots: what they
// cost depends on the workspace, has a limit of its own, and is in docs/undo.md.
func InFront(root, agent, dir string) ([]Program, error) {
	home := filepath.Join(dir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	alone, err := BuildSource(agent, Empty, dir)
	if err != nil {
		return nil, err
	}
	wrapper, err := BuildSource("wrapper", Wrapper, dir)
	if err != nil {
		return nil, err
	}
	shim, err := Build(root, "omniagent/cmd/omniagent", dir)
	if err != nil {
		return nil, err
	}
	path := "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")
	return []Program{
		alone.In("HOME=" + home), wrapper.With(alone.File).In("HOME=" + home),
		shim.With("--agent", agent, "-p", "hello", "--undo", "off").
			In("HOME="+home, path, "XDG_CONFIG_HOME=", "XDG_STATE_HOME="),
	}, nil
}
