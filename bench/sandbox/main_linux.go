// Command sandbox prints what walls add to a command that ends at once, beside what bubblewrap adds with the same
// mounts. Both are started in the same way, without a guard since both end with us, and in turn; the command alone has
// one. Then it does the same for walls that hide names in a home directory and for those that show only places of it.
//
//	go run ./bench/sandbox [-n 100]
//	go run ./bench/sandbox -work DIR [-n 5]
//
// With -work it measures commands that read and write many files in a directory below DIR: a tmpfs shows what each
// call costs, a disk what is noticed of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/sys/process"
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
	if len(os.Args) > 1 && os.Args[1] == building {
		if err := build(); err != nil {
			fmt.Fprintln(os.Stderr, "sandbox:", err)
			os.Exit(1)
		}
		return
	}
	n := flag.Int("n", 100, "start each `N` times, in turn")
	dir := flag.String("work", "", "measure work on files beneath `DIR`")
	flag.Parse()
	measured := func() error { return run(*n) }
	if *dir != "" {
		measured = func() error { return work(*dir, *n) }
	}
	if err := measured(); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

// place is where the commands run.
type place struct {
	root, temp, hidden, state string
	protected                 []string
}

// newPlace has a workspace in which all protected names are there: bubblewrap would leave behind what it makes for
// those that are absent.
func newPlace(dir string) (place, error) {
	p := place{
		dir + "/root", dir + "/temp", dir + "/hidden", dir + "/state",
		[]string{".git/hooks", ".claude", ".codex", ".vscode"},
	}
	dirs := []string{p.root + "/refs", p.temp, p.hidden, p.state}
	for _, name := range p.protected {
		dirs = append(dirs, filepath.Join(p.root, name))
	}
	for _, each := range dirs {
		if err := os.MkdirAll(each, 0o700); err != nil {
			return p, err
		}
	}
	for _, name := range []string{".git/config", ".git/commondir"} {
		p.protected = append(p.protected, name)
		if err := os.WriteFile(filepath.Join(p.root, name), nil, 0o600); err != nil {
			return p, err
		}
	}
	return p, nil
}

// bubble is how bubblewrap is told the same.
func (p place) bubble(program string) []string {
	argv := []string{
		"bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev",
		"--tmpfs", "/dev/shm", "--proc", "/proc",
		"--bind", p.temp, "/tmp", "--bind", p.temp, "/var/tmp", "--bind", p.temp, p.temp, "--bind", p.root, p.root,
		"--bind", p.root + "/.git", p.root + "/.git",
	}
	for _, name := range p.protected {
		path := filepath.Join(p.root, name)
		argv = append(argv, "--ro-bind", path, path)
	}
	return append(argv, "--tmpfs", p.hidden, "--remount-ro", p.hidden, "--chdir", p.root, program)
}

