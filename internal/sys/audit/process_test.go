package audit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// The test binary is also the program that the tests start: real processes, not goroutines, share the log.
func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_TEST_WRITER"); path != "" {
		os.Exit(writer(path))
	}
	hermetic.InMemory()
	os.Exit(m.Run())
}

// writer waits for its standard input to end or to send a byte, then writes, saying each number after it is written. A
// count of 0 means until it is killed.
func writer(path string) int {
	maxBytes, _ := strconv.ParseInt(os.Getenv("AUDIT_TEST_BYTES"), 10, 64)
	count, _ := strconv.Atoi(os.Getenv("AUDIT_TEST_COUNT"))
	name := os.Getenv("AUDIT_TEST_NAME")
	_, _ = os.Stdin.Read(make([]byte, 1))
	for n := 0; count == 0 || n < count; n++ {
		l := Open(Options{Path: path, MaxBytes: maxBytes, Keep: -1}) // a Log for each entry, as each command has one
		e := Entry{
			Timestamp: time.Now(), RequestID: fmt.Sprintf("%s-%d", name, n), Command: "run", PID: os.Getpid(),
			Args: []string{"run", strings.Repeat("x", n%7*200)},
		}
		if err := l.Write(e); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if count == 0 {
			fmt.Println(n)
		}
	}
	return 0
}

func start(t *testing.T, path, name string, maxBytes, count int) (*exec.Cmd, io.WriteCloser, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AUDIT_TEST_WRITER="+path, "AUDIT_TEST_NAME="+name,
		"AUDIT_TEST_BYTES="+strconv.Itoa(maxBytes), "AUDIT_TEST_COUNT="+strconv.Itoa(count))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, stdin, stdout
}

func TestTwentyProcessesLoseNothingToRotation(t *testing.T) {
	const processes, each = 20, 50
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var cmds []*exec.Cmd
	var gates []io.Closer
	for p := range processes {
		cmd, stdin, _ := start(t, path, strconv.Itoa(p), 8<<10, each)
		cmds, gates = append(cmds, cmd), append(gates, stdin)
	}
	for _, gate := range gates { // all at once
		_ = gate.Close()
	}
	done := make(chan struct{})
	go func() { // readers meanwhile: no entry twice, none torn
		defer close(done)
		for range 20 {
			skipped, seen := 0, map[string]bool{}
			for e, err := range Open(Options{Path: path}).Entries(Filter{Skipped: &skipped}) {
				if err != nil || seen[e.RequestID] {
					t.Errorf("while they write: %s, %v", e.RequestID, err)
				}
				seen[e.RequestID] = true
			}
		}
	}()
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	<-done
	l := Open(Options{Path: path})
	skipped, seen := 0, map[string]int{}
	for e, err := range l.Entries(Filter{Skipped: &skipped}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[e.RequestID]++
	}
	if skipped != 0 {
		t.Errorf("%d lines are torn", skipped)
	}
	for p := range processes {
		for n := range each {
			if id := fmt.Sprintf("%d-%d", p, n); seen[id] != 1 {
				t.Errorf("%s is there %d times", id, seen[id])
			}
		}
	}
	if len(seen) != processes*each {
		t.Errorf("%d entries", len(seen))
	}
	if files := len(l.Files()); files < 30 {
		t.Errorf("only %d files: nothing was rotated", files)
	}
	// On a busy machine a writer may wait for the lock in vain: then its entry is there, without a hash.
	report := verify(t, l)
	for _, d := range report.Damage {
		if d.Kind != Unchained {
			t.Errorf("%+v", d)
		}
	}
	if report.Entries+report.Damaged != processes*each {
		t.Errorf("%+v", report)
	}
}

func TestKilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	said := map[string]bool{}
	for round := range 10 {
		name := strconv.Itoa(round)
		cmd, stdin, stdout := start(t, path, name, 20<<10, 0)
		_ = stdin.Close()
		lines := bufio.NewScanner(stdout)
		for n := 0; n < 20+round && lines.Scan(); n++ {
			said[name+"-"+lines.Text()] = true
		}
		_ = cmd.Process.Kill() // in the middle of something
		for lines.Scan() && lines.Text() != "" {
			said[name+"-"+lines.Text()] = true
		}
		_ = cmd.Wait()
	}
	l := Open(Options{Path: path, MaxBytes: 20 << 10, Keep: -1})
	mustWrite(t, l, entry(0)) // the lock of the killed is free, the torn line heals
	skipped, last := 0, ""
	for e, err := range l.Entries(Filter{Skipped: &skipped}) {
		if err != nil {
			t.Fatal(err)
		}
		delete(said, e.RequestID)
		last = e.RequestID
	}
	for id := range said {
		t.Errorf("%s was written and is gone", id)
	}
	if skipped > 10 || last != "r0" {
		t.Errorf("%d torn lines after 10 kills, last is %s", skipped, last)
	}
}
