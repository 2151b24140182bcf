package budget

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/sys/guardwait"
	"omniagent/internal/testkit/hermetic"
)

// TestGuardWaitsBeforeAllElse: a guard that waits has not initialised what makes the program start slowly, and one that
// is left alone goes on to main and ends.
func TestGuardWaitsBeforeAllElse(t *testing.T) {
	program := built(t)
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	trace, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	cmd := exec.Command(program.File, "--"+guardwait.Name)
	cmd.Args[0] = guardwait.Name
	cmd.Env = []string{guardwait.Variable + "=1", "GODEBUG=inittrace=1"}
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirs}, trace
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for end := time.Now().Add(hermetic.Patience); ; time.Sleep(time.Millisecond) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		if strings.TrimSpace(string(name)) == guardwait.Name {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not wait")
		}
	}
	before, err := os.ReadFile(trace.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []string{"\ninit net/http ", "\ninit github.com/", "\ninit os "} {
		if bytes.Contains(before, []byte(heavy)) {
			t.Errorf("it waits behind%s", heavy[5:])
		}
	}
	_ = ours.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("left alone it ends with %v", err)
	}
	if after, _ := os.ReadFile(trace.Name()); !bytes.Contains(after, []byte("\ninit net/http ")) {
		t.Errorf("the trace does not tell what is initialised:\n%s", after)
	}
}