// furnished makes a home directory as a developer has it.
func furnished(home string) error {
	for _, name := range []string{
		// credentials
		".ssh", ".aws", ".gnupg", ".kube", ".config/gh", ".config/gcloud", ".mozilla", ".config/chromium",
		".cache/go-build", "go/pkg/mod", "go/pkg/sumdb", "go/bin", ".npm/_cacache", ".cargo/bin", ".cargo/registry",
		".rustup", ".nvm", ".local/bin", ".local/lib/python3.12", ".cache/pip", ".pyenv", ".m2/repository",
	} {
		if err := os.MkdirAll(filepath.Join(home, name), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// homes compares ways to keep what lies in a home directory from commands.
func (p place) homes(n int, report sandbox.Report) error {
	home := p.root + "-home"
	if err := furnished(home); err != nil {
		return err
	}
	limits, err := policy.Wanted{Root: p.root, Home: home, Temp: p.temp}.Policy()
	if err != nil {
		return err
	}
	limits.Protected = p.protected
	masked, none, places := limits, limits, limits
	masked.Homes, masked.Places, masked.Hidden = nil, nil, policy.Credentials(nil, home)
	none.Homes, none.Places = nil, nil
	places.Homes, places.Places = places.Homes[:1], nil // the usual case: HOME is that of the account
	shown := places
	for _, place := range limits.Places {
		if !strings.HasPrefix(place.Path, home) {
			continue
		}
		if places.Places = append(places.Places, place); place.Visibility == sandbox.Shown {
			shown.Places = append(shown.Places, place)
		}
	}
	plain := process.Plan{Argv: []string{"true"}, Path: "/bin/true", Dir: p.root, Env: os.Environ()}
	var ways []func() (process.Plan, error)
	for _, limits := range []sandbox.Policy{none, masked, shown, places} {
		walls, err := sandbox.Open(limits, report, sandbox.Options{State: p.state})
		if err != nil {
			return err
		}
		defer walls.Close()
		ways = append(ways, func() (process.Plan, error) { return walls.Plan(plain) })
	}
	of, err := inTurn(n, nil, ways)
	if err != nil {
		return err
	}
	fmt.Printf(
		"behind walls with no names hidden %v, with credentials hidden by name %v, with a home of shown places %v, "+
			"of all places %v; all places against names × %.2f\n",
		of[0].median, of[1].median, of[2].median, of[3].median,
		float64(of[3].median)/float64(of[1].median))
	return nil
}

func run(n int) error {
	wrap, err := exec.LookPath("bwrap")
	if err != nil {
		return err
	}
	base, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(base, ".omniagent-bench-") // not beneath /tmp, which commands do not see
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := newPlace(dir)
	if err != nil {
		return err
	}
	report := sandbox.Probe(context.Background(), sandbox.Options{Self: []string{"/bin/true"}})
	walls, err := sandbox.Open(sandbox.Policy{
		Root: p.root, Temp: p.temp, Hidden: []string{p.hidden},
		Protected: p.protected,
	}, report, sandbox.Options{State: p.state})
	if err != nil {
		return err
	}
	defer walls.Close()
	plain := process.Plan{Argv: []string{"true"}, Path: "/bin/true", Dir: p.root, Env: os.Environ()}
	wrapped := plain
	wrapped.Argv, wrapped.Path, wrapped.Bound = p.bubble(plain.Path), wrap, true
	ways := []func() (process.Plan, error){
		func() (process.Plan, error) { return plain, nil },
		func() (process.Plan, error) { return wrapped, nil },
		func() (process.Plan, error) { return walls.Plan(plain) },
	}
	of, err := inTurn(n, nil, ways)
	if err != nil {
		return err
	}
	alone, bubblewrap, ours := of[0].median, of[1].median, of[2].median
	fmt.Printf("alone %v, behind bubblewrap %v, behind walls (%s) %v; whole time × %.2f, what is added × %.2f\n", alone,
		bubblewrap, walls.Enforced().Name, ours,
		float64(ours)/float64(bubblewrap), float64(ours-alone)/float64(bubblewrap-alone))
	fmt.Printf("time of a processor: %v, %v, %v; × %.2f\n", of[0].processor, of[1].processor, of[2].processor,
		float64(of[2].processor)/float64(of[1].processor))
	return p.homes(n, report)
}

// figures are those of a way to start a program: the whole time, and the least time of a processor, which other work on
// the machine changes little.
type figures struct{ median, least, processor time.Duration }

// inTurn starts each way n times, in turn. What is done before each is not measured.
func inTurn(
	n int, before func() error, ways []func() (process.Plan, error),
) ([]figures, error) {
	times, processor := make([][]time.Duration, len(ways)), make([][]time.Duration, len(ways))
	for range n {
		for i, way := range ways {
			if before != nil {
				if err := before(); err != nil {
					return nil, err
				}
			}
			used := usedByChildren()
			took, err := measure(way)
			if err != nil {
				return nil, err
			}
			times[i], processor[i] = append(times[i], took), append(processor[i], usedByChildren()-used)
		}
	}
	var all []figures
	for i, took := range times {
		slices.Sort(took)
		all = append(all, figures{
			took[n/2].Round(10 * time.Microsecond), took[0].Round(10 * time.Microsecond),
			slices.Min(processor[i]).Round(10 * time.Microsecond),
		})
	}
	return all, nil
}

func usedByChildren() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func measure(way func() (process.Plan, error)) (time.Duration, error) {
	began := time.Now()
	p, err := way()
	if err != nil {
		return 0, err
	}
	c, err := process.Start(p)
	if err != nil {
		return 0, err
	}
	if e := c.Wait(); e.ExitCode != 0 {
		return 0, fmt.Errorf("%q: exit %d %s", p.Argv, e.ExitCode, e.Signal)
	}
	return time.Since(began), nil
}
