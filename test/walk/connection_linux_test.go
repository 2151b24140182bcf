package walk

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestNoConnection shows that no command opens a connection, in three ways of falling reach. The first needs nothing of the machine:
// the functions that could open one are not part of the program. The second takes the network away and looks whether anything is
// missed. The third watches the system calls, of children too.
func TestNoConnection(t *testing.T) {
	t.Run("symbols", testNoSymbol)
	t.Run("namespace", testWithoutNetwork)
	t.Run("system_calls", testNoSystemCall)
}

func testNoSymbol(t *testing.T) {
	file, err := elf.Open(program)
	must(t, err)
	defer func() { _ = file.Close() }()
	symbols, err := file.Symbols()
	must(t, err)
	names := []string{}
	for _, s := range symbols {
		names = append(names, s.Name)
	}
	if !slices.Contains(names, "main.main") || !slices.Contains(names, "syscall.write") {
		t.Fatalf("the symbols cannot be read: %d of them", len(names))
	}
	opens := regexp.MustCompile(`^(net\.(Dial|\(\*(Dialer|sysDialer|Resolver|netFD)\)|socket|Lookup)|net/http\.|crypto/tls\.|syscall\.(connect|Connect|socket|Socket)$|golang\.org/x/sys/unix\.(connect|Connect|socket|Socket)$)`)
	for _, name := range names {
		if opens.MatchString(name) {
			t.Errorf("the program contains %s", name)
		}
	}
	self, err := os.Executable() // this test binary is linked with more: it shows that the pattern finds what is there
	must(t, err)
	if test, err := elf.Open(self); err == nil {
		defer func() { _ = test.Close() }()
		known, _ := test.Symbols()
		if len(known) > 0 && !slices.ContainsFunc(known, func(s elf.Symbol) bool { return strings.HasPrefix(s.Name, "syscall.") }) {
			t.Error("not even this test has symbols of syscall")
		}
	}
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
