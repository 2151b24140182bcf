// Package measure builds programs as they are released and measures their start: time, work done by package
// initialisation, size. The tests of the budgets and the programs below bench share it, so that both mean the same.
//
// It promises that programs to compare are run in turn (A B A B …), so that a change in the machine's load meets both,
// that the builds have no race detector, cgo or debug information, and that a run which fails is an error and not a
// fast run. It refuses to judge: limits are the caller's.
package measure

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sources of the programs to compare with: the least that Go can be, and the least that can speak HTTP.
const (
	Empty = "package main\n\nfunc main() {}\n"
	HTTP  = "package main\n\nimport _ \"net/http\"\n\nfunc main() {}\n"
)

// Wrapper is the least that can stand in front of another program: it starts it on its own streams, and ends as it
// ended. The program is its first argument.
const Wrapper = `package main

import (
	"os"
	"os/exec"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run()
	os.Exit(cmd.ProcessState.ExitCode())
}
`

// Program is a built program and how it is to be started.
type Program struct {
	Name string
	File string
	Args []string
	Env  []string // more of it, or instead of what we have
}

// Target is a system and a processor, as Go calls them.
type Target struct{ OS, Arch string }

// Here is the target that this runs on.
func Here() Target { return Target{runtime.GOOS, runtime.GOARCH} }

// Targets are those that the program is released for.
func Targets() []Target {
	return []Target{
		{"darwin", "amd64"},
		{"darwin", "arm64"},
		{"linux", "amd64"},
		{"linux", "arm64"},
		{"windows", "amd64"},
		{"windows", "arm64"},
	}
}

// Build builds a package of the module at root into the folder dir.
func Build(root, pkg, dir string) (Program, error) { return BuildFor(Here(), root, pkg, dir) }

// BuildFor is Build for another system or processor.
func BuildFor(target Target, root, pkg, dir string) (Program, error) {
	return build(target, root, pkg, filepath.Base(pkg), dir)
}

// BuildSource builds one source file that needs only the standard library.
func BuildSource(name, source, dir string) (Program, error) {
	module := filepath.Join(dir, name+".src")
	if err := os.MkdirAll(module, 0o755); err != nil {
		return Program{}, err
	}
	files := map[string]string{"go.mod": "module " + name + "\n\ngo 1.26.0\n", "main.go": source}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(module, file), []byte(text), 0o644); err != nil {
			return Program{}, err
		}
	}
	return build(Here(), module, ".", name, dir)
}

func build(target Target, root, pkg, name, dir string) (Program, error) {
	file := filepath.Join(dir, name)
	if target.OS == "windows" {
		file += ".exe"
	}
	// Flags on the command line win over those of GOFLAGS.
	cmd := exec.Command("go", "build", "-race=false", "-cover=false", "-buildvcs=false", "-trimpath", "-ldflags=-s -w",
		"-o", file, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+target.OS, "GOARCH="+target.Arch, "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return Program{}, fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return Program{Name: name, File: file}, nil
}

// With returns the program with other arguments.
func (p Program) With(args ...string) Program {
	p.Args = args
	return p
}

// In returns the program with more variables in its environment.
func (p Program) In(env ...string) Program {
	p.Env = env
	return p
}

// Size is that of the file in bytes.
func (p Program) Size() (int64, error) {
	info, err := os.Stat(p.File)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Times are the durations of the runs of one program, sorted.
type Times []time.Duration

// Median is the middle one, the earlier of two.
func (t Times) Median() time.Duration { return t[(len(t)-1)/2] }

// Min is the shortest.
func (t Times) Min() time.Duration { return t[0] }

// Runs starts each program n times in turn, after one run each that does not count, and returns their times in the
// order of the programs.
func Runs(n int, programs ...Program) ([]Times, error) {
	return runs(n, false, programs)
}

// Work is as Runs, but of the time that the processors had for the program and all that it started and waited for. The
// load of the machine changes that little.
func Work(n int, programs ...Program) ([]Times, error) {
	return runs(n, true, programs)
}

func runs(n int, work bool, programs []Program) ([]Times, error) {
	times := make([]Times, len(programs))
	for round := range n + 1 {
		for i, p := range programs {
			took, err := run(p, work)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				times[i] = append(times[i], took)
			}
		}
	}
	for _, t := range times {
		slices.Sort(t)
	}
	return times, nil
}

func run(p Program, work bool) (time.Duration, error) {
	cmd := exec.Command(p.File, p.Args...)
	cmd.Env = append(os.Environ(), p.Env...)
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", cmd, err)
	}
	if work {
		took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return took, nil
}

// Init is the work that a program's packages do before main.
type Init struct {
	Sum      time.Duration
	Packages []PackageInit // the heaviest first
}

// PackageInit is the share of one package.
type PackageInit struct {
	Path string
	Took time.Duration
}

// ThirdParty says whether the package is neither of the standard library nor of the module that is measured: only such
// paths begin with the name of a host.
func (p PackageInit) ThirdParty() bool {
	first, _, _ := strings.Cut(p.Path, "/")
	return strings.Contains(first, ".")
}

// Inits starts each program n times in turn with GODEBUG=inittrace=1 and returns the medians, of the sum and of each
// package, in the order of the programs.
func Inits(n int, programs ...Program) ([]Init, error) {
	sums := make([]Times, len(programs))
	shares := make([]map[string]Times, len(programs))
	for range n {
		for i, p := range programs {
			traced, err := trace(p)
			if err != nil {
				return nil, err
			}
			if shares[i] == nil {
				shares[i] = map[string]Times{}
			}
			var sum time.Duration
			for path, took := range traced {
				sum += took
				shares[i][path] = append(shares[i][path], took)
			}
			sums[i] = append(sums[i], sum)
		}
	}
	inits := make([]Init, len(programs))
	for i := range programs {
		slices.Sort(sums[i])
		inits[i].Sum = sums[i].Median()
		for path, times := range shares[i] {
			slices.Sort(times)
			inits[i].Packages = append(inits[i].Packages, PackageInit{path, times.Median()})
		}
		slices.SortFunc(inits[i].Packages, func(a, b PackageInit) int {
			return cmp.Or(cmp.Compare(b.Took, a.Took), strings.Compare(a.Path, b.Path))
		})
	}
	return inits, nil
}

func trace(p Program) (map[string]time.Duration, error) {
	cmd := exec.Command(p.File, p.Args...)
	cmd.Env = append(append(os.Environ(), p.Env...), "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	traced, err := parseTrace(stderr.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return traced, nil
}

// parseTrace reads lines such as
//
//	init internal/bytealg @0.008 ms, 0.003 ms clock, 0 bytes, 0 allocs
//
// and skips what else the program wrote.
func parseTrace(text string) (map[string]time.Duration, error) {
	traced := map[string]time.Duration{}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "init ")
		if !ok {
			continue
		}
		path, rest, ok1 := strings.Cut(rest, " @")
		_, rest, ok2 := strings.Cut(rest, " ms, ")
		clock, _, ok3 := strings.Cut(rest, " ms clock")
		ms, err := strconv.ParseFloat(clock, 64)
		if !ok1 || !ok2 || !ok3 || err != nil {
			continue
		}
		traced[path] += time.Duration(ms * float64(time.Millisecond))
	}
	if len(traced) == 0 {
		return nil, fmt.Errorf("no trace of package initialisation")
	}
	return traced, nil
}
