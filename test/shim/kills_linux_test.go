package shim

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestNothingSurvives ends the shim, or its guard, at random moments of its life, in front of an agent with descendants
// that ignore signals, leave the group, leave the session and lose their parents. Afterwards nothing that carries the
// test's mark may run.
func TestNothingSurvives(t *testing.T) {
	times := hermetic.Often(t, "OMNIAGENT_KILLS", 12)
	ways := []struct {
		name string
		end  func(shim int)
	}{
		{"TERM", func(shim int) { _ = syscall.Kill(shim, syscall.SIGTERM) }},
		{"INT", func(shim int) { _ = syscall.Kill(shim, syscall.SIGINT) }},
		{"HUP", func(shim int) { _ = syscall.Kill(shim, syscall.SIGHUP) }},
		{"KILL", func(shim int) { _ = syscall.Kill(shim, syscall.SIGKILL) }},
		{"KILL of the guard, then TERM", func(shim int) {
			for _, pid := range guardsOf(shim) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			_ = syscall.Kill(shim, syscall.SIGTERM)
		}},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, uint64(len(way.name))))
			for i := range times {
				after := time.Duration(random.Int64N(int64(40 * time.Millisecond)))
				if left := once(t, way.end, after, i%4 == 0); left != "" {
					t.Fatalf("moment %d, %v after the start, left:\n%s", i, after, left)
				}
			}
		})
	}
}

// once starts, ends and counts. settled waits until the agent is up before the clock starts.
func once(t *testing.T, end func(int), after time.Duration, settled bool) (left string) {
	t.Helper()
	w := newWorld(t)
	w.behave.Family = "parent"
	mark := fmt.Sprintf("OMNIAGENT_TEST_MARK=%d.%d", os.Getpid(), rand.Int64())
	w.env = []string{mark}
	if err := os.MkdirAll(filepath.Join(w.home, ".config/omniagent"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, ".config/omniagent/config.toml"), []byte("grace = \"50ms\"\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	cmd := w.command("--agent", "codex", "-p", "x")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if settled {
		_, _ = bufio.NewReader(out).ReadString('\n')
	}
	time.Sleep(after) // the moment itself, not a synchronisation
	end(cmd.Process.Pid)
	_ = cmd.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for {
		left = marked(mark)
		if left == "" || time.Now().After(deadline) {
			return left
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// marked lists the processes that have the mark in their environment.
func marked(mark string) string {
	var found strings.Builder
	for _, pid := range processes() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !bytes.Contains(env, []byte(mark)) {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && !strings.HasPrefix(rest, "Z") {
			fmt.Fprintf(&found, "%d %q %s\n", pid, line, stat)
		}
	}
	return found.String()
}

func processes() []int {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func guardsOf(shim int) []int {
	var guards []int
	for _, pid := range processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(shim) && bytes.Contains(line, []byte("guard")) {
			guards = append(guards, pid)
		}
	}
	return guards
}

// TestMemory: a prompt of 10 MiB passes through without being held.
func TestMemory(t *testing.T) {
	const limit = 20 << 10 // KiB, of the shim's own process
	for _, agent := range []string{"claude", "opencode"} {
		w := newWorld(t)
		w.behave.Echo = true
		cmd := w.command("--agent", agent)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = in.Write(bytes.Repeat([]byte("prompt "), 10<<20/7))
			_ = in.Close()
		}()
		first := make([]byte, 1)
		if _, err := out.Read(first); err != nil { // the agent reads, so all of ours has been set up
			t.Fatal(err)
		}
		n, peak := 1, 0
		buffer := make([]byte, 64<<10)
		for {
			peak = max(peak, highWater(cmd.Process.Pid))
			m, err := out.Read(buffer)
			n += m
			if err != nil {
				break
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if peak == 0 || peak > limit {
			t.Errorf("%s: peak %d KiB, at most %d", agent, peak, limit)
		}
		t.Logf("%s: %d bytes, peak %d KiB", agent, n, peak)
	}
}

func highWater(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(text), "VmHWM:")
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(strings.Fields(rest)[0])
	return n
}
