// Command around measures what our walls add to an installed agent:
//
//	PATH=$(scripts/agents):$PATH go run ./bench/around [-n 15] [claude codex …]
//
// For each agent in PATH it starts conversations with a scripted model, with walls and without, in turn. Then it does
// the same for a program that looks at 20,000 files, as a child of an agent would.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/measure"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
)

func main() {
	if process.IsGuard(os.Args) {
		os.Exit(process.Guard())
	}
	if sandbox.IsStage(os.Args) {
		os.Exit(sandbox.Stage())
	}
	n := flag.Int("n", 15, "how many pairs")
	flag.Parse()
	if err := run(*n, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "around:", err)
		os.Exit(1)
	}
}

func run(n int, agents []string) error {
	base, err := os.MkdirTemp("/var/lib", "omniagent-bench-") // codex refuses to work beneath /tmp
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	if len(agents) == 0 {
		for _, name := range []string{"claude", "codex", "gemini", "copilot", "opencode"} {
			if _, err := exec.LookPath(name); err == nil {
				agents = append(agents, name)
			}
		}
	}
	program, err := measure.Build(".", "./cmd/omniagent", base)
	if err != nil {
		return err
	}
	work := filepath.Join(base, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	for _, name := range agents {
		start := program.With("start", "--agent", name, "--rehearse", "--cwd", work, "--prompt=hello").
			In("HOME=" + filepath.Join(base, "home"))
		times, err := measure.Runs(n, start.In("OMNIAGENT_AGENTS_WALLS=off"), start.In("OMNIAGENT_AGENTS_WALLS=on"))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		told(name, times[0], times[1])
	}
	return looks(n, base)
}

func told(what string, bare, walled measure.Times) {
	fmt.Printf("%-22s bare %8v, walled %8v, %+v, × %.3f; least %v and %v\n", what, ms(bare.Median()),
		ms(walled.Median()),
		ms(walled.Median()-bare.Median()), float64(walled.Median())/float64(bare.Median()), ms(bare.Min()),
		ms(walled.Min()))
}

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// looks measures a program that looks at many files.
func looks(n int, base string) error {
	root := filepath.Join(base, "files")
	for i := range 20_000 {
		dir := filepath.Join(root, strconv.Itoa(i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			return err
		}
	}
	temp := filepath.Join(base, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return err
	}
	find, err := exec.LookPath("find")
	if err != nil {
		return err
	}
	plain := process.Plan{Path: find, Argv: []string{"find", root, "-newer", "/etc/passwd", "-size", "+1"}, Dir: root}
	ways := []func(process.Plan) (process.Plan, error){func(p process.Plan) (process.Plan, error) { return p, nil }}
	for _, veiled := range [][]string{nil, {".claude", ".mcp.json"}} {
		walls, err := policy.OpenAgent(policy.AgentWanted{
			Wanted: policy.Wanted{Root: root, Home: filepath.Join(base, "home"), Temp: temp, State: base},
			Veiled: veiled,
		})
		if err != nil {
			return err
		}
		defer walls.Close()
		ways = append(ways, walls.Plan)
	}
	times := make([]measure.Times, len(ways))
	for range n {
		for i, way := range ways {
			p, err := way(plain)
			if err != nil {
				return err
			}
			began := time.Now()
			child, err := process.Start(p)
			if err != nil {
				return err
			}
			if e := child.Wait(); e.ExitCode != 0 {
				return fmt.Errorf("find ended with %d", e.ExitCode)
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	for _, t := range times {
		slices.Sort(t)
	}
	told("20,000 looks", times[0], times[1])
	told("20,000 looks, veiled", times[0], times[2])
	return nil
}
