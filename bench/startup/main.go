// Command startup prints what a start of omniagent costs beside programs to compare it with: an empty Go program, one
// that imports only net/http and, with -others, the tools found in PATH. The limits are tests in
// internal/testkit/budget.
//
//	go run ./bench/startup [-n 40] [-others]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	"omniagent/internal/testkit/measure"
)

func main() {
	n := flag.Int("n", 40, "start each program `N` times, in turn")
	others := flag.Bool("others", false, "also start the known tools that are in PATH, with --version")
	flag.Parse()
	if *n < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*n, *others); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

func run(n int, others bool) error {
	dir, err := os.MkdirTemp("", "omniagent-startup-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := measure.Build(".", "omniagent/cmd/omniagent", dir)
	if err != nil {
		return err
	}
	empty, err := measure.BuildSource("empty", measure.Empty, dir)
	if err != nil {
		return err
	}
	http, err := measure.BuildSource("http", measure.HTTP, dir)
	if err != nil {
		return err
	}
	program = program.With("--version")
	programs := []measure.Program{empty, http, program}
	if others {
		programs = append(programs, installed()...)
	}
	if err := printTimes(n, programs); err != nil {
		return err
	}
	return printInits(http, program)
}

// installed finds tools to compare with. One whose --version fails is left out.
func installed() []measure.Program {
	var found []measure.Program
	for _, name := range []string{"git", "gh", "node", "claude", "codex", "copilot", "gemini", "opencode"} {
		file, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		p := measure.Program{Name: name, File: file, Args: []string{"--version"}}
		if _, err := measure.Runs(1, p); err != nil {
			fmt.Fprintf(os.Stderr, "startup: %s is left out: %v\n", name, err)
			continue
		}
		found = append(found, p)
	}
	return found
}

func printTimes(n int, programs []measure.Program) error {
	times, err := measure.Runs(n, programs...)
	if err != nil {
		return err
	}
	fmt.Printf("Start to end, %d runs each, in turn\n\n", n)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "program\tmedian ms\tmin ms\t× empty\tbytes\t")
	for i, p := range programs {
		size, err := p.Size()
		if err != nil {
			return err
		}
		ratio := float64(times[i].Median()) / float64(times[0].Median())
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%d\t\n", p.Name, ms(times[i].Median()), ms(times[i].Min()), ratio, size)
	}
	return w.Flush()
}

func printInits(http, program measure.Program) error {
	const runs, heaviest = 9, 10
	inits, err := measure.Inits(runs, http, program)
	if err != nil {
		return err
	}
	base := inits[0].Sum
	fmt.Printf("\nPackage initialisation, median of %d runs\n\n", runs)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tms\t× http\t")
	fmt.Fprintf(w, "http\t%.3f\t1.00\t\n", ms(base))
	fmt.Fprintf(w, "%s\t%.3f\t%.2f\t\n", program.Name, ms(inits[1].Sum), float64(inits[1].Sum)/float64(base))
	for _, p := range inits[1].Packages[:min(heaviest, len(inits[1].Packages))] {
		fmt.Fprintf(w, "%s\t%.3f\t%.2f\t\n", p.Path, ms(p.Took), float64(p.Took)/float64(base))
	}
	return w.Flush()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
