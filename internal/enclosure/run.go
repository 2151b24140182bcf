package enclosure

import (
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/fault"
	"omniagent/internal/process"
)

// Program is a program to run in the sandbox with the caller's streams.
type Program struct {
	Argv     []string // the first is searched for in PATH of Env
	Dir      string
	Env      []string
	Streams  [3]*os.File
	Terminal *os.File // if a person uses it
	Signals  <-chan os.Signal
}

// Run runs the program to its end, with everything it started, and returns its exit status, or 128 plus the number of a
// signal. An error means that it was not started.
func (e *Enclosure) Run(p Program) (int, error) {
	path, err := find(p.Argv[0], p.Dir, p.Env)
	if err != nil {
		return 0, err
	}
	plan := process.Plan{Argv: p.Argv, Path: path, Dir: p.Dir, Env: p.Env, Terminal: p.Terminal}
	plan.Stdin, plan.Stdout, plan.Stderr = p.Streams[0], p.Streams[1], p.Streams[2]
	if plan, err = e.Plan(plan); err != nil {
		return 0, err
	}
	child, err := process.Start(plan)
	if err != nil {
		return 0, err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-p.Signals:
				child.End(s)
			case <-over:
				return
			}
		}
	}()
	ending := child.Wait()
	if ending.Signal != "" {
		return 128 + number(ending.Signal), nil
	}
	return ending.ExitCode, nil
}

// find finds a program as a shell would: a name with a slash is a path, any other is in PATH, of which only absolute
// directories count.
func find(name, dir string, env []string) (string, error) {
	runs := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	}
	if strings.ContainsRune(name, filepath.Separator) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if !runs(path) {
			return "", fault.New(fault.NotInstalled, "%s is not an executable program",
				name).Hint("Give the path of an executable file.")
		}
		return path, nil
	}
	for _, entry := range env {
		list, ok := strings.CutPrefix(entry, "PATH=")
		if !ok {
			continue
		}
		for _, in := range filepath.SplitList(list) {
			if path := filepath.Join(in, name); filepath.IsAbs(in) && runs(path) {
				return path, nil
			}
		}
	}
	return "", fault.New(fault.NotInstalled, "there is no program %s in PATH", name).Hint("Give its path.")
}
