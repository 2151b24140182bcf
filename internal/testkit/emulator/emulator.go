// Package emulator shows what a program writes to a terminal as three emulators that nobody here wrote do:
// @xterm/headless, pyte and tmux. It promises that nothing of theirs is left behind, and that a test which needs one
// that is not here is skipped with what installs it.
package emulator

import (
	"bufio"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

//go:embed xterm.mjs pyte_lines.py
var scripts embed.FS

// Emulator is a terminal emulator in a process of its own, which takes and answers lines of JSON.
type Emulator struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Reader
	mu  sync.Mutex
}

// Picture is what an emulator shows.
type Picture struct {
	Lines       []string // scrollback and screen; what the terminal has broken is one line, where it knows
	Screen      []string
	Row, Column int
}

// Xterm starts @xterm/headless.
func Xterm(t *testing.T, columns, rows int) *Emulator {
	t.Helper()
	if os.Getenv("OMNIAGENT_TEST_HOSTS") == "" {
		t.Skip("@xterm/headless is not here: OMNIAGENT_TEST_HOSTS=$(scripts/hosts) go test …")
	}
	return start(t, exec.Command("node", script(t, "xterm.mjs"), fmt.Sprint(columns), fmt.Sprint(rows)))
}

// Pyte starts python3-pyte.
func Pyte(t *testing.T, columns, rows int) *Emulator {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import pyte").Run() == nil {
			return start(t, exec.Command(python, script(t, "pyte_lines.py"), fmt.Sprint(columns), fmt.Sprint(rows)))
		}
	}
	t.Skip("pyte is not here: apt-get install python3-pyte")
	return nil
}

// script writes one of the programs that stand between an emulator and us, and returns its path.
func script(t *testing.T, name string) string {
	t.Helper()
	data, err := scripts.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func start(t *testing.T, cmd *exec.Cmd) *Emulator {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Skipf("the emulator does not start: %v", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &Emulator{t: t, in: json.NewEncoder(in), out: bufio.NewReader(out)}
}

func (e *Emulator) call(request map[string]any, reply any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.in.Encode(request); err != nil {
		e.t.Error(err)
		return
	}
	line, err := e.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, reply)
	}
	if err != nil {
		e.t.Errorf("%v: %s", err, line)
	}
}

// Write shows bytes, and returns what the terminal answers.
func (e *Emulator) Write(data []byte) (answer []byte) {
	var reply struct{ Answer string }
	e.call(map[string]any{"write": base64.StdEncoding.EncodeToString(data)}, &reply)
	answer, err := base64.StdEncoding.DecodeString(reply.Answer)
	if err != nil {
		e.t.Error(err)
	}
	return answer
}

// Resize changes the size of the window.
func (e *Emulator) Resize(columns, rows int) {
	e.call(map[string]any{"resize": []int{columns, rows}}, &struct{}{})
}

// Look returns what is shown now.
func (e *Emulator) Look() (p Picture) {
	e.call(map[string]any{}, &p)
	return p
}

// Text returns the screen up to the last row that is not empty, with ▏ where the cursor is.
func (p Picture) Text() string {
	rows := append([]string(nil), p.Screen...)
	last := len(Trim(append([]string(nil), rows...)))
	if p.Row < len(rows) {
		row := []rune(rows[p.Row] + strings.Repeat(" ", p.Column))
		rows[p.Row] = strings.TrimRight(string(row[:p.Column])+"▏"+string(row[p.Column:]), " ")
	}
	return strings.Join(rows[:max(last, p.Row+1)], "\n") + "\n"
}

// Trim removes blanks at the ends of lines, and empty lines at the end.
func Trim(lines []string) []string {
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Golden compares what was shown with a file of testdata that somebody has looked at. update: it is written again.
func Golden(t *testing.T, update bool, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nand should be\n%s", name, got, want)
	}
}

// Differ returns the first difference between what an emulator has and the finished lines, or "".
func Differ(got, want []string) string {
	got = Trim(got)
	for i := range max(len(got), len(want)) {
		a, b := "(nothing)", "(nothing)"
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if a != b {
			return fmt.Sprintf("line %d of %d is\n%.200q, and should be\n%.200q; after it %.200q", i, len(want), a, b,
				got[min(i+1, len(got)):min(i+4, len(got))])
		}
	}
	return ""
}
