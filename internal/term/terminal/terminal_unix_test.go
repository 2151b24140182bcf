//go:build unix

package terminal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/kit/fault"
	"omniagent/internal/term/keys"
	"omniagent/internal/term/terminal"
	"omniagent/internal/testkit/hermetic"
)

// desk is a terminal and the person at it.
type desk struct {
	t      *testing.T
	master *os.File
	tty    *os.File
}

func sit(t *testing.T) *desk {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	go func() { // what is written has to go somewhere
		block := make([]byte, 4096)
		for {
			if _, err := master.Read(block); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = master.Close()
	})
	return &desk{t, master, tty}
}

func (d *desk) open(state string) *terminal.Terminal {
	d.t.Helper()
	t, err := terminal.Open(terminal.Options{In: d.tty, Out: d.tty, State: state})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = t.Close() })
	return t
}

func (d *desk) types(keys string) {
	d.t.Helper()
	if _, err := d.master.WriteString(keys); err != nil {
		d.t.Fatal(err)
	}
}

// settings returns how the terminal is set.
func (d *desk) settings() string {
	d.t.Helper()
	cmd := exec.Command("stty", "-a")
	cmd.Stdin = d.tty
	out, err := cmd.Output()
	if err != nil {
		d.t.Skipf("stty does not work here: %v", err)
	}
	return string(out)
}

func next(t *testing.T, in <-chan keys.Key) keys.Key {
	t.Helper()
	select {
	case k := <-in:
		return k
	case <-time.After(hermetic.Patience):
		t.Fatal("no key came")
		return keys.Key{}
	}
}

func TestOpenRefusesFiles(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := terminal.Open(terminal.Options{In: file, Out: file}); fault.Of(err).Code != fault.StdinRequired {
		t.Errorf("error %v", err)
	}
	if terminal.Recover(t.TempDir(), file, file) {
		t.Error("it was put back")
	}
}

func TestKeysAndSignals(t *testing.T) {
	d := sit(t)
	d.types("early\r")
	tty := d.open("")
	in := tty.Input()
	for _, want := range []keys.Key{{Code: keys.Text, Text: "early"}, {Code: keys.Enter}} {
		if k := next(t, in); k != want {
			t.Errorf("typed early: %+v, want %+v", k, want)
		}
	}
	for input, want := range map[string]keys.Key{
		"a": {Code: keys.Text, Text: "a"}, "\x03": keys.C("c"), "\x1a": keys.C("z"), "\x1c": keys.C(`\`),
		"\x1b": {Code: keys.Escape}, "\x1b[A": {Code: keys.Up}, "\n": keys.C("j"), "\x11": keys.C("q"),
		"\x1b[200~two\rlines\x1b[201~": {Code: keys.Paste, Text: "two\nlines"},
	} {
		d.types(input)
		if k := next(t, in); k != want {
			t.Errorf("%q is %+v", input, k)
		}
	}
	for code, front := range map[keys.Code]bool{keys.FocusOut: false, keys.FocusIn: true} {
		d.types(map[keys.Code]string{keys.FocusOut: "\x1b[O", keys.FocusIn: "\x1b[I"}[code])
		if k := next(t, in); k.Code != code || tty.Front() != front {
			t.Errorf("%+v, in front: %v", k, tty.Front())
		}
	}
	for s, code := range map[syscall.Signal]keys.Code{syscall.SIGWINCH: keys.Resize, syscall.SIGCONT: keys.Continue} {
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
		if k := next(t, in); k.Code != code {
			t.Errorf("%v gives %+v", s, k)
		}
	}
	if err := pty.Setsize(d.master, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	if columns, rows := tty.Size(); columns != 100 || rows != 30 {
		t.Errorf("%d columns, %d rows", columns, rows)
	}
}

// TestLend: another program gets the terminal as it was, and keys that are typed meanwhile.
func TestLend(t *testing.T) {
	d := sit(t)
	before := d.settings()
	tty := d.open("")
	raw := d.settings()
	if raw == before {
		t.Fatal("the terminal is not raw")
	}
	err := tty.Lend(func() error {
		if got := d.settings(); got != before {
			t.Errorf("lent as\n%s, and it was\n%s", got, before)
		}
		d.types("for the other\n")
		block := make([]byte, 64)
		n, err := d.tty.Read(block)
		if string(block[:n]) != "for the other\n" {
			t.Errorf("it reads %q, %v", block[:n], err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.settings(); got != raw {
		t.Errorf("taken again as\n%s, and it was\n%s", got, raw)
	}
	d.types("x")
	if k := next(t, tty.Input()); k.Text != "x" {
		t.Errorf("%+v", k)
	}
	for range 2 {
		if err := tty.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := d.settings(); got != before {
		t.Errorf("left as\n%s, and it was\n%s", got, before)
	}
	if _, more := <-tty.Input(); more {
		t.Error("input goes on")
	}
}

// TestGone: input ends when the terminal does.
func TestGone(t *testing.T) {
	master, file, err := pty.Open() // nobody reads it: a read that waits would keep it open
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	tty := (&desk{t, master, file}).open("")
	_ = master.Close()
	for end := time.After(hermetic.Patience); ; {
		select {
		case _, more := <-tty.Input():
			if !more {
				return
			}
		case <-end:
			t.Fatal("input does not end")
		}
	}
}

// TestMarker: the file that Recover needs is there while the terminal is raw, and only for its owner.
func TestMarker(t *testing.T) {
	d, state := sit(t), t.TempDir()
	tty := d.open(state)
	files, _ := filepath.Glob(filepath.Join(state, "terminals", "*.json"))
	if len(files) != 1 {
		t.Fatalf("files %q", files)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if terminal.Recover(state, d.tty, d.tty) {
		t.Error("it was taken from a program that lives")
	}
	second := d.open(state) // as a picker might, beside a host
	_ = second.Close()
	if _, err := os.Stat(files[0]); err != nil {
		t.Errorf("the second took the marker away: %v", err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(strings.Replace(string(raw), `"born":"`, `"born":"0`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if !terminal.Recover(state, d.tty, d.tty) {
		t.Error("it was not put back although its owner is another")
	}
	if terminal.Recover(state, d.tty, d.tty) {
		t.Error("it was put back twice")
	}
	_ = tty.Close()
}
