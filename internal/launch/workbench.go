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

// BenchOptions are the options of a Bench.
type BenchOptions struct {
	Root    string         // the workspace, absolute
	Env     []string       // the complete environment of commands
	Private string         // an existing directory that only the user may enter
	Walls   *policy.Wanted // around commands; OpenBench sets Root and Temp; nil: none
}

// Bench gives access to the files and commands of a workspace, for commands that a person types in a conversation, and
// for requests of an agent over the Agent Client Protocol. Commands run behind the walls of the native agent. Its
// methods may be called from several goroutines.
type Bench struct {
	files *workspace.Dir
	walls *policy.Walls
	shell *shell.Shell

	mu        sync.Mutex
	terminals map[string]*terminal
}

// OpenBench opens a Bench. The caller has to close it.
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

// FS returns an interface to the files, and to commands that run to their end.
func (b *Bench) FS() fsapi.FS { return fsapi.New(b.files, tool.Runner(b.shell)) }

// Close ends all commands.
func (b *Bench) Close() {
	if b.shell != nil {
		b.shell.Close()
	}
	if b.walls != nil {
		_ = b.walls.Close() // the next walls remove what is left
	}
	if b.files != nil {
		_ = b.files.Close() // a directory has nothing to flush
	}
}
