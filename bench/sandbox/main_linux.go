// Command sandbox prints what walls add to a command that ends at once, beside what bubblewrap adds with the same mounts. Both are
// started in the same way, with a guard, and in turn.
//
//	go run ./bench/sandbox [-n 100]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"omniagent/internal/process"
	"omniagent/internal/sandbox"
)

func main() {
	if process.IsGuard(os.Args) {
		os.Exit(process.Guard())
	}
	if sandbox.IsStage(os.Args) {
		os.Exit(sandbox.Stage())
	}
	n := flag.Int("n", 100, "start each `N` times, in turn")
	flag.Parse()
	if err := run(*n); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

func run(n int) error {
	wrap, err := exec.LookPath("bwrap")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/var/lib", "omniagent-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, temp, hidden, state := filepath.Join(dir, "root"), filepath.Join(dir, "temp"), filepath.Join(dir, "hidden"), filepath.Join(dir, "state")
	protected := []string{".git/hooks", ".claude", ".codex", ".vscode"}
	dirs := []string{root, temp, hidden, state, root + "/refs/heads"}
	for _, name := range protected {
		dirs = append(dirs, filepath.Join(root, name))
	}
	for _, each := range dirs {
		if err := os.MkdirAll(each, 0o700); err != nil {
			return err
		}
	}
	for _, name := range []string{".git/config", ".git/commondir"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			return err
		}
	}
	report := sandbox.Probe(context.Background(), sandbox.Options{})
	report.Tier = sandbox.Namespaces
	walls, err := sandbox.Open(sandbox.Policy{Root: root, Temp: temp, Hidden: []string{hidden}, Protected: protected}, report, sandbox.Options{State: state})
	if err != nil {
		return err
	}
	defer walls.Close()
	bubble := []string{
		"bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/dev/shm", "--proc", "/proc",
		"--bind", temp, "/tmp", "--bind", temp, "/var/tmp", "--bind", root, root, "--bind", root + "/.git", root + "/.git",
	}
	for _, name := range append(protected, ".git/config", ".git/commondir", "refs") {
		bubble = append(bubble, "--ro-bind", filepath.Join(root, name), filepath.Join(root, name))
	}
	bubble = append(bubble, "--tmpfs", hidden, "--remount-ro", hidden, "--chdir", root, "/bin/true")
	plain := process.Plan{Argv: []string{"true"}, Path: "/bin/true", Dir: root, Env: os.Environ()}
	times := make([][]time.Duration, 3)
	for range n {
		for i := range times {
			began := time.Now()
			p := plain
			switch i {
			case 1:
				p.Argv, p.Path = bubble, wrap
			case 2:
				if p, err = walls.Plan(plain); err != nil {
					return err
				}
			}
			c, err := process.Start(p)
			if err != nil {
				return err
			}
			if e := c.Wait(); e.ExitCode != 0 {
				return fmt.Errorf("%v: exit %d %s", p.Argv, e.ExitCode, e.Signal)
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	median := func(i int) time.Duration { return times[i][n/2].Round(10 * time.Microsecond) }
	fmt.Printf("alone %v, bubblewrap %v, walls %v; walls to bubblewrap %.2f, what they add %.2f\n", median(0), median(1), median(2),
		float64(median(2))/float64(median(1)), float64(median(2)-median(0))/float64(median(1)-median(0)))
	return nil
}
