package walk

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestNoConnection shows that no command but start, chat, acp and mcp opens a connection, in two ways of falling reach.
// The first takes the network away and looks whether anything is missed. The second watches the system calls, of
// children too. They talk to the model API that the caller names, and to nothing else; a call of theirs that asks no
// model connects no more than any other.
func TestNoConnection(t *testing.T) {
	t.Run("declared", testDeclaredNetwork)
	t.Run("namespace", testWithoutNetwork)
	t.Run("system_calls", testNoSystemCall)
	t.Run("model_alone", testModelAlone)
	t.Run("demo_alone", testDemoAlone)
}

// talkers are the commands that talk to a model. One more would be news for the decision that names them.
func talkers() []string {
	return []string{"acp", "answer", "chat", "mcp", "review", "run", "runs.continue", "runs.retry", "start"}
}

func testDeclaredNetwork(t *testing.T) {
	declared := []string{}
	for _, c := range commands(t) {
		if c.ext.Network {
			declared = append(declared, c.key)
		}
	}
	if !slices.Equal(declared, talkers()) {
		t.Errorf("has_network_io is true of %v, and %v connect", declared, talkers())
	}
}

// testDemoAlone: the demo talks to the scripted model that it has started, on this machine, and to nobody else.
func testDemoAlone(t *testing.T) {
	asked := false
	for _, line := range watched(t, "demo", commandNamed(t, "demo").plain(t)) {
		if !strings.Contains(line, "connect(") && !strings.Contains(line, "sendto(") {
			continue
		}
		if !strings.Contains(line, `sin_addr=inet_addr("127.0.0.1")`) {
			t.Errorf("demo: %s", line)
		}
		asked = true
	}
	if !asked {
		t.Error("its model was not asked, so nothing was shown")
	}
}

// silent are calls that talk to nobody: one of each command, and what the talkers do without a model. A run starts an
// agent, and the one that is here asks nobody.
func silent(t *testing.T) map[string][]call {
	t.Helper()
	calls := map[string][]call{}
	for _, c := range commands(t) {
		// A fork has a network of its own.
		apart := []string{"demo", "fork.open", "fork.run"}
		if !slices.Contains(apart, c.key) && (!slices.Contains(talkers(), c.key) || c.ext.Class == "envelope") {
			calls[c.key] = []call{c.plain(t)}
			continue
		}
		for _, args := range [][]string{{"--help"}, {"--schema"}} {
			calls[c.key] = append(calls[c.key], call{args: append(c.words(), args...)})
		}
	}
	return calls
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
	for key, calls := range silent(t) {
		for _, typed := range calls {
			b := furnished(t, commandNamed(t, key))
			cmd := execProgram(typed.args...)
			cmd.Dir, cmd.Env, cmd.SysProcAttr, cmd.Stdin = b.project, b.environment(call{}), alone,
				strings.NewReader(typed.stdin)
			if out, err := cmd.Output(); err != nil {
				t.Errorf("%s misses the network: %v\n%s", key, err, out)
			}
		}
	}
}

// tracer returns the file of strace, or why it cannot be used here.
var tracer = sync.OnceValues(func() (file, why string) {
	file, err := exec.LookPath("strace")
	if err != nil {
		return "", "strace is not installed"
	}
	if out, err := exec.Command(file, "-f", "-o", "/dev/null", "/bin/true").CombinedOutput(); err != nil {
		return "", "strace may not watch here: " + string(out)
	}
	return file, ""
})

// watched makes a call and returns the lines of its sockets and connections.
func watched(t *testing.T, key string, typed call) []string {
	t.Helper()
	strace, why := tracer()
	if why != "" {
		t.Skip(why)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	b := furnished(t, commandNamed(t, key))
	cmd := exec.Command(strace, append([]string{"-f", "-e", "trace=socket,connect,sendto,execve", "-o", trace, program},
		typed.args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = b.project, b.environment(call{}), strings.NewReader(typed.stdin)
	if out, err := cmd.Output(); err != nil {
		t.Errorf("omniagent %v: %v\n%s", typed.args, err, out)
	}
	text, err := os.ReadFile(trace)
	must(t, err)
	if !strings.Contains(string(text), "execve") {
		t.Fatalf("nothing was watched: %s", text)
	}
	lines := []string{}
	for _, line := range joined(string(text)) {
		if !strings.Contains(line, "execve(") && !strings.Contains(line, "AF_UNIX") && strings.ContainsAny(line, "(") {
			lines = append(lines, line)
		}
	}
	return lines
}

// joined are the lines of a trace. What came between the beginning of a call and its end has torn it in two.
func joined(trace string) []string {
	list, begun := []string{}, map[string]string{}
	for line := range strings.Lines(trace) {
		pid, what, _ := strings.Cut(line, " ")
		what = strings.TrimSpace(what)
		if before, torn := strings.CutSuffix(what, "<unfinished ...>"); torn {
			begun[pid] = before
			continue
		}
		if _, rest, resumed := strings.Cut(what, " resumed>"); resumed && strings.HasPrefix(what, "<... ") {
			what = begun[pid] + rest
			delete(begun, pid)
		}
		list = append(list, pid+" "+what+"\n")
	}
	for pid, before := range begun { // it never ended: nobody knows that it was refused
		list = append(list, pid+" "+before+"\n")
	}
	return list
}

// refusal reports whether a call got no socket. The trial of walls asks for some to see them refused; nothing leaves by
// those.
func refusal(line string) bool {
	return strings.Contains(line, "socket(") &&
		(strings.Contains(line, "= -1 EPERM ") || strings.Contains(line, "= -1 EAFNOSUPPORT "))
}

func testNoSystemCall(t *testing.T) {
	for key, calls := range silent(t) {
		for _, typed := range calls {
			for _, line := range watched(t, key, typed) {
				if (strings.Contains(line, "socket(") || strings.Contains(line, "connect(")) && !refusal(line) {
					t.Errorf("%s: %s", key, line)
				}
			}
		}
	}
}

// testModelAlone lets the talkers talk, and looks with whom. Sockets of the network that connect nowhere are how Go
// finds out what the machine can do.
func testModelAlone(t *testing.T) {
	for _, key := range talkers() {
		c := commandNamed(t, key)
		if _, has := c.Flags["model"]; c.ext.Class == "stream" && c.serves() || !has || key == "review" {
			continue // it talks when it is asked to, or continues a run or is one, as the others do
		}
		base := says(t)
		_, port, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(base, "/v1"), "http://"), ":")
		model := "sin_port=htons(" + port + `), sin_addr=inet_addr("127.0.0.1")`
		typed := c.talk(t, base)
		if _, can := c.Flags["plain"]; can {
			typed.args, typed.stdin = append(typed.args, "--plain"), "hello\n"
		}
		asked := false
		for _, line := range watched(t, key, typed) {
			asked = asked || strings.Contains(line, "connect(") && strings.Contains(line, model)
			to := strings.Contains(line, "connect(") || strings.Contains(line, "sendto(") &&
				strings.Contains(line, "sin")
			if to && !strings.Contains(line, model) {
				t.Errorf("%s talks to somebody else: %s", key, line)
			}
		}
		if !asked {
			t.Errorf("%s was not seen to ask the model, so nothing is shown", key)
		}
	}
}
