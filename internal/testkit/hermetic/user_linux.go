package hermetic

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Ordinary is a user without privileges, and its group.
const Ordinary = 54321

// AsOrdinary returns a command that runs this test program as an ordinary user, in a directory of that user's. It skips
// the test if this process may not become somebody else.
func AsOrdinary(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can become somebody else")
	}
	dir, err := os.MkdirTemp("/var/tmp", "ordinary-user-") // where others may go
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, Ordinary, Ordinary); err != nil {
		t.Fatal(err)
	}
	// Another process copies it. A file that this one writes may be open in a child that was started meanwhile, and a
	// program that is open for writing cannot be started.
	program := filepath.Join(dir, "program")
	out, err := exec.CommandContext(t.Context(), "install", "-m", "755", self(t), program).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Ordinary, Gid: Ordinary}}
	return cmd
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
