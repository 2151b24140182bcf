// Command fork measures what forks of a large workspace cost, beside bare overlay mounts and git worktree add of the
// same tree in the same run. A program in a fork is two processes of ours more, a guard and a stage.
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
	"strconv"
	"syscall"
	"time"

	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/measure"
	"omniagent/internal/walls/sandbox"
)

func main() {
	if process.IsGuard(os.Args) {
		os.Exit(process.Guard())
	}
	if sandbox.IsStage(os.Args) {
		syscall.Exit(sandbox.Stage())
	}
	if len(os.Args) == 5 && os.Args[1] == "once" {
		if err := once(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, "fork:", err)
			os.Exit(1)
		}
		return
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

// once makes forks in a process that has done nothing before, as the processes are that make them, and prints what it
// took.
func once(base, root, forks string) error {
	n, err := strconv.Atoi(forks)
	if err != nil {
		return err
	}
	b := &bench{base: base, root: root, forks: n}
	b.store = fork.Store{Dir: filepath.Join(base, "forks"), Root: undo.Store{Home: base}.Root}
	t, err := b.made()
	fmt.Println(t.made.Nanoseconds(), t.working.Nanoseconds(), t.ended.Nanoseconds(), t.bytes)
	return err
}

// apart is made in a process of its own.
func (b *bench) apart() (t times, err error) {
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	out, err := exec.Command(self, "once", b.base, b.root, strconv.Itoa(b.forks)).Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), (*int64)(&t.made), (*int64)(&t.working), (*int64)(&t.ended), &t.bytes)
	}
	return t, err
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
	if err := measure.Repository(b.root, files); err != nil {
		return err
	}
	fmt.Printf("%d files, %d forks, %d runs each, in turn, %d processors\n\n", files, forks, n, runtime.GOMAXPROCS(0))
	var bare, made, working, ended []time.Duration
	var bytes int64
	for range n {
		d, err := b.bare()
		if err != nil {
			return err
		}
		bare = append(bare, d)
		t, err := b.apart()
		if err != nil {
			return err
		}
		made, working, ended = append(made, t.made), append(working, t.working), append(ended, t.ended)
		bytes = max(bytes, t.bytes)
	}
	show := func(name string, all []time.Duration) {
		slices.Sort(all)
		fmt.Printf("%-56s best %8.1f ms  median %8.1f ms\n", name, ms(all[0]), ms(all[len(all)/2]))
	}
	show("bare overlay mounts, each by unshare and mount", bare)
	show("forks, made", made)
	show("forks, made and with a program at work in each", working)
	show("the same, until what the workspace was is kept", ended)
	compare := func(name string, all []time.Duration) {
		middle := len(all) / 2
		fmt.Printf("%-56s %.2f (median %.2f)\n", name, ms(all[0])/ms(bare[0]), ms(all[middle])/ms(bare[middle]))
	}
	compare("forks × bare mounts", made)
	compare("forks with a program × bare mounts", working)
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

// times are what forks took together.
type times struct {
	made    time.Duration // of the making alone
	working time.Duration // until a program works in each
	ended   time.Duration // until the programs have ended, and what the workspace was is kept
	bytes   int64
}

// made makes forks with a program in each.
func (b *bench) made() (t times, err error) {
	ctx := context.Background()
	var all []*fork.Fork
	var works []*fork.Work
	in, out := io.Pipe()
	began := time.Now()
	for range b.forks {
		f, err := b.store.Make(ctx, fork.Wanted{Dir: b.root})
		if err != nil {
			return t, err
		}
		all = append(all, f)
	}
	t.made = time.Since(began)
	for _, f := range all {
		standby := process.Prepare(false)
		defer standby.Dismiss()
		work, err := f.Start(ctx, process.Plan{
			Argv: []string{"cat"}, Path: "/bin/cat", Dir: b.root, Env: os.Environ(), Stdin: in, Standby: standby,
		}, fork.Net{Word: "off"})
		if err != nil {
			return t, err
		}
		works = append(works, work)
	}
	t.working = time.Since(began)
	_ = out.Close()
	for _, work := range works {
		if _, errBase := work.Wait(); errBase != nil {
			err = errBase
		}
	}
	t.ended = time.Since(began)
	for _, f := range all {
		t.bytes += f.Size()
		if _, errDelete := f.Delete(ctx); errDelete != nil {
			err = errDelete
		}
	}
	return t, err
}

func (b *bench) worktree() (time.Duration, error) {
	began := time.Now()
	out, err := exec.Command("git", "-C", b.root, "worktree", "add", filepath.Join(b.base, "linked")).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return time.Since(began), nil
}
