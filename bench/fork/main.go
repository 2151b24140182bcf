// Command fork measures what forks of a large workspace cost, beside bare overlay mounts and git worktree add of the
// same tree in the same run. A fork counts as made when a program works in it. The times of the others include the
// start of their processes, as ours do.
//
//	go run ./bench/fork [-n 10] [-files 100000] [-forks 8] [-worktrees]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"omniagent/internal/fork"
	"omniagent/internal/measure"
	"omniagent/internal/process"
	"omniagent/internal/sandbox"
	"omniagent/internal/undo"
)

func main() {
	if process.IsGuard(os.Args) {
		os.Exit(process.Guard())
	}
	if sandbox.IsStage(os.Args) {
		syscall.Exit(sandbox.Stage())
	}
	n := flag.Int("n", 10, "measure each `N` times, in turn")
	files := flag.Int("files", 100_000, "the size of the tree, in files")
	forks := flag.Int("forks", 8, "how many forks at a time")
	worktrees := flag.Bool("worktrees", false, "measure git worktree add too, once")
	flag.Parse()
	if err := run(*n, *files, *forks, *worktrees); err != nil {
		fmt.Fprintln(os.Stderr, "fork:", err)
		os.Exit(1)
	}
}

// bench is a tree, and where its forks go.
type bench struct {
	base, root string
	forks      int
	store      fork.Store
}

func run(n, files, forks int, worktrees bool) (err error) {
	base, err := os.MkdirTemp("", "omniagent-bench-fork-")
	if err != nil {
		return err
	}
	defer func() {
		_ = exec.Command("chmod", "-R", "u+rwx", base).Run() // the kernel makes directories that nobody may enter
		err = errors.Join(err, os.RemoveAll(base))
	}()
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return err
	}
	b := &bench{base: base, root: filepath.Join(base, "tree"), forks: forks}
	b.store = fork.Store{Dir: filepath.Join(base, "forks"), Root: undo.Store{Home: base}.Root}
	if err := measure.Repository(b.root, files); err != nil {
		return err
	}
	fmt.Printf("%d files, %d forks, %d runs each, in turn, %d processors\n\n", files, forks, n, runtime.GOMAXPROCS(0))
	var bare, made, ended []time.Duration
	var bytes int64
	for range n {
		d, err := b.bare()
		if err != nil {
			return err
		}
		bare = append(bare, d)
		ready, over, size, err := b.made()
		if err != nil {
			return err
		}
		made, ended, bytes = append(made, ready), append(ended, over), max(bytes, size)
	}
	show := func(name string, all []time.Duration) {
		slices.Sort(all)
		fmt.Printf("%-56s best %8.1f ms  median %8.1f ms\n", name, ms(all[0]), ms(all[len(all)/2]))
	}
	show("bare overlay mounts, each by unshare and mount", bare)
	show("forks, until a program works in each", made)
	show("the same, until what the workspace was is kept", ended)
	fmt.Printf("%-56s %.2f (median %.2f)\n", "forks × bare mounts", ms(made[0])/ms(bare[0]),
		ms(made[len(made)/2])/ms(bare[len(bare)/2]))
	fmt.Printf("%-56s %d KB\n", "on disk together", bytes>>10)
	if worktrees {
		d, err := b.worktree()
		fmt.Printf("%-56s %8.1f ms\n", "git worktree add, one", ms(d))
		return err
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// bare mounts overlays and does nothing else.
func (b *bench) bare() (time.Duration, error) {
	dir, err := os.MkdirTemp(b.base, "bare-")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for i := range b.forks {
		at := filepath.Join(dir, fmt.Sprint(i))
		for _, name := range []string{"up", "work"} {
			if err := os.MkdirAll(filepath.Join(at, name), 0o755); err != nil {
				return 0, err
			}
		}
		out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--net", "mount", "-t", "overlay",
			"overlay", "-o", "userxattr,lowerdir="+b.root+",upperdir="+at+"/up,workdir="+at+"/work",
			b.root).CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, out)
		}
	}
	return time.Since(began), nil
}

// made makes forks with a program in each.
func (b *bench) made() (ready, over time.Duration, bytes int64, err error) {
	ctx := context.Background()
	var all []*fork.Fork
	var works []*fork.Work
	in, out := io.Pipe()
	began := time.Now()
	for range b.forks {
		f, err := b.store.Make(ctx, fork.Wanted{Dir: b.root})
		if err != nil {
			return 0, 0, 0, err
		}
		work, err := f.Start(ctx, process.Plan{
			Argv: []string{"cat"}, Path: "/bin/cat", Dir: b.root, Env: os.Environ(), Stdin: in,
		}, fork.Net{Word: "off"})
		if err != nil {
			return 0, 0, 0, err
		}
		all, works = append(all, f), append(works, work)
	}
	ready = time.Since(began)
	_ = out.Close()
	for _, work := range works {
		if _, errBase := work.Wait(); errBase != nil {
			err = errBase
		}
	}
	over = time.Since(began)
	for _, f := range all {
		bytes += f.Size()
		if _, errDelete := f.Delete(ctx); errDelete != nil {
			err = errDelete
		}
	}
	return ready, over, bytes, err
}

func (b *bench) worktree() (time.Duration, error) {
	began := time.Now()
	out, err := exec.Command("git", "-C", b.root, "worktree", "add", filepath.Join(b.base, "linked")).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return time.Since(began), nil
}
