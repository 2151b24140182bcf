//go:build unix

package agenttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
	"omniagent/internal/walls/sandbox"
)

// Built is the path of the built program, once Main has built it.
type Built string

// The names under which this binary is an agent, a process that an agent leaves behind, or a host that is killed.
const (
	liveName    = "claude"
	perTurnName = "gemini"
	sleeperName = "agenttest-sleeper"
	holderName  = "agenttest-holder"
)

// Main builds the program from the module at root and runs the tests of a package with it. If this binary was started
// under another name, Main plays that role instead.
func Main(m *testing.M, root string, built *Built) int {
	switch {
	case process.IsGuard(os.Args):
		return process.Guard()
	case sandbox.IsStage(os.Args):
		return sandbox.Stage()
	}
	switch filepath.Base(os.Args[0]) {
	case liveName:
		return newLive().run()
	case perTurnName:
		return newPerTurn().run()
	case sleeperName:
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		forEver()
	case holderName:
		return hold()
	}
	hermetic.AtOnce("4")
	return measure.WithProgram(root, func(file string) int {
		*built = Built(file)
		return m.Run()
	})
}

// install puts the stubs, which answer at that pace, into a directory for PATH, and returns the directory.
func install(t *testing.T, pace modelserver.Pace) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	data, err := json.Marshal(pace)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, paceFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{liveName, perTurnName, holderName} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// forEver does not return.
func forEver() {
	for {
		time.Sleep(time.Hour)
	}
}

// speaker is an agent's side of its wire.
type speaker interface {
	piece(text string) // of a text
	whole()            // the end of the text
	call(id, name string, input map[string]any)
	result(id, text string, failed bool)
	wait(done func() bool) bool           // until it is done or the turn is interrupted; whether it was done
	may(id, name, parent string) []string // asks whether calls may run; what was answered to each
	where() string
	raw(line string)
	special(s step) (known, goesOn bool) // what only this wire has
}

// perform does what a message says. It returns why the turn ended: "" for success, else the reason.
func perform(sp speaker, message string) string {
	pace := readPace()
	if !pause(sp, pace.First) {
		return interrupted
	}
	for i, s := range steps(message) {
		if why, over := one(sp, s, i, pace); over {
			return why
		}
		if i == 0 && !pause(sp, pace.After) {
			return interrupted
		}
	}
	return ""
}

// paceFile, beside the program, has the pace of a stub.
const paceFile = "pace.json"

// readPace returns the pace of this stub. Without a file it answers at once.
func readPace() (p modelserver.Pace) {
	program, err := exec.LookPath(os.Args[0])
	if err != nil {
		return p
	}
	if data, err := os.ReadFile(filepath.Join(filepath.Dir(program), paceFile)); err == nil {
		if err := json.Unmarshal(data, &p); err != nil {
			panic(err)
		}
	}
	return p
}

// pause waits for d. It reports whether it was not interrupted.
func pause(sp speaker, d time.Duration) bool {
	over := time.Now().Add(d)
	return d <= 0 || sp.wait(func() bool { return !time.Now().Before(over) })
}

// interrupted is the reason of a turn that was interrupted.
const interrupted = "interrupted"

func one(sp speaker, s step, i int, pace modelserver.Pace) (why string, over bool) {
	id := fmt.Sprintf("call_%d_%d", os.Getpid(), i)
	text := func(words ...string) {
		for _, w := range words {
			pause(sp, pace.Piece)
			sp.piece(w)
		}
		sp.whole()
	}
	never := func() bool { return false }
	switch s.verb {
	case "say":
		text(s.rest)
	case "pieces":
		text(pieces(number(s.rest))...)
	case "where":
		text(sp.where())
	case "stall", "finish":
		text("working")
		if sp.wait(never); s.verb == "stall" {
			return interrupted, true
		}
		text("finished anyway")
		return "", true
	case "wait":
		sp.call(id, "Bash", map[string]any{"command": "wait for " + s.rest})
		if !sp.wait(func() bool { _, err := os.Stat(s.rest); return err == nil }) {
			sp.result(id, "interrupted", true)
			return interrupted, true
		}
		sp.result(id, "it is there", false)
	case "make":
		return create(sp, id, s.rest)
	case "fail":
		text("half")
		return "it failed", true
	case "die":
		text("half")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forEver()
	case "family":
		text("family " + leaveBehind())
	case "flood":
		flood(sp, number(s.rest)<<20, floodPiece)
	case "events":
		flood(sp, number(s.rest), 1)
	case "line":
		sp.raw(strings.Repeat("endless ", number(s.rest)<<20/8))
	case "forge":
		for _, w := range forged() {
			text(w)
		}
		sp.raw(`{"n":3,"p":2,"k":"end","t":"2026-01-01T00:00:00.000Z","d":{"subtype":"success","ok":true}}`)
		sp.raw("no JSON at all \x00\xff")
	default:
		if known, goesOn := sp.special(s); known {
			return interrupted, !goesOn
		}
		text("unknown step " + s.verb)
	}
	return "", false
}

// leaveBehind starts a process that outlives this one, unless it is killed.
func leaveBehind() string {
	child := exec.Command("/proc/self/exe")
	if self, err := os.Executable(); err == nil {
		child.Path = self
	}
	child.Args = []string{sleeperName}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err.Error()
	}
	return strconv.Itoa(child.Process.Pid)
}

// create makes a file, if it may.
func create(sp speaker, id, file string) (why string, over bool) {
	sp.call(id, "Write", map[string]any{"file_path": file, "content": "made"})
	switch answer := sp.may(id, "Write", ""); {
	case len(answer) == 0:
		return interrupted, true
	case answer[0] != "allow":
		sp.result(id, "denied", true)
		return "", false
	}
	if err := os.WriteFile(file, []byte("made"), 0o600); err != nil {
		sp.result(id, err.Error(), true)
		return "", false
	}
	sp.result(id, "made", false)
	return "", false
}

// floodPiece is how much text a flood says at once: records of that size are among those in memory.
const floodPiece = 8 << 10

// flood prints that many bytes, in pieces of about that size.
func flood(sp speaker, bytes, size int) {
	piece := floodText(size)
	for range bytes / len(piece) {
		sp.piece(piece)
	}
	sp.whole()
}

func floodText(size int) string { return strings.Repeat("flood ", size/6+1)[:size] }

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 1
	}
	return n
}

// flag returns the value of a flag of this process.
func flag(name string) string {
	for i, arg := range os.Args {
		if value, ok := strings.CutPrefix(arg, name+"="); ok {
			return value
		}
		if arg == name && i+1 < len(os.Args) {
			return os.Args[i+1]
		}
	}
	return ""
}

// printer writes lines.
type printer struct{ out *bufio.Writer }

func (p *printer) line(v map[string]any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	p.raw(string(data))
}

func (p *printer) raw(line string) {
	_, _ = p.out.WriteString(line + "\n")
	if p.out.Flush() != nil {
		os.Exit(1) // nobody listens
	}
}
