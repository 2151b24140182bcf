package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/testkit/hermetic"
)

// window is a terminal with bash in it, in which a person calls the program.
type window struct {
	t    *testing.T
	file *os.File
	mu   sync.Mutex
	all  string
	read int
}

func openWindow(t *testing.T, w *world) *window {
	t.Helper()
	const bash = "/bin/bash"
	if _, err := os.Stat(bash); err != nil {
		t.Skip("there is no /bin/bash here")
	}
	cmd := exec.Command(bash, "--norc", "--noprofile", "--noediting", "-i")
	cmd.Dir = w.root
	cmd.Env = append(w.command().Env, "PS1=ready> ", "HISTFILE=", "omniagent="+program, "PATH="+w.bin+":/usr/bin:/bin")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	v := &window{t: t, file: master}
	go func() {
		block := make([]byte, 4096)
		for {
			n, err := master.Read(block)
			v.mu.Lock()
			v.all += string(block[:n])
			v.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	v.sees("ready> ")
	return v
}

func (v *window) types(text string) {
	v.t.Helper()
	if _, err := v.file.WriteString(text); err != nil {
		v.t.Fatal(err)
	}
}

// sees waits for a text after the last one that was seen.
func (v *window) sees(text string) {
	v.t.Helper()
	for end := time.Now().Add(hermetic.Patience); ; time.Sleep(2 * time.Millisecond) {
		v.mu.Lock()
		rest := v.all[v.read:]
		at := strings.Index(rest, text)
		if at >= 0 {
			v.read += at + len(text)
		}
		v.mu.Unlock()
		if at >= 0 {
			return
		}
		if time.Now().After(end) {
			v.t.Fatalf("no %q in %q", text, rest)
		}
	}
}

// TestSessionInAShell: what a person does at a terminal reaches the agent and nobody else: keys, the window's size,
// Ctrl-C, Ctrl-Z and fg.
func TestSessionInAShell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("codex", `
trap 'echo "<interrupt>"' INT
trap 'echo "<window $(stty size)>"' WINCH
echo "<begins $(stty size)>"
while :; do
	if read -r line; then
		case $line in
		raw) stty -echo raw; echo "<raw>" ;;
		quit) exit 7 ;;
		*) echo "<heard $line>" ;;
		esac
	fi
done
`)
	v := openWindow(t, w)
	v.types("stty -a >before; $omniagent --agent codex; echo \"code $?\"; stty -a >after\n")
	v.sees("<begins 24 80>")
	v.types("one\n")
	v.sees("<heard one>")
	if err := pty.Setsize(v.file, &pty.Winsize{Rows: 40, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	v.types("\n") // bash runs the trap when a line comes
	v.sees("<window 40 100>")
	v.types("\x03")
	v.types("\n")
	v.sees("<interrupt>")
	v.types("\x1a")
	v.sees("Stopped")
	v.sees("ready> ")
	v.types("echo shell $((40+2))\n")
	v.sees("shell 42")
	v.types("fg\n")
	v.sees("fg")
	v.types("two\n")
	v.sees("<heard two>")
	v.types("raw\n")
	v.sees("<raw>")
	v.types("quit\n")
	v.sees("ready> ")
	v.types("$omniagent --agent codex; echo \"code $?\"\n")
	v.sees("<begins 40 100>")
	v.types("quit\n")
	v.sees("code 1") // 7, which is not one of our codes
	v.types("stty -a >later; echo done $((1+1))\n")
	v.sees("done 2")
	before, _ := os.ReadFile(filepath.Join(w.root, "before"))
	later, _ := os.ReadFile(filepath.Join(w.root, "later"))
	modes := func(text []byte) string { _, rest, _ := strings.Cut(string(text), "line = "); return rest }
	if len(before) == 0 || modes(before) != modes(later) {
		t.Errorf("the modes were\n%s\nand are\n%s", before, later)
	}
}

// TestStartedAnew: where the agent asks for it with its own exit code, it is started again in the same terminal.
func TestStartedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("gemini", `
if [ ! -e "$HOME/once" ]; then
	: >"$HOME/once"
	exit 199
fi
read -r line
echo "<heard $line>"
exit 4
`)
	v := openWindow(t, w)
	v.types("$omniagent --agent gemini; echo \"code $?\"\n")
	v.types("again\n")
	v.sees("<heard again>")
	v.sees("code 1")
	w.agent("claude", "exit 199\n")
	v.types("$omniagent --agent claude; echo \"code $?\"\n")
	v.sees("code 1")
}
