package walk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNoConnection shows that no command opens a connection, in two ways of falling reach. The first takes the network away and
// looks whether anything is missed. The second watches the system calls, of children too.
func TestNoConnection(t *testing.T) {
	t.Run("namespace", testWithoutNetwork)
	t.Run("system_calls", testNoSystemCall)
}

// testWithoutNetwork makes every call in a network namespace without any interface, and outside of it.
func testWithoutNetwork(t *testing.T) {
	alone := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
	probe := exec.Command("/bin/cat", "/proc/net/dev")
	probe.SysProcAttr = alone
	if out, err := probe.CombinedOutput(); err != nil || strings.Contains(string(out), "eth") {
		t.Skipf("this kernel gives no network namespace: %v", err)
	}
	for _, c := range commands(t) {
		b := furnished(t)
		typed := c.plain(t)
		cmd := execProgram(typed.args...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.Stdin = b.project, b.environment(call{}), alone, strings.NewReader(typed.stdin)
		if out, err := cmd.Output(); err != nil {
			t.Errorf("%s misses the network: %v\n%s", c.key, err, out)
		}
	}
}

func testNoSystemCall(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	if out, err := exec.Command(strace, "-f", "-o", trace, "/bin/true").CombinedOutput(); err != nil {
		t.Skipf("strace may not watch here: %s", out)
	}
	for _, c := range commands(t) {
		b := furnished(t)
		typed := c.plain(t)
		cmd := exec.Command(strace, append([]string{"-f", "-e", "trace=socket,connect,execve", "-o", trace, program}, typed.args...)...)
		cmd.Dir, cmd.Env, cmd.Stdin = b.project, b.environment(call{}), strings.NewReader(typed.stdin)
		if out, err := cmd.Output(); err != nil {
			t.Errorf("%s: %v\n%s", c.key, err, out)
		}
		text, err := os.ReadFile(trace)
		must(t, err)
		if !strings.Contains(string(text), "execve") {
			t.Fatalf("nothing was watched: %s", text)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "socket(") && !strings.Contains(line, "AF_UNIX") || strings.Contains(line, "connect(") && !strings.Contains(line, "AF_UNIX") {
				t.Errorf("%s: %s", c.key, line)
			}
		}
	}
}
