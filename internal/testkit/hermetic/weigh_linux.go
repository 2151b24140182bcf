package hermetic

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// weighing is the variable with which a test binary acts as the parent of a program. It names the file for the peak.
const weighing = "OMNIAGENT_TEST_WEIGHING"

// Weighed starts a command through a small process of its own, and returns what tells its peak of memory in bytes once
// it has ended. The system counts for a process also what its parent had when it was started, and the process of many
// tests has more than a program that they measure. TestMain has to call Weighing.
func Weighed(t testing.TB, cmd *exec.Cmd) (peak func() int64) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "peak")
	cmd.Args = append([]string{self, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Env = self, append(slices.Clip(cmd.Env), weighing+"="+file)
	return func() int64 {
		t.Helper()
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil || n == 0 {
			t.Fatalf("a peak of %q: %v", data, err)
		}
		return n
	}
}

// Weighing runs the program that Weighed asked for, and does not return then. Call it in TestMain, before the tests.
func Weighing() {
	file := os.Getenv(weighing)
	if file == "" {
		return
	}
	_ = os.Unsetenv(weighing)
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		err = os.WriteFile(file, strconv.AppendInt(nil, usage.Maxrss<<10, 10), 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(cmd.ProcessState.ExitCode())
}
