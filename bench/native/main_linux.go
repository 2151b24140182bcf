// Command native prints what a headless turn of the native agent costs beside other agents, all of them on the same
// instant model on this machine: the time to the first request, the whole time, the processor time with that of all
// children, and the peak of the memory; and beside the same turn in a new home, and without walls.
//
//	go run ./bench/native [-n 10] [-path DIR:DIR] [-against FILE]
//
// FILE is another build of omniagent: each of its turns is paired with one of this tree's. The other agents are looked
// for in -path, which is PATH if it is not given.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/testkit/measure"
)

func main() {
	n := flag.Int("n", 10, "run each agent `N` times, in turn")
	path := flag.String("path", os.Getenv("PATH"), "look for agents in these `DIRS`")
	against := flag.String("against", "", "another build of omniagent, a `FILE`")
	flag.Parse()
	if *n < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*n, *path, *against); err != nil {
		fmt.Fprintln(os.Stderr, "native:", err)
		os.Exit(1)
	}
}

// bench is one run of the program.
type bench struct {
	dir    string
	script modelserver.Backend
	server *modelserver.Server

	mu    sync.Mutex
	first time.Time
}

// contender is an agent, and its turns.
type contender struct {
	name    string
	driver  agent.Driver
	install agent.Install
	sandbox setting.Sandbox
	dir     string // of its turns; "": each has one of its own
	turns   []turn
}

type turn struct {
	first, whole, cpu time.Duration
	memory            int64
}

func run(n int, path, against string) error {
	dir, err := os.MkdirTemp("/var/tmp", "omniagent-native-") // codex refuses a home beneath the temporary directory
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{dir: dir}
	if b.script, err = modelserver.ParseScript([]byte(`[{"say":"hi"}]`)); err != nil {
		return err
	}
	if b.server, err = modelserver.Start(b, modelserver.Options{Key: "key"}); err != nil {
		return err
	}
	defer b.server.Close()
	program, err := measure.Build(".", "./cmd/omniagent", dir)
	if err != nil {
		return err
	}
	env := agent.Env{Lookup: func(name string) (string, bool) { return path, name == "PATH" }, Dir: dir}
	own := agent.Install{Path: program.File, RealPath: program.File}
	again := filepath.Join(dir, "again")
	contenders := []*contender{
		{name: "native", driver: native.New("", provider.APIs()), install: own, dir: again},
		{name: "in a new home", driver: native.New("", provider.APIs()), install: own},
	}
	if against != "" {
		contenders = slices.Insert(contenders, 1, &contender{
			name: "the other", driver: native.New("", provider.APIs()), install: agent.Install{
				Path:     against,
				RealPath: against,
			}, dir: filepath.Join(dir, "other"),
		})
	}
	contenders = append(contenders, &contender{
		name: "without walls", driver: native.New("", provider.APIs()), install: own, sandbox: setting.Off, dir: again,
	})
	for _, d := range []agent.Driver{codex.New(), claude.New()} {
		install, err := d.Locate(env)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		contenders = append(contenders, &contender{name: d.Name(), driver: d, install: install})
	}
	for range n {
		slices.Reverse(contenders[:2]) // neither of two builds is always the first
		for _, c := range contenders {
			t, err := b.turn(c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.driver.Name(), err)
			}
			c.turns = append(c.turns, t)
		}
	}
	i := slices.IndexFunc(contenders, func(c *contender) bool { return c.name == "native" })
	contenders[0], contenders[i] = contenders[i], contenders[0]
	return show(contenders, n, against != "")
}

// show prints a row for each contender, and how far two builds are apart.
func show(contenders []*contender, n int, compared bool) error {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "agent\tfirst request\twhole\tprocessor\tmemory\twhole of native / its\tprocessor of it / its\t")
	whole, cpu := func(t turn) time.Duration { return t.whole }, func(t turn) time.Duration { return t.cpu }
	own := contenders[0].turns
	for _, c := range contenders {
		first := median(c.turns, func(t turn) time.Duration { return t.first })
		fmt.Fprintf(out, "%s\t%v\t%v\t%v\t%d MiB\t%.2f\t%.2f\t\n", c.name, first.Round(time.Millisecond/10),
			median(c.turns, whole).Round(time.Millisecond/10), median(c.turns, cpu).Round(time.Millisecond/10),
			median(c.turns, func(t turn) int64 { return t.memory })>>20,
			ratios(own, c.turns, whole)[n/2], ratios(own, c.turns, cpu)[n/2])
	}
	if err := out.Flush(); err != nil || !compared {
		return err
	}
	other := ratios(own, contenders[1].turns, cpu)
	_, err := fmt.Printf("processor time of native / of the other: half of the pairs from %.2f to %.2f\n",
		other[n/4], other[n*3/4])
	return err
}

// ratios returns the sorted ratios of two turns, one right after the other.
func ratios(own, other []turn, of func(turn) time.Duration) []float64 {
	var all []float64
	for i := range own {
		all = append(all, float64(of(own[i]))/float64(of(other[i])))
	}
	slices.Sort(all)
	return all
}

// Answer keeps when a turn asked for the first time.
func (b *bench) Answer(ctx context.Context, r *modelserver.Request, w modelserver.Writer) error {
	b.mu.Lock()
	if b.first.IsZero() {
		b.first = time.Now()
	}
	b.mu.Unlock()
	return b.script.Answer(ctx, r, w)
}

func (b *bench) turn(c *contender) (turn, error) {
	d, in, dir := c.driver, c.install, c.dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp(b.dir, d.Name()); err != nil {
			return turn{}, err
		}
	}
	home, work, temp := filepath.Join(dir, "home"), filepath.Join(dir, "work"), filepath.Join(dir, "temp")
	for _, name := range []string{home, work, temp} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			return turn{}, err
		}
	}
	shared := setting.Defaults()
	shared.Output = setting.Chosen[setting.Output]{Value: setting.StreamJSON, Origin: setting.Typed}
	if c.sandbox != "" {
		shared.Sandbox = setting.Chosen[setting.Sandbox]{Value: c.sandbox, Origin: setting.Typed}
	}
	var passed []string
	if d.Name() == "codex" {
		passed = []string{"--skip-git-repo-check"}
	}
	l, _, err := d.Command(agent.Spec{
		Passthrough: passed,
		Install:     in, Mode: setting.OneShot, Shared: shared, Dir: work, Env: append(os.Environ(), "HOME="+home),
		Temp:    temp,
		Machine: agent.Machine{Root: os.Geteuid() == 0, OS: "linux", Has: func(string) bool { return false }},
		Fresh:   "5f0c7e1c-6d3c-4a8e-9f00-0123456789ab", Rehearsal: &agent.Rehearsal{
			URL: b.server.URL(), Key: "key",
			Model: "m", Home: home,
		},
	})
	if err != nil {
		return turn{}, err
	}
	for _, f := range l.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return turn{}, err
		}
		if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return turn{}, err
		}
	}
	cmd := exec.Command(l.Path, l.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin = l.Dir, l.Env, strings.NewReader("hello")
	b.mu.Lock()
	b.first = time.Time{}
	b.mu.Unlock()
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return turn{}, fmt.Errorf("%w\n%s", err, out)
	}
	t := turn{whole: time.Since(began)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.first = b.first.Sub(began); b.first.IsZero() {
		return turn{}, fmt.Errorf("it did not ask the model")
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.memory = usage.Maxrss << 10
		t.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return t, nil
}

func median[T cmp.Ordered](turns []turn, of func(turn) T) T {
	var all []T
	for _, t := range turns {
		all = append(all, of(t))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
