package run

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// small mounts a file system of a MiB over a directory of the home, with so many KiB free.
func (p *place) small(dir string, free int) (filler string) {
	p.t.Helper()
	path := filepath.Join(p.home, dir)
	if err := os.MkdirAll(path, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, "mode=700,size=1m"); err != nil {
		p.t.Skip("a small file system cannot be mounted here: ", err)
	}
	p.t.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
	filler = filepath.Join(path, "filler")
	if err := os.WriteFile(filler, make([]byte, (1024-free)<<10), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return filler
}

// flood is an agent that prints lines, and notes each start of it.
func flood(lines int) (script, output string) {
	var all strings.Builder
	for i := range lines {
		fmt.Fprintf(&all, "line %d of a text that fills what it flows into, however long that takes\n", i+1)
	}
	return fmt.Sprintf(`cat >/dev/null; echo x >>starts; i=0
while [ $i -lt %d ]; do i=$((i+1)); echo "line $i of a text that fills what it flows into, however long that takes"
done; echo done`, lines), all.String() + "done\n"
}

// TestFullDisk: the disk is full in the middle of a run. The call says so, nothing lives on, and when there is room the
// run has one end; what was kept is what the agent wrote.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	script, output := flood(4000)
	for _, c := range []struct{ name, dir string }{{"the records", ".local/state"}, {"the conversation", ".yume"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			filler := p.small(c.dir, 128)
			p.agent("printer", script)
			a := p.run("printer", "--yolo")
			if a.Code != 1 || a.Error == nil || a.Error.Code != "DISK_FULL" || a.Data.Status != "failed" ||
				a.Data.Reason != "failed" || p.read("starts") != "x\n" {
				t.Errorf("%s", a)
			}
			if !strings.Contains(a.Stderr+a.Stdout, "no space left") {
				t.Errorf("it does not say why: %s", a.Stderr)
			}
			p.nothing()
			if list := p.call("runs", "list"); list.Code != 0 { // there is no room for the end yet
				t.Errorf("%s", list)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			shown := p.call("runs", "show", a.Data.ID)
			if s := shown.Data.Status; s != "failed" && s != "unknown_outcome" {
				t.Errorf("%s", shown)
			}
			p.stays(a.Data.ID)
			raw, err := p.command("runs", "logs", a.Data.ID, "--raw", "stdout").Output()
			if err != nil || len(raw) == 0 || !strings.HasPrefix(output, string(raw)) {
				t.Errorf("%v, %d bytes: %.200q", err, len(raw), raw)
			}
		})
	}
	t.Run("an apply", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		large := make([]byte, 300<<10)
		_, _ = rand.NewChaCha8([32]byte{}).Read(large)
		p.put("large", string(large))
		p.git("init", "-q")
		p.git("add", ".")
		p.git("commit", "-q", "-m", "first")
		if out, err := p.command("fork", "run", "--name", "try", "--", "rm", "large").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		filler := p.small(".local/state/omniagent/undo", 64)
		a := p.call("fork", "apply", "try")
		if a.Code != 1 || a.Error == nil || a.Error.Code != "DISK_FULL" || p.read("large") != string(large) {
			t.Errorf("%s", a)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		p.fork(0, "fork", "apply", "try")
		if p.read("large") != "" {
			t.Error("it is still there")
		}
	})
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		filler := p.small(".local/state", 128)
		p.agent("printer", script)
		f, err := os.OpenFile(filler, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = f.Write(make([]byte, 4<<10))
		}
		_ = f.Close()
		a := p.run("printer", "--yolo")
		if a.Code != 1 || a.Error == nil || a.Error.Code != "DISK_FULL" || p.read("starts") != "" ||
			strings.Contains(a.Stdout+a.Stderr, "runs retry") { // there is no record of it
			t.Errorf("%s", a)
		}
		p.nothing()
	})
}

// stays checks that nothing changes the end of a run.
func (p *place) stays(id string) {
	p.t.Helper()
	record := filepath.Join(p.home, ".local/state/omniagent/runs", id, "run.json")
	first, err := os.ReadFile(record)
	if err != nil {
		p.t.Fatal(err)
	}
	if again := p.call("runs", "cancel", id); again.Code != 0 {
		p.t.Errorf("%s", again)
	}
	if second, _ := os.ReadFile(record); !bytes.Equal(first, second) {
		p.t.Errorf("an end was changed:\n%s\n%s", first, second)
	}
}

// TestSuspended: a process that is stopped has not died. The agent does not count as silent while our process stands.
func TestSuspended(t *testing.T) {
	t.Parallel()
	t.Run("supervisor", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t).agent("busy", `echo x >>starts; i=0
while [ ! -e enough ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done; echo done`)
		a := p.run("busy", "--yolo", "--detach", "--idle-timeout", "1s")
		p.reaches(a.Data.ID, "running")
		p.exists("starts")
		_ = syscall.Kill(a.Data.PID, syscall.SIGSTOP)
		p.stopped(a.Data.PID)
		time.Sleep(2500 * time.Millisecond) // more than twice the clock of silence
		if shown := p.call("runs", "show", a.Data.ID); shown.Data.Status != "running" || shown.Data.Owner == nil {
			t.Errorf("%s", shown)
		}
		_ = syscall.Kill(a.Data.PID, syscall.SIGCONT)
		p.put("enough", "")
		p.over(a.Data.ID).is(t, 0, "succeeded", "done")
		raw, err := p.command("runs", "logs", a.Data.ID, "--raw", "stdout").Output()
		if told := p.told(a.Data.ID); err != nil || told != string(raw) || !strings.HasSuffix(told, "\ndone\n") {
			t.Errorf("%v: %q\n%q", err, told, raw)
		}
		if p.read("starts") != "x\n" {
			t.Errorf("starts: %q", p.read("starts"))
		}
		p.nothing()
	})
	t.Run("agent", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t).agent("busy", `echo x >>starts; kill -STOP $$; echo done`)
		p.run("busy", "--yolo", "--idle-timeout", "500ms").is(t, 10, "stalled", "idle")
		if p.read("starts") != "x\n" {
			t.Errorf("starts: %q", p.read("starts"))
		}
		p.nothing()
	})
	t.Run("agent that goes on", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t).agent("busy", `echo $$ >outside; (sleep 0.3; kill -CONT $$) & kill -STOP $$; echo done`)
		p.run("busy", "--yolo").is(t, 0, "succeeded", "done")
		p.nothing()
	})
}

