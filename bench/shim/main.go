// Command shim prints what the shim adds to an agent that ends at once, beside what a plain wrapper adds: one that only
// starts the agent and waits. The limit is a test in internal/testkit/budget.
//
//	go run ./bench/shim [-n 60]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"omniagent/internal/testkit/measure"
)

func main() {
	n := flag.Int("n", 60, "start each program `N` times, in turn")
	flag.Parse()
	if *n < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*n); err != nil {
		fmt.Fprintln(os.Stderr, "shim:", err)
		os.Exit(1)
	}
}

func run(n int) error {
	dir, err := os.MkdirTemp("", "omniagent-shim-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "agent\talone\twrapper adds\tshim adds\t× what it adds\t× its whole time\t")
	for _, name := range []string{"claude", "codex", "gemini", "copilot", "opencode"} {
		front, err := measure.InFront(".", name, filepath.Join(dir, name))
		if err != nil {
			return err
		}
		times, err := measure.Runs(n, front...)
		if err != nil {
			return err
		}
		alone, wrapper, shim := times[0].Median(), times[1].Median()-times[0].Median(),
			times[2].Median()-times[0].Median()
		fmt.Fprintf(out, "%s\t%v\t%v\t%v\t%.2f\t%.2f\t\n", name, rounded(alone), rounded(wrapper), rounded(shim),
			float64(shim)/float64(wrapper), float64(shim)/float64(times[1].Median()))
	}
	return out.Flush()
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
