// Command run measures what omniagent run adds to an agent: a program that prints one line, started alone and as a run,
// in turn.
//
//	go run ./bench/run -n 20
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	n := flag.Int("n", 20, "how often")
	files := flag.Int("files", 1000, "in the workspace")
	flag.Parse()
	if err := run(*n, *files); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

// place is a home with an agent, and a workspace.
type place struct {
	program, work string
	env           []string
}

func run(n, files int) error {
	base, err := os.MkdirTemp("", "omniagent-bench-run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	p, err := furnish(base, files)
	if err != nil {
		return err
	}
	if _, err := p.call(p.program, "agents", "allow", "quick"); err != nil {
		return err
	}
	var alone, ran []time.Duration
	for range n {
		a, err := p.call(filepath.Join(base, "bin", "quick"))
		if err != nil {
			return err
		}
		r, err := p.call(p.program, "run", "--agent", "quick", "--yolo", "-p", "x", "--output", "json")
		if err != nil {
			return err
		}
		alone, ran = append(alone, a), append(ran, r)
	}
	fmt.Printf("%d times, %d files in the workspace, medians\n", n, files)
	fmt.Printf("the agent alone   %8s\n", median(alone))
	fmt.Printf("as a run          %8s\n", median(ran))
	fmt.Printf("added             %8s\n", median(ran)-median(alone))
	return nil
}

// furnish builds the program, and makes an agent and a workspace.
func furnish(base string, files int) (place, error) {
	p := place{program: filepath.Join(base, "omniagent"), work: filepath.Join(base, "work")}
	home, bin := filepath.Join(base, "home"), filepath.Join(base, "bin")
	p.env = []string{"HOME=" + home, "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin"}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", p.program, "./cmd/omniagent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return p, fmt.Errorf("%w: %s", err, out)
	}
	texts := map[string]string{
		filepath.Join(bin, "quick"): "#!/bin/sh\ncat >/dev/null\necho done\n",
		filepath.Join(home, ".config/omniagent/agents/omniagent.config.json"): `{"targets":[{"id":"quick","cli":{` +
			`"prompt":{"type":"stdin"},"flags":{"approval":{"values":{"yolo":[]}}},` +
			`"modes":{"oneShot":{"command":"quick","args":[]},"interactive":{"command":"quick","args":[]}}}}]}`,
	}
	for i := range files {
		texts[filepath.Join(p.work, fmt.Sprintf("file-%d.txt", i))] = "text\n"
	}
	for path, text := range texts {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return p, err
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p place) call(argv ...string) (time.Duration, error) {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = p.work, p.env
	began := time.Now()
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return time.Since(began), err
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(10 * time.Microsecond)
}
