package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/sys/process"
	"omniagent/internal/walls/sandbox"
)

// job is work on files that a command does, after what is not measured.
type job struct {
	name   string
	before string          // a line of shell; "": nothing
	whole  func() []string // a program with its arguments
}

const (
	files = 10_000 // of a tree
	reads = 100_000
)

// jobs are those with many calls for files. The first is done by this program.
func jobs(self string) []job {
	shell := func(line string) func() []string {
		return func() []string { return []string{"sh", "-ec", line} }
	}
	return []job{
		{fmt.Sprintf("%d reads, %d writes and renames", reads, reads/10), "rm -rf built", func() []string {
			return []string{self, building}
		}},
		{
			fmt.Sprintf("unpack %d files", files), "rm -rf unpacked; mkdir unpacked",
			shell("tar xf tree.tar -C unpacked"),
		},
		{
			fmt.Sprintf("remove %d files", files), "mkdir -p unpacked; tar xf tree.tar -C unpacked",
			shell("rm -rf unpacked"),
		},
		{fmt.Sprintf("grep -r in %d files", files), "", shell("grep -r nonesuch tree || true")},
		{fmt.Sprintf("git status of %d files", files), "", shell("git status --porcelain")},
	}
}

// building is the argument by which this program does the first job.
const building = "build-as-a-compiler-does"

// build reads ten files for each that it writes under another name first, as compilers and package managers do.
func build() error {
	if err := os.Mkdir("built", 0o755); err != nil {
		return err
	}
	for i := range reads {
		if _, err := os.ReadFile(treeFile(i % files)); err != nil {
			return err
		}
		if i%10 != 0 {
			continue
		}
		name := fmt.Sprintf("built/%d", i)
		if err := os.WriteFile(name+".new", []byte(name), 0o644); err != nil {
			return err
		}
		if err := os.Rename(name+".new", name); err != nil {
			return err
		}
	}
	return nil
}

func treeFile(i int) string { return fmt.Sprintf("tree/%d/%d", i/100, i) }

// plant makes a tree, an archive of it and a repository.
func plant(dir string) error {
	text := strings.Repeat("a line of some forty characters, say so\n", 25)
	for i := range files {
		name := filepath.Join(dir, treeFile(i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	cmd := exec.Command("sh", "-ec", "tar cf tree.tar tree; git init -q .; git add -A tree; "+
		"git -c user.name=a -c user.email=a@b commit -qm 1; git status >/dev/null")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// work measures jobs in a new directory below base, alone and behind walls in turn.
func work(base string, rounds int) error {
	dir, err := os.MkdirTemp(base, "work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "root")
	for _, name := range []string{root, dir + "/temp", dir + "/state"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	if err := plant(root); err != nil {
		return err
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(root+"/self", self, 0o700) // where commands see it
	}
	if err != nil {
		return err
	}
	report := sandbox.Probe(context.Background(), sandbox.Options{Self: []string{"/bin/true"}})
	policy := sandbox.Policy{Root: root, Temp: dir + "/temp", Protected: []string{".vscode", ".claude"}}
	walls, err := sandbox.Open(policy, report, sandbox.Options{State: dir + "/state"})
	if err != nil {
		return err
	}
	defer walls.Close()
	none := job{whole: func() []string { return []string{"true"} }}
	start, err := none.inTurn(root, 4*rounds, walls)
	if err != nil {
		return err
	}
	fmt.Printf("of the times below, the start is taken off: %v alone, %v behind walls\n",
		start[0].median, start[1].median)
	for _, j := range jobs(root + "/self") {
		of, err := j.inTurn(root, rounds, walls)
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		for i, s := range start {
			of[i].median, of[i].least, of[i].processor = of[i].median-s.median, of[i].least-s.median,
				of[i].processor-s.processor
		}
		fmt.Printf("%s: alone %v, behind walls %v × %.2f; least of %d: %v, %v × %.2f; of a processor %v, %v × %.2f\n",
			j.name, of[0].median, of[1].median, ratio(of[0].median, of[1].median), rounds, of[0].least, of[1].least,
			ratio(of[0].least, of[1].least), of[0].processor, of[1].processor,
			ratio(of[0].processor, of[1].processor))
	}
	return nil
}

// inTurn does a job alone and behind walls.
func (j job) inTurn(root string, rounds int, walls *sandbox.Walls) ([]figures, error) {
	plain := func() (process.Plan, error) {
		argv := j.whole()
		path, err := exec.LookPath(argv[0])
		return process.Plan{Argv: argv, Path: path, Dir: root, Env: os.Environ()}, err
	}
	walled := func() (process.Plan, error) {
		p, err := plain()
		if err != nil {
			return p, err
		}
		return walls.Plan(p)
	}
	before := func() error {
		if j.before == "" {
			return nil
		}
		cmd := exec.Command("sh", "-ec", j.before)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	return inTurn(rounds, before, []func() (process.Plan, error){plain, walled})
}

func ratio(alone, behind time.Duration) float64 { return float64(behind) / float64(alone) }
