// Command run measures what omniagent run adds to an agent, in pairs that take turns:
//
//	go run ./bench/run [-n 20] [overhead] [events] [many] [acpx]
//
//	overhead  an agent that prints one line, alone and as a run, in workspaces of 10 and of 1,000 files without git
//	events    an agent that prints 100,000 events: the same lines read by nobody but a pipe, and as a run
//	many      64 runs at once: the memory of our processes, and whether an event is missing
//	acpx      an instant agent of the Agent Client Protocol behind us and behind npm's acpx; needs -hosts
//	kills     kill -9 of the supervisor, its guard, the agent, a watcher, or all of ours, 1,000 times: it tries what
//	          the tests try 200 times, and takes some minutes
//
// Without words it does the first two. Builds and other work on the machine stretch all times: the differences and
// ratios count, and the least of all times is the closest to a quiet machine.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if agent := filepath.Base(os.Args[0]); agent == "gemini" {
		os.Exit(printer())
	}
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(speaker())
	}
	n := flag.Int("n", 20, "how many pairs")
	runs := flag.Int("runs", 64, "at once")
	hosts := flag.String("hosts", os.Getenv("OMNIAGENT_TEST_HOSTS"), "`DIR` of acpx, which scripts/hosts prints")
	flag.Parse()
	if err := measure(*n, *runs, *hosts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func measure(n, runs int, hosts string, what []string) error {
	base, err := os.MkdirTemp("", "omniagent-bench-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	p, err := furnish(base)
	if err != nil {
		return err
	}
	if len(what) == 0 {
		what = []string{"overhead", "events"}
	}
	for _, word := range what {
		switch word {
		case "overhead":
			for _, files := range []int{10, 1000} {
				if err == nil {
					err = p.overhead(n, files)
				}
			}
		case "events":
			err = p.events(max(3, n/4))
		case "many":
			err = p.many(runs)
		case "acpx":
			err = p.acpx(n, hosts)
		case "kills":
			err = kills()
		default:
			err = fmt.Errorf("there is nothing called %q", word)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	return nil
}

// kills has the tests of kills try each of their five ways 200 times.
func kills() error {
	cmd := exec.Command("go", "test", "-count=1", "-v", "-timeout=60m", "-run=^TestChaos", "./test/run")
	cmd.Env = append(os.Environ(), "OMNIAGENT_KILLS=200")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// place is a home with agents, and a workspace.
type place struct {
	base, program, work string
	env                 []string
}

// furnish builds the program, and makes agents: quick, which prints a line; gemini, which prints events in the form of
// that program; and speaker, which speaks the Agent Client Protocol. The last two are this program.
func furnish(base string) (place, error) {
	p := place{base: base, program: filepath.Join(base, "omniagent")}
	home, bin := filepath.Join(base, "home"), filepath.Join(base, "bin")
	p.env = []string{"HOME=" + home, "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin"}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", p.program, "./cmd/omniagent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return p, fmt.Errorf("%w: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	texts := map[string]string{
		filepath.Join(bin, "quick"): "#!/bin/sh\ncat >/dev/null\necho done\n",
		filepath.Join(home, ".config/omniagent/agents/omniagent.config.json"): `{"targets":[{"id":"quick","cli":{` +
			`"prompt":{"type":"stdin"},"flags":{"approval":{"values":{"yolo":[]}}},` +
			`"modes":{"oneShot":{"command":"quick","args":[]},"interactive":{"command":"quick","args":[]}}}},` +
			`{"id":"speaker","cli":{"modes":{"acp":{"command":` + strconv.Quote(self) + `,"args":["agent"]}}}}]}`,
		filepath.Join(home, ".config/omniagent/config.toml"): "[run]\nparallel = 256\n" +
			"[agents]\nallow = [\"quick\", \"gemini\", \"speaker\"]\n",
	}
	for path, text := range texts {
		if err := write(path, text); err != nil {
			return p, err
		}
	}
	if err := os.Symlink(self, filepath.Join(bin, "gemini")); err != nil {
		return p, err
	}
	if err := p.workspace(10); err != nil {
		return p, err
	}
	for _, agent := range []string{"quick", "gemini", "speaker"} {
		if _, err := p.call(p.program, "agents", "allow", agent); err != nil {
			return p, err
		}
	}
	return p, nil
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o755)
}

// workspace makes a workspace of files that differ.
func (p *place) workspace(files int) error {
	p.work = filepath.Join(p.base, fmt.Sprintf("work-%d", files))
	for i := range files {
		if err := write(filepath.Join(p.work, fmt.Sprintf("file-%d.txt", i)), fmt.Sprintf("text %d\n", i)); err != nil {
			return err
		}
	}
	return nil
}

func (p place) command(argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = p.work, p.env
	return c
}

// cost is what a call took.
type cost struct {
	wall, work time.Duration // work: of processors, with its children
	out        string
}

func (p place) call(argv ...string) (cost, error) {
	c := p.command(argv...)
	began := time.Now()
	out, err := c.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return cost{took, c.ProcessState.UserTime() + c.ProcessState.SystemTime(), string(out)}, nil
}

// pairs makes two calls in turn, and prints what they took.
func (p place) pairs(n int, one, two []string) (added time.Duration, err error) {
	var ones, twos, more, work []time.Duration
	for i := range n + 1 {
		a, err := p.call(one...)
		if err != nil {
			return 0, err
		}
		b, err := p.call(two...)
		if err != nil {
			return 0, err
		}
		if i == 0 { // which warms the caches
			continue
		}
		ones, twos = append(ones, a.wall), append(twos, b.wall)
		more, work = append(more, b.wall-a.wall), append(work, b.work-a.work)
	}
	fmt.Printf("  %-34s least %9s, median %9s\n", filepath.Base(one[0]), slices.Min(ones), median(ones))
	fmt.Printf("  %-34s least %9s, median %9s\n", filepath.Base(two[0])+" run", slices.Min(twos), median(twos))
	fmt.Printf("  %-34s least %9s, median %9s; work of processors %s\n", "added", slices.Min(more), median(more),
		median(work))
	return median(more), nil
}

func (p place) overhead(n, files int) error {
	if err := p.workspace(files); err != nil {
		return err
	}
	fmt.Printf("%d pairs, %d files in the workspace:\n", n, files)
	_, err := p.pairs(n, []string{filepath.Join(p.base, "bin/quick")},
		[]string{p.program, "run", "--agent", "quick", "--yolo", "-p", "x", "--output", "json"})
	return err
}

func (p place) events(n int) error {
	fmt.Printf("%d pairs, an agent that prints %d events:\n", n, printed)
	added, err := p.pairs(n, []string{filepath.Join(p.base, "bin/gemini")},
		[]string{p.program, "run", "--agent", "gemini", "--yolo", "-p", "x", "--output", "json"})
	if err == nil {
		fmt.Printf("  an event                           %s\n", added/printed)
	}
	return err
}

func (p place) acpx(n int, hosts string) error {
	if hosts == "" {
		return fmt.Errorf("it needs -hosts: scripts/hosts installs it and prints the directory")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Printf("%d pairs, an instant agent of the Agent Client Protocol:\n", n)
	_, err = p.pairs(n, []string{
		filepath.Join(hosts, ".bin/acpx"), "--agent", self + " agent", "--approve-all", "exec", "x",
	}, []string{
		p.program, "run", "--agent", "speaker", "--transport", "acp", "--yolo", "-p", "x", "--output", "json",
	})
	return err
}

func median(all []time.Duration) time.Duration {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2].Round(10 * time.Microsecond)
}
