package measure

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

func TestParseTrace(t *testing.T) {
	traced, err := parseTrace("version 1\ninit runtime @0.10 ms, 0.25 ms clock, 0 bytes, 0 allocs\n" +
		"init but no trace\ninit example.com/x/y @1.0 ms, 1.5 ms clock, 12 bytes, 3 allocs\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(traced) != 2 || traced["runtime"] != 250*time.Microsecond ||
		traced["example.com/x/y"] != 1500*time.Microsecond {
		t.Errorf("traced %v", traced)
	}
	if _, err := parseTrace("nothing\n"); err == nil {
		t.Error("no error for output without a trace")
	}
}

func TestThirdParty(t *testing.T) {
	for path, want := range map[string]bool{
		"runtime": false, "net/http": false, "omniagent/internal/kit/fault": false, "vendor/golang.org/x/net": false,
		"github.com/spf13/cobra": true, "golang.org/x/sys/unix": true,
	} {
		if got := (PackageInit{Path: path}).ThirdParty(); got != want {
			t.Errorf("%s: third party %v, want %v", path, got, want)
		}
	}
}

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	quick, err := BuildSource("quick", Empty, dir)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := BuildSource("slow", "package main\n\nimport \"time\"\n\nvar _ = wait()\n\n"+
		"func wait() int { time.Sleep(50 * time.Millisecond); return 0 }\n\nfunc main() {}\n", dir)
	if err != nil {
		t.Fatal(err)
	}
	times, err := Runs(3, quick, slow)
	if err != nil {
		t.Fatal(err)
	}
	if len(times[0]) != 3 || len(times[1]) != 3 || times[1].Min() < 50*time.Millisecond ||
		times[1].Min() > times[1].Median() {
		t.Errorf("times %v", times)
	}
	inits, err := Inits(3, quick, slow)
	if err != nil {
		t.Fatal(err)
	}
	if inits[1].Packages[0].Path != "main" || inits[1].Sum < 50*time.Millisecond || inits[0].Sum >= inits[1].Sum {
		t.Errorf("inits %+v", inits)
	}
	if size, err := quick.Size(); err != nil || size < 100_000 {
		t.Errorf("size %d, %v", size, err)
	}
}

func TestAFailedRunIsAnError(t *testing.T) {
	p, err := BuildSource("failing", "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(3) }\n", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Runs(1, p); err == nil {
		t.Error("Runs: no error")
	}
	if _, err := Inits(1, p); err == nil {
		t.Error("Inits: no error")
	}
	if _, err := BuildSource("broken", "package main\n", t.TempDir()); err == nil {
		t.Error("BuildSource: no error")
	}
	if err := os.Remove(p.File); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Size(); err == nil {
		t.Error("Size: no error")
	}
}

// TestShared: what several packages share is one build, and it is always that of the sources.
func TestShared(t *testing.T) {
	root, place := t.TempDir(), filepath.Join(t.TempDir(), "place")
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := hermetic.WriteProgram(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(root, "go.mod"), "module omniagent\n\ngo 1.26.0\n")
	status := func(dir string) int {
		p, err := shared(root, dir, place)
		if err != nil {
			t.Error(err)
			return -1
		}
		var exit *exec.ExitError
		if err := exec.Command(p.File).Run(); !errors.As(err, &exit) {
			t.Errorf("%s: %v", p.File, err)
			return -1
		}
		return exit.ExitCode()
	}
	whole := filepath.Join(place, "whole", "omniagent")
	if Here().OS == "windows" {
		whole += ".exe"
	}
	for _, want := range []string{"3", "4"} {
		put(filepath.Join(root, "cmd", "omniagent", "main.go"),
			"package main\n\nimport \"os\"\n\nfunc main() { os.Exit("+want+") }\n")
		var packages sync.WaitGroup
		for range 4 {
			dir := t.TempDir()
			packages.Go(func() {
				if got := status(dir); got != int(want[0]-'0') {
					t.Errorf("the program ends with %d, its source says %s", got, want)
				}
			})
		}
		packages.Wait()
	}
	before, err := os.Stat(whole)
	if err != nil {
		t.Fatal(err)
	}
	if status(t.TempDir()) != 4 {
		t.Error("it is another program")
	}
	if after, err := os.Stat(whole); err != nil || !os.SameFile(before, after) {
		t.Errorf("what was there already was linked once more: %v", err)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(place, "next", filepath.Base(whole)), string(text[:len(text)/2])) // a build that was killed
	if err := os.RemoveAll(filepath.Dir(whole)); err != nil {
		t.Fatal(err)
	}
	if status(t.TempDir()) != 4 {
		t.Error("half a program was taken for a whole one")
	}
}
