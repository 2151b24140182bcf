package chat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/testkit/hermetic"
)

// mostMemory is what a conversation may take, however much its agent prints.
const mostMemory = 64 << 20

// TestFlood: an agent that prints without an end costs little memory on a terminal too.
func TestFlood(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	kinds := []string{`yes "a line without a meaning"`, `yes endless | tr -d '\n'`}
	for i, script := range hermetic.InTurn(t, kinds, 1) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			p := newPlace(t, `[]`)
			bin := t.TempDir()
			p.write(filepath.Join(p.home, ".config/omniagent/agents/omniagent.config.json"), `{"targets":[{"id":"flood",
				"cli":{"prompt":{"type":"stdin"},"flags":{"approval":{"values":{"yolo":[],"prompt":[]}}},"modes":{
				"oneShot":{"command":"flood","args":[]},"interactive":{"command":"flood","args":[]}}}}]}`)
			body := []byte("#!/bin/sh\ncat >/dev/null\n" + script + " | head -c 300000000\n")
			if err := hermetic.WriteProgram(filepath.Join(bin, "flood"), body, 0o700); err != nil {
				t.Fatal(err)
			}
			p.env = append(p.env, "PATH="+bin+":"+os.Getenv("PATH"), "OMNIAGENT_AGENTS_WALLS=off")
			allow := exec.Command(program, "agents", "allow", "flood")
			allow.Dir, allow.Env = p.work, p.env
			if out, err := allow.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			p.drowns(t)
		})
	}
}

// drowns has a conversation with the agent flood, and measures it.
func (p *place) drowns(t *testing.T) {
	t.Helper()
	cmd := exec.Command(program, "chat", "--agent", "flood", "--permission-mode", "auto")
	cmd.Dir, cmd.Env = p.work, p.env
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	clock := time.AfterFunc(3*patience, func() { _ = cmd.Process.Kill() })
	defer clock.Stop()
	seen, peak, sent := "", int64(0), false
	for buffer := make([]byte, 64<<10); !strings.Contains(seen, "reached the limit"); {
		n, err := terminal.Read(buffer)
		if err != nil {
			t.Fatalf("%v: %q", err, seen)
		}
		seen = tail(seen + string(buffer[:n]))
		if !sent && strings.Contains(seen, "/help") {
			sent = true
			if _, err := terminal.WriteString("go\r"); err != nil {
				t.Fatal(err)
			}
		}
		peak = max(peak, peakOf(cmd.Process.Pid))
	}
	if peak == 0 || peak > mostMemory {
		t.Errorf("it took %d MiB", peak>>20)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_ = terminal.Close()
}

// peakOf returns the most memory that a process has had.
func peakOf(pid int) (bytes int64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, _ = fmt.Sscan(rest, &bytes)
		}
	}
	return bytes << 10
}
