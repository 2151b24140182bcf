// Command undo measures what the snapshots around a turn cost, beside git status of the same tree in the same run. The
// times of git include the start of its process; ours have none. Work is what the processors did.
//
//	go run ./bench/undo [-n 15] [-files 15000,100000] [DIR…]
//
// A DIR is measured as it is, and nothing in it is changed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/measure"
)

func main() {
	n := flag.Int("n", 15, "measure each `N` times, in turn")
	files := flag.String("files", "15000,100000", "the sizes of the trees that are made, in files")
	flag.Parse()
	if err := run(*n, strings.Split(*files, ","), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "undo:", err)
		os.Exit(1)
	}
}

func run(n int, sizes, dirs []string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Printf("%d runs each, in turn, %d processors; the best and the median, in milliseconds\n\n", n,
		runtime.GOMAXPROCS(0))
	fmt.Fprintln(w, "tree\tfiles\tsnapshot\tours\t\tgit status\t\tbest × git\tmedian × git\twork × git\t")
	base, err := os.MkdirTemp("", "omniagent-bench-undo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	for _, text := range sizes {
		files, err := strconv.Atoi(text)
		if err != nil || files < 1 || n < 1 {
			return errors.New("-n and -files take positive numbers")
		}
		if len(dirs) > 0 {
			break
		}
		root := filepath.Join(base, text)
		if err := measure.Repository(root, files); err != nil {
			return err
		}
		if err := tree(w, n, "made", root); err != nil {
			return err
		}
		if err := os.RemoveAll(root); err != nil { // room for the next one
			return err
		}
	}
	for _, dir := range dirs {
		if err := tree(w, n, filepath.Base(dir), dir); err != nil {
			return err
		}
	}
	return w.Flush()
}

// took is what one thing took, each time.
type took struct{ wall, work []time.Duration }

func (k *took) add(do func() (time.Duration, error)) error {
	runtime.GC() // of what the one before left
	began := time.Now()
	work, err := do()
	k.wall, k.work = append(k.wall, time.Since(began)), append(k.work, work)
	return err
}

func (k *took) best() float64 { return milliseconds(slices.Min(k.wall)) }

func (k *took) median() float64 { return middle(k.wall) }

func middle(all []time.Duration) float64 {
	return milliseconds(slices.Sorted(slices.Values(all))[len(all)/2])
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// tree measures the snapshots of one tree.
func tree(w *tabwriter.Writer, n int, name, root string) error {
	dir, err := os.MkdirTemp("", "omniagent-bench-undo-store-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, ctx := undo.Store{Dir: dir}, context.Background()
	var turn *undo.Turn
	before := func() (err error) { turn, err = store.Begin(ctx, undo.Origin{Dir: root}); return err }
	after := func() error { _, err := turn.End(ctx, time.Now()); return err }
	status := measure.Git(root, nil, "status", "--porcelain")
	if _, err := status(); err != nil { // warms the cache
		return err
	}
	var first, begins, ends, theirs took
	for i := range n {
		store.Dir = filepath.Join(dir, strconv.Itoa(i))
		err := errors.Join(first.add(here(before)), after(), begins.add(here(before)), theirs.add(status),
			ends.add(here(after)))
		if err != nil {
			return err
		}
	}
	files := 0
	_ = filepath.WalkDir(root, func(string, fs.DirEntry, error) error { files++; return nil })
	for i, k := range []took{first, begins, ends} {
		fmt.Fprintf(w, "%s\t%d\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\t\n", name, files,
			[]string{"the first one", "before a turn", "after it"}[i], k.best(), k.median(), theirs.best(),
			theirs.median(), k.best()/theirs.best(), k.median()/theirs.median(),
			middle(k.work)/middle(theirs.work))
	}
	fmt.Fprintf(w, "%s\t%d\ton disk\t%.1f MB\t\t\t\t\t\t\t\n", name, files, float64(store.Size())/1e6)
	return nil
}

// here measures the work of a function in this process.
func here(do func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		before := measure.Used()
		err := do()
		return measure.Used() - before, err
	}
}
