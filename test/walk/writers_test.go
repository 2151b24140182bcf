//go:build unix

package walk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestTwentyWriters lets twenty processes change one file at once: patient ones, who all win, and hurried ones, who may
// lose but then know it. A loser has left nothing, a winner everything, and the file can be read at any time.
func TestTwentyWriters(t *testing.T) {
	for _, scope := range []string{"project", "global"} {
		for _, wait := range []string{"20s", "1ms"} {
			t.Run(scope+"/"+wait, func(t *testing.T) {
				t.Parallel()
				testWriters(t, scope == "global", wait)
			})
		}
		t.Run(scope+"/held", func(t *testing.T) {
			t.Parallel()
			testHeldLock(t, scope == "global")
		})
	}
}

const writers = 20

func testWriters(t *testing.T, global bool, wait string) {
	b := newBox(t)
	file := b.configFile(global)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	const comment = "# kept by everybody\n"
	must(t, os.WriteFile(file, []byte(comment), 0o644))
	start, done := make(chan struct{}), make(chan struct{})
	outcomes := make([]outcome, writers)
	var group, reader sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			<-start
			outcomes[i] = b.run(t, call{args: set(i, global), set: []string{"OMNIAGENT_LOCK_TIMEOUT=" + wait}})
		})
	}
	reader.Go(func() { // a concurrent reader sees a whole file
		for {
			select {
			case <-done:
				return
			default:
			}
			if text, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(text, []byte(comment)) ||
				!bytes.HasSuffix(text, []byte("\n")) {
				t.Errorf("the file is torn: %v %q", err, text)
				return
			}
			runtime.Gosched()
		}
	})
	close(start)
	group.Wait()
	close(done)
	reader.Wait()
	won := 0
	for i, o := range outcomes {
		e := commandNamed(t, "config.set").judge(t, o)
		stored := b.stored(t, i, global)
		switch {
		case o.code == 0 && stored == fmt.Sprintf("%ds", i+1):
			won++
		case o.code == 6 && stored == "":
			conflict(t, e, o)
		default:
			t.Errorf("exit status %d, and the file has %q\n%s", o.code, stored, o)
		}
	}
	if won == 0 || wait != "1ms" && won < writers {
		t.Errorf("%d of %d writers won with a patience of %s", won, writers, wait)
	}
}

// testHeldLock makes sure that there is a loser: the lock is held by this test.
func testHeldLock(t *testing.T, global bool) {
	b := newBox(t)
	if o := b.run(t, call{args: set(0, global)}); o.code != 0 {
		t.Fatalf("the first writer fails\n%s", o)
	}
	locks, err := filepath.Glob(filepath.Join(b.locks(), "*"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("the file of the lock is not where it is said to be: %v %v", locks, err)
	}
	held, err := os.OpenFile(locks[0], os.O_RDWR, 0)
	must(t, err)
	defer func() { _ = held.Close() }()
	must(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	before, _ := os.ReadFile(b.configFile(global))
	o := b.run(t, call{args: set(1, global), set: []string{"OMNIAGENT_LOCK_TIMEOUT=50ms"}})
	e := commandNamed(t, "config.set").judge(t, o)
	if o.code != 6 {
		t.Fatalf("a held lock is not a conflict\n%s", o)
	}
	conflict(t, e, o)
	if after, _ := os.ReadFile(b.configFile(global)); !bytes.Equal(before, after) {
		t.Errorf("the loser has changed the file to %q", after)
	}
	must(t, syscall.Flock(int(held.Fd()), syscall.LOCK_UN))
	if o := b.run(t, call{args: set(1, global)}); o.code != 0 {
		t.Errorf("the next writer fails\n%s", o)
	}
}

func conflict(t *testing.T, e envelope, o outcome) {
	t.Helper()
	after, _ := e.Error["retry_after_ms"].(float64)
	if e.Error["code"] != "CONCURRENT_MODIFICATION" || e.Error["retryable"] != true || after <= 0 {
		t.Errorf("the conflict does not say when to try again\n%s", o)
	}
}

func set(i int, global bool) []string {
	args := []string{"config", "set", fmt.Sprintf("context.writer%d.grace", i), fmt.Sprintf("%ds", i+1)}
	if global {
		args = append(args, "--global")
	}
	return args
}

func (b *box) configFile(global bool) string {
	if global {
		return filepath.Join(b.home, ".config/omniagent/config.toml")
	}
	return filepath.Join(b.project, ".omniagent/config.toml")
}

// stored is the value that one writer has in the file, or "".
func (b *box) stored(t *testing.T, i int, global bool) string {
	t.Helper()
	o := b.run(t, call{args: []string{
		"config", "get", "grace", "--config", b.configFile(global), "--context",
		fmt.Sprintf("writer%d", i),
	}})
	if o.code != 0 { // a context that nobody wrote
		if !strings.Contains(o.stdout, fmt.Sprintf("writer%d", i)) {
			t.Fatalf("the file cannot be read\n%s", o)
		}
		return ""
	}
	e := envelope{}
	must(t, json.Unmarshal([]byte(o.stdout), &e))
	if data := e.Data.(map[string]any); data["source"] != "default" {
		return fmt.Sprint(data["value"])
	}
	return ""
}

// TestKilledWriters kills processes with SIGKILL while they write, as soon as the new content begins to appear beside
// the old, OMNIAGENT_KILLS of them. What is left is the old content or the new one, and the next call works.
func TestKilledWriters(t *testing.T) {
	kills := hermetic.Often(t, "OMNIAGENT_KILLS", 12)
	b := newBox(t)
	file := b.configFile(true)
	padding := strings.Repeat("# a line that makes the file long\n", 20000)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(padding+"grace = \"1s\"\n"), 0o644))
	old, hit := "1s", 0
	for i := 2; hit < kills; i++ {
		if i > 20*kills {
			t.Fatalf("only %d of %d processes were caught while they wrote", hit, i)
		}
		value := fmt.Sprintf("%ds", i)
		if b.killWhileWriting(t, filepath.Dir(file), "config", "set", "grace", value, "--global") {
			hit++
		}
		text, err := os.ReadFile(file)
		must(t, err)
		switch string(text) {
		case padding + "grace = \"" + old + "\"\n":
		case padding + "grace = \"" + value + "\"\n":
			old = value
		default:
			t.Fatalf("after kill -9 the file is torn: %d bytes, end %q", len(text), text[max(0, len(text)-80):])
		}
	}
	o := b.run(t, call{args: []string{"config", "set", "grace", "1h", "--global"}})
	if commandNamed(t, "config.set").judge(t, o); o.code != 0 {
		t.Errorf("the call after them fails\n%s", o)
	}
	if text, _ := os.ReadFile(file); string(text) != padding+"grace = \"1h\"\n" {
		t.Errorf("the call after them wrote something else: end %q", text[max(0, len(text)-80):])
	}
}

// killWhileWriting starts the program and kills it when a second file appears in the directory. It says whether that
// came in time.
func (b *box) killWhileWriting(t *testing.T, dir string, args ...string) bool {
	t.Helper()
	before, err := os.ReadDir(dir)
	must(t, err)
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = b.project, b.environment(call{})
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for {
		select {
		case <-ended:
			return false
		default:
		}
		if now, err := os.ReadDir(dir); err == nil && len(now) > len(before) {
			_ = cmd.Process.Kill()
			<-ended
			return cmd.ProcessState.ExitCode() < 0
		}
	}
}
