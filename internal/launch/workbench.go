package launch

import (
	"os"
	"path/filepath"
	"sync"

	"omniagent/internal/kit/fault"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/fsapi"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/shell"
)

// Options are the terms of a Bench.
type BenchOptions struct {
	Root    string         // the workspace, absolute
	Env     []string       // the complete environment of commands
	Private string         // an existing directory that only the user may enter
	Walls   *policy.Wanted // around commands, but for Root and Temp; nil: none
}

// Bench has the files and commands of a workspace, for what a person types in a conversation and for what an agent
// asks of its client over the Agent Client Protocol. Commands run behind the walls of the native agent. Its methods
// may be called from several goroutines.
type Bench struct {
	files *workspace.Dir
	walls *policy.Walls
	shell *shell.Shell

	mu        sync.Mutex
	terminals map[string]*terminal
}

// OpenBench returns the files and commands of a workspace. The caller has to call Close.
func OpenBench(o BenchOptions) (*Bench, error) {
	b := &Bench{terminals: map[string]*terminal{}}
	s := shell.Options{Root: o.Root, Private: o.Private, Env: o.Env}
	if o.Walls != nil {
		temp := filepath.Join(o.Private, "tmp")
		if err := os.MkdirAll(temp, 0o700); err != nil {
			return nil, fault.New(fault.PermissionDenied, "no temporary directory can be made").Because(err)
		}
		wanted := *o.Walls
		wanted.Root, wanted.Temp = o.Root, temp
		var err error
		if b.walls, err = policy.Open(wanted); err != nil {
			return nil, err
		}
		s.Starter = b.walls.Starter()
	}
	err := b.open(s)
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bench) open(o shell.Options) (err error) {
	if b.shell, err = shell.New(o); err == nil {
		b.files, err = workspace.OpenDir(o.Root)
	}
	return err
}

// FS returns the files, and commands that run to their end.
func (b *Bench) FS() fsapi.FS { return fsapi.New(b.files, tool.Runner(b.shell)) }

// Close ends what runs.
func (b *Bench) Close() {
	if b.shell != nil {
		b.shell.Close()
	}
	if b.walls != nil {
		_ = b.walls.Close() // what it could not remove is removed by the next one
	}
	if b.files != nil {
		_ = b.files.Close() // nothing was written through it
	}
}
