// Command search measures the native agent's Grep and Glob beside ripgrep and fd, on one tree and in one run, and says
// whether they find the same. The times of the others include the start of a process, which ours do not need; work is
// what the processors did.
//
//	go run ./bench/search [-n 20] [-dir DIR] [PATTERN…]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"omniagent/internal/native/tool"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/testkit/measure"
)

func main() {
	n := flag.Int("n", 20, "run each search `N` times, in turn")
	dir := flag.String("dir", "", "the `DIR` to search in; Go's own sources if left out")
	flag.Parse()
	if *n < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*n, *dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// contest is one search, ours and theirs.
type contest struct {
	name   string
	tool   string
	input  map[string]any
	file   string // of the other program
	args   []string
	limit  float64 // 0: none is promised
	ours   []sample
	theirs []sample
}

type sample struct{ wall, work time.Duration }

func run(n int, dir string, patterns []string) error {
	if dir == "" {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return err
		}
		dir = filepath.Join(strings.TrimSpace(string(root)), "src")
	}
	files, err := workspace.OpenDir(dir)
	if err != nil {
		return err
	}
	defer files.Close()
	env := &tool.Env{Files: files, Excludes: tool.ExcludesFile(os.Getenv)}
	contests, err := contests(patterns)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Printf("%s, %d runs each, in turn, %d processors; median milliseconds\n\n", dir, n, runtime.GOMAXPROCS(0))
	fmt.Fprintln(w, "search\tours\ttheirs\t× theirs\tlimit\twork ours\twork theirs\t× theirs\tsame\t")
	for _, c := range contests {
		same, err := c.compare(env, dir)
		if err != nil {
			return err
		}
		for range n {
			if err := c.once(env, dir); err != nil {
				return err
			}
		}
		wall, work := func(s sample) time.Duration { return s.wall }, func(s sample) time.Duration { return s.work }
		a, b, x, y := median(c.ours, wall), median(c.theirs, wall), median(c.ours, work), median(c.theirs, work)
		limit := "-"
		if c.limit > 0 {
			limit = fmt.Sprintf("%.1f", c.limit)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.2f\t%s\t%.1f\t%.1f\t%.2f\t%s\t\n", c.name, a, b, a/b, limit, x, y, x/y, same)
	}
	return w.Flush()
}

func contests(patterns []string) ([]*contest, error) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		return nil, fmt.Errorf("ripgrep is needed: %w", err)
	}
	fd := ""
	for _, name := range []string{"fd", "fdfind"} {
		if file, err := exec.LookPath(name); err == nil {
			fd = file
		}
	}
	if fd == "" {
		return nil, errors.New("fd is needed (fd-find in Debian)")
	}
	const grep, glob = 1.5, 1.2
	all := []*contest{}
	if len(patterns) == 0 {
		patterns = []string{
			"MarshalJSON", "the", "zqxj", "context.Context", `func \w+Error\(`, `[A-Z][a-z]+Error\b`,
			`\b(TODO|FIXME|BUG)\b`, `^\s+return nil$`,
		}
	}
	for _, p := range patterns {
		limit := 0.0
		if !strings.ContainsAny(p, `\[(`) {
			limit = grep
		}
		all = append(all, &contest{
			name: "Grep " + p, tool: "Grep", input: map[string]any{"pattern": p, "output_mode": "count"}, file: rg,
			args: []string{"-c", "--", p, "."}, limit: limit,
		})
	}
	all = append(all, &contest{
		name: "Grep -i handlefunc", tool: "Grep", input: map[string]any{
			"pattern": "handlefunc", "-i": true,
			"output_mode": "count",
		},
		file: rg, args: []string{"-ci", "handlefunc", "."}, limit: grep,
	})
	for _, p := range []string{"**/*.go", "**/*_test.go", "**/*"} {
		all = append(all, &contest{
			name: "Glob " + p, tool: "Glob", input: map[string]any{"pattern": p, "limit": 1_000_000}, file: fd,
			args: []string{"-t", "f", "--glob", strings.TrimPrefix(p, "**/")}, limit: glob,
		})
	}
	return all, nil
}

func (c *contest) call(env *tool.Env) (string, error) {
	made := tool.Grep(env)
	if c.tool == "Glob" {
		made = tool.Glob(env)
	}
	input, err := json.Marshal(c.input)
	if err != nil {
		return "", err
	}
	action, err := made.Plan(input)
	if err != nil {
		return "", err
	}
	result := action.Run(context.Background())
	if result.Failed {
		return "", errors.New(result.Text)
	}
	return result.Text, nil
}

func (c *contest) once(env *tool.Env, dir string) error {
	before, began := measure.Used(), time.Now()
	if _, err := c.call(env); err != nil {
		return err
	}
	c.ours = append(c.ours, sample{time.Since(began), measure.Used() - before})
	cmd := exec.Command(c.file, c.args...)
	cmd.Dir = dir
	began = time.Now()
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		return err
	}
	c.theirs = append(c.theirs, sample{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()})
	return nil
}

// compare reports whether both find the same. An answer that was cut is compared as far as it goes.
func (c *contest) compare(env *tool.Env, dir string) (string, error) {
	text, err := c.call(env)
	if err != nil {
		return "", err
	}
	cmd := exec.Command(c.file, c.args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		return "", err
	}
	theirs := map[string]bool{}
	for line := range strings.Lines(string(bytes.ReplaceAll(out, []byte("\n./"), []byte("\n")))) {
		theirs[strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "./")] = true
	}
	found, cut := 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "("):
			cut = true
		case strings.HasPrefix(line, "No "):
		case !theirs[line]:
			return "no: " + line, nil
		default:
			found++
		}
	}
	if cut {
		return fmt.Sprintf("%d of %d", found, len(theirs)), nil
	}
	if found != len(theirs) {
		return fmt.Sprintf("no: %d, %d", found, len(theirs)), nil
	}
	return fmt.Sprintf("yes, %d", found), nil
}

func median(list []sample, of func(sample) time.Duration) float64 {
	var values []time.Duration
	for _, s := range list {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return float64(values[len(values)/2]) / float64(time.Millisecond)
}