// stopped waits until a process stands, dead until all of its threads are gone.
func (p *place) stopped(pid int) {
	p.when(pid, func(status string, _ int) bool { return status == "T" })
}

func (p *place) dead(pid int) {
	p.when(pid, func(status string, threads int) bool { return status == "" || status == "Z" && threads < 2 })
}

func (p *place) when(pid int, is func(status string, threads int) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		status := ""
		if fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]); len(fields) > 0 {
			status = string(fields[0])
		}
		if is(status, len(threads)) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("process %d does not get there: %s", pid, data)
		}
	}
}

// TestReaderStops: a reader that pauses delays neither the agent nor other readers, and gets everything when it reads
// on. The agent does not count as silent meanwhile.
func TestReaderStops(t *testing.T) {
	t.Parallel()
	script, output := flood(4000)
	p := newPlace(t).agent("printer", script)
	cmd := p.command("run", "--agent", "printer", "--yolo", "-p", "x", "--stream", "--idle-timeout", "1s")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	id := p.appears()
	stuck := p.command("runs", "watch", id)
	slow, err := stuck.StdoutPipe()
	if err == nil {
		err = stuck.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.wrote(id, len(output)) // although no byte was read
	time.Sleep(2500 * time.Millisecond)
	var all, watched bytes.Buffer
	if _, err := all.ReadFrom(out); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, all.Bytes()[max(0, all.Len()-2000):])
	}
	if _, err := watched.ReadFrom(slow); err != nil {
		t.Error(err)
	}
	if err := stuck.Wait(); err != nil {
		t.Error(err)
	}
	p.call("runs", "show", id).is(t, 0, "succeeded", "done")
	if got := texts(watched.Bytes()); got != output {
		t.Errorf("the watcher got %d bytes of %d", len(got), len(output))
	}
	if got := texts(all.Bytes()); got != output {
		t.Errorf("the caller got %d bytes of %d", len(got), len(output))
	}
	p.nothing()
}

// wrote waits until so many bytes of the agent are kept.
func (p *place) wrote(id string, size int) {
	p.t.Helper()
	file := filepath.Join(p.home, ".local/state/omniagent/runs", id, "stdout")
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		info, err := os.Stat(file)
		if err == nil && info.Size() >= int64(size) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the agent does not get rid of its output: %v, %v", info, err)
		}
	}
}

// TestAnotherBoot: all died, and the machine was started again: its boot has another id, and its clock begins at
// another time. The first command knows what is true, and a question is still open.
func TestAnotherBoot(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("mute", `echo x >>starts; sleep 1000`).
		model(`[{"ask":"Which colour?"},{"say":"it was ${result}"}]`)
	boot := filepath.Join(p.home, "boot_id")
	p.put(boot, "11111111-2222-3333-4444-555555555555\n")
	later := func(args ...string) *exec.Cmd {
		cmd := exec.Command("unshare", append([]string{
			"--mount", "--time", "--boottime=-1000", "--fork", "sh", "-c",
			`mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`, boot,
		}, args...)...)
		cmd.Dir, cmd.Env = p.work, p.env
		return cmd
	}
	if out, err := later("true").CombinedOutput(); err != nil {
		t.Skipf("no other boot can be shown here: %v %s", err, out)
	}
	call := func(args ...string) answer {
		return p.ended(later(append([]string{program}, append(args, "--output", "json")...)...))
	}
	a := p.run("mute", "--yolo", "--detach")
	p.reaches(a.Data.ID, "running")
	p.exists("starts")
	q := p.call("run", "--agent", "native", "-m", "m", "--provider", "openai", "-p", "go", "--detach")
	p.reaches(q.Data.ID, "needs_input")
	for _, pid := range []int{a.Data.PID, q.Data.PID} {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		p.dead(pid)
	}
	began := time.Now()
	call("runs", "show", a.Data.ID).is(t, 0, "unknown_outcome", "owner_died")
	open := call("runs", "show", q.Data.ID)
	if took := time.Since(began); took > patience/6 {
		t.Errorf("known after %s", took)
	}
	if open.Data.Status != "needs_input" || len(open.Data.Questions) != 1 {
		t.Errorf("%s", open)
	}
	p.stays(a.Data.ID)
	b := call("answer", q.Data.ID, "blue")
	if b.Data.Status == "needs_input" || b.Data.Attempts != 2 {
		t.Errorf("%s", b)
	}
	if c := call("answer", q.Data.ID, "red"); c.Code != 6 {
		t.Errorf("%s", c)
	}
	if p.read("starts") != "x\n" {
		t.Errorf("starts: %q", p.read("starts"))
	}
	p.nothing()
}
