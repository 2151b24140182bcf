// Command guard runs lines that the guard approved in real bash, for as long as it is told, and prints those that did
// what they must not.
//
//	go run ./bench/guard -for 1h
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"omniagent/bench/guard/oracle"
)

func main() {
	long := flag.Duration("for", time.Hour, "how long")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the lines")
	workers := flag.Int("parallel", 2, "how many at a time")
	flag.Parse()
	if err := run(*long, *seed, *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(long time.Duration, seed uint64, workers int) error {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var tried, approved, bad atomic.Int64
	var wait sync.WaitGroup
	failed := make(chan error, workers)
	until := time.Now().Add(long)
	for i := range workers {
		wait.Go(func() {
			o, err := oracle.New(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				failed <- err
				return
			}
			lines := oracle.NewLines(seed + uint64(i))
			for time.Now().Before(until) {
				ran, err := o.Try(lines.Next())
				tried.Add(1)
				if ran {
					approved.Add(1)
				}
				if err != nil {
					bad.Add(1)
					fmt.Println(err)
				}
			}
		})
	}
	wait.Wait()
	close(failed)
	for err := range failed {
		return err
	}
	fmt.Printf("seed %d: %d lines, %d approved and run, %d did what they must not\n", seed, tried.Load(),
		approved.Load(), bad.Load())
	if bad.Load() > 0 {
		return fmt.Errorf("%d approved lines did what they must not", bad.Load())
	}
	return nil
}
