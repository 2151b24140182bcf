// Command tree measures how long it takes to tell what changed in a directory, beside what git needs for the same, on
// generated repositories and in one run. The times of git include the start of its process; ours has none. Work is what
// the processors did.
//
//	go run ./bench/tree [-n 15] [-files 15000,100000]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/testkit/measure"
)

func main() {
	n := flag.Int("n", 15, "measure each `N` times, in turn")
	files := flag.String("files", "15000,100000", "the sizes of the trees, in files")
	flag.Parse()
	if err := run(*n, strings.Split(*files, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "tree:", err)
		os.Exit(1)
	}
}

func run(n int, sizes []string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Printf("%d runs each, in turn, %d processors; median milliseconds\n\n", n, runtime.GOMAXPROCS(0))
	fmt.Fprintln(w, "files\tquestion\tours\tgit\t× git\twork ours\twork git\t× git\t")
	for _, text := range sizes {
		files, err := strconv.Atoi(text)
		if err != nil || files < 1 || n < 1 {
			return errors.New("-n and -files take positive numbers")
		}
		if err := size(w, n, files); err != nil {
			return err
		}
	}
	return w.Flush()
}

// contest is one question, as we and as git answer it.
type contest struct {
	name         string
	ours, theirs func() (work time.Duration, err error)
	wall, work   [2][]time.Duration
}

// here measures the work of a function in this process.
func here(do func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		before := measure.Used()
		err := do()
		return measure.Used() - before, err
	}
}

func size(w *tabwriter.Writer, n, files int) error {
	base, err := os.MkdirTemp("", "omniagent-bench-tree-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	root := filepath.Join(base, "root")
	if err := measure.Repository(root, files); err != nil {
		return err
	}
	contests, err := contests(base, root, files)
	if err != nil {
		return err
	}
	for range n + 1 { // the first one warms the cache
		for _, c := range contests {
			for i, do := range []func() (time.Duration, error){c.ours, c.theirs} {
				began := time.Now()
				work, err := do()
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				c.wall[i] = append(c.wall[i], time.Since(began))
				c.work[i] = append(c.work[i], work)
			}
		}
	}
	for _, c := range contests {
		a, b := median(c.wall[0][1:]), median(c.wall[1][1:])
		x, y := median(c.work[0][1:]), median(c.work[1][1:])
		fmt.Fprintf(w, "%d\t%s\t%.1f\t%.1f\t%.2f\t%.1f\t%.1f\t%.2f\t\n", files, c.name, a, b, a/b, x, y, x/y)
	}
	return nil
}

func contests(base, root string, files int) ([]*contest, error) {
	store, index := snapshot.OpenStore(filepath.Join(base, "store")), filepath.Join(base, "index")
	ctx := context.Background()
	before, err := snapshot.Take(ctx, root, snapshot.Options{Store: store})
	if err != nil {
		return nil, err
	}
	repository, err := git.Open(root)
	if err != nil {
		return nil, err
	}
	entries, err := repository.Index()
	if err != nil {
		return nil, err
	}
	var names bytes.Buffer
	var blobs []git.ID
	for _, list := range entries {
		for _, e := range list[:min(len(list), 100-len(blobs))] {
			blobs = append(blobs, e.Blob)
			fmt.Fprintf(&names, "%x\n", e.Blob[:20])
		}
	}
	listed := measure.Git(root, nil, "ls-files", "-s", "--debug")
	status := measure.Git(root, nil, "status", "--porcelain")
	return []*contest{
		{name: "status of every file", theirs: status, ours: here(func() error {
			_, err := snapshot.Take(ctx, root, snapshot.Options{})
			return err
		})},
		{name: "and where its content is", theirs: status, ours: here(func() error {
			_, err := snapshot.Take(ctx, root, snapshot.Options{Store: store})
			return err
		})},
		{name: "the same again, and compared", theirs: status, ours: here(func() error {
			after, err := snapshot.Take(ctx, root, snapshot.Options{Store: store, Since: before})
			if err == nil {
				if c := snapshot.Diff(before, after); len(c.Files) > 0 || after.Len() < files {
					err = fmt.Errorf("%d changes", len(c.Files))
				}
			}
			return err
		})},
		{name: "saved and loaded", theirs: status, ours: here(func() error {
			err := before.SaveFile(index)
			if err == nil {
				_, err = snapshot.LoadFile(index)
			}
			return err
		})},
		{name: "the index of git", theirs: listed, ours: here(func() error {
			_, err := repository.Index()
			return err
		})},
		{name: "100 blobs", theirs: measure.Git(root, names.Bytes(), "cat-file", "--batch"), ours: here(func() error {
			opened, err := git.Open(root)
			if err != nil {
				return err
			}
			defer opened.Close()
			for _, id := range blobs {
				if _, err := opened.Blob(id, 1<<20); err != nil {
					return err
				}
			}
			return nil
		})},
	}, nil
}

func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}
