package stuckprompt_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/sys/stuckprompt"
	"omniagent/internal/testkit/hermetic"
)

// supervise runs a shell script as an orchestrator runs a program, and returns the first prompt. The script's input is
// open and empty, or at its end.
func supervise(t *testing.T, script string, open bool) (*stuckprompt.Signal, time.Duration) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	input, keyboard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	defer keyboard.Close()
	if open {
		cmd.Stdin = input
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	info, err := input.Stat()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var tail []byte
	written := began
	ended := make(chan error, 1)
	go func() {
		block := make([]byte, 4<<10)
		for {
			n, err := output.Read(block)
			mu.Lock()
			tail, written = append(tail, block[:n]...), time.Now()
			mu.Unlock()
			if err != nil {
				ended <- cmd.Wait()
				return
			}
		}
	}()
	look := func(exited bool) *stuckprompt.Signal {
		mu.Lock()
		defer mu.Unlock()
		p := stuckprompt.Program{
			Stdout: stuckprompt.Stream{Tail: tail, Quiet: time.Since(written)},
			Stderr: stuckprompt.Stream{Quiet: time.Since(began)}, Exited: exited,
		}
		if !exited {
			p.Wait = stuckprompt.Waiting(info, withChildren(cmd.Process.Pid), time.Minute)
		}
		return stuckprompt.Detect(p)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if found := look(false); found != nil {
				_ = cmd.Process.Kill()
				<-ended
				return found, time.Since(began)
			}
		case err := <-ended:
			if err != nil && err != io.EOF {
				t.Logf("%s: %v", script, err)
			}
			return look(true), time.Since(began)
		}
	}
}

// withChildren returns a process and, where Linux tells them, its children.
func withChildren(pid int) []int {
	pids := []int{pid}
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(list)) {
		n, _ := strconv.Atoi(child)
		pids = append(pids, n)
	}
	return pids
}

// TestSupervised tries the package as its caller uses it.
func TestSupervised(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no shell on Windows")
	}
	const ask = `printf "What is your favorite color? "; read color; `
	for _, c := range []struct {
		name, script, want string
		open               bool
	}{
		{"waits", ask, "What is your favorite color?", true},
		{"answered by the end of input", ask + "exit 0", "What is your favorite color?", false},
		{"rests", `printf "What is your favorite color? "; exec sleep 600`, "What is your favorite color?", false},
		{"rests below it", `echo "Should I use tabs or spaces"; exec sleep 600`, "Should I use tabs or spaces", false},
		{"answers", "echo Which colour do you want?", "", true},
		{"works", `printf "Downloading: "; sleep 3; echo done`, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if slices.Contains([]string{"waits", "rests", "rests below it"}, c.name) && runtime.GOOS != "linux" {
				t.Skip("only Linux tells work from waiting")
			}
			found, took := supervise(t, c.script, c.open)
			got := ""
			if found != nil {
				got = found.Question
			}
			if got != c.want {
				t.Errorf("%+v", found)
			}
			if limit := hermetic.Patience; took > limit || c.open && got != "" && took < stuckprompt.Quiet {
				t.Errorf("took %v", took)
			}
		})
	}
}
