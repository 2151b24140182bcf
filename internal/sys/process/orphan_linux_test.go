package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestOrphans: what outlived its owner and its guard is found by its record and ended, and no other process is.
func TestOrphans(t *testing.T) {
	dir := t.TempDir()
	record, file := filepath.Join(dir, "session.jsonl"), temporary(t, "pid")
	cmd := startParent(t, "family", record, "escapes-stays", file)
	pid, err := awaitPID(t.Context(), file)
	check(t, err)
	pollUntilDone(t.Context(), func() bool { // the owner records the program when it has started
		text, _ := os.ReadFile(record)
		return bytes.HasSuffix(text, []byte("\n"))
	})
	if all, err := Orphans(dir); err != nil || len(all) > 0 {
		t.Fatalf("the owner lives: %+v %v", all, err)
	}
	check(t, cmd.Process.Signal(syscall.SIGSTOP)) // it would replace the guard
	check(t, syscall.Kill(guardOf(t, cmd.Process.Pid), syscall.SIGKILL))
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()

	// The same record, but of an owner that lives, of another PID namespace, with numbers of others, without a mark.
	good, err := os.ReadFile(record)
	check(t, err)
	ours, _ := identity(os.Getpid())
	us := fmt.Sprintf(`"owner":%d,"owner_identity":"%s"`, os.Getpid(), ours)
	dead := fmt.Sprintf(`{"owner":2147480000,"owner_identity":"b:1","pid_namespace":"%s",`, numberSpace("self"))
	for name, wrong := range map[string]string{
		"living owner": strings.Replace(string(good), fmt.Sprintf(`"owner":%d,"owner_identity":`, cmd.Process.Pid),
			us+`,"x":`, 1),
		"other numbers": strings.Replace(string(good), `"pid_namespace":"pid:[`, `"pid_namespace":"pid:[1`, 1),
		"stranger":      dead + fmt.Sprintf(`"pid":%d,"argv0":"x","identity":"b:1"}`, os.Getppid()),
		"any mark":      dead + `"pid":2147480000,"argv0":"x","identity":"b:1","mark":"P"}`,
	} {
		other := t.TempDir()
		check(t, os.WriteFile(filepath.Join(other, "x.jsonl"), []byte(wrong+"\n"), 0o600))
		if all, err := Orphans(other); err != nil || len(all) > 0 || wrong == string(good) {
			t.Errorf("%s: %+v %v", name, all, err)
		}
	}
	all, err := Orphans(dir)
	check(t, err)
	if len(all) != 1 || !slices.Contains(all[0].PIDs, pid) {
		t.Fatalf("got %+v, want %d", all, pid)
	}
	check(t, all[0].End())
	wantGone(t, pid)
	if all, err := Orphans(dir); err != nil || len(all) > 0 {
		t.Fatalf("got %+v %v", all, err)
	}
}
