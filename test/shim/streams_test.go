//go:build unix

package shim

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

func noise(n int) []byte {
	out := make([]byte, n)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(out)
	return out
}

// TestBytesOfOutput: what the agent writes arrives as it was, whatever it is.
func TestBytesOfOutput(t *testing.T) {
	data := noise(20 << 20)
	for _, agent := range []string{"opencode", "copilot"} { // they take prompts of any size
		w := newWorld(t)
		w.behave.Echo = true
		cmd := w.command("--agent", agent, "--json")
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout = bytes.NewReader(data), &out
		if err := runWithin(cmd, time.Minute); err != nil {
			t.Fatal(err)
		}
		if sha256.Sum256(out.Bytes()) != sha256.Sum256(data) {
			t.Errorf("%s: %d bytes went in, %d came out", agent, len(data), out.Len())
		}
	}
}

// TestFileAsPrompt: the agent gets the file, from where it stood.
func TestFileAsPrompt(t *testing.T) {
	w := newWorld(t)
	path := w.file("prompt", "skipped\nasked\n")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(8, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if r := w.run(file, "--agent", "claude"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if got := w.calls()[0].Stdin; got != "asked\n" {
		t.Errorf("the agent read %q", got)
	}
}

// TestPromptTooLong: refused before the start, from a flag, a pipe and a file.
func TestPromptTooLong(t *testing.T) {
	const limit = 1_048_576 // characters, of codex
	w := newWorld(t)
	fits := strings.Repeat("ä", limit)
	if r := w.run(strings.NewReader(fits), "--agent", "codex"); r.code != 0 || w.calls()[0].Stdin != fits {
		t.Fatalf("at the limit: %d %s", r.code, r.stderr)
	}
	r := w.run(strings.NewReader(fits+"x"), "--agent", "codex")
	if r.code != 2 || !strings.Contains(r.stderr, "1,048,576 characters") || len(w.calls()) != 1 {
		t.Errorf("one beyond, piped: %+v", r)
	}
	file, err := os.Open(w.file("prompt", fits+"x"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if r = w.run(file, "--agent", "codex"); r.code != 2 || len(w.calls()) != 1 {
		t.Errorf("one beyond, a file: %+v", r)
	}
}

// TestOpenSilentInput: the child gets the prompt and an end, whatever our own standard input does.
func TestOpenSilentInput(t *testing.T) {
	w := newWorld(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if r := w.run(read, "--agent", "codex", "-p", "hi"); r.code != 0 || w.calls()[0].Stdin != "hi" {
		t.Errorf("%+v", r)
	}
}

// TestSilenceIsExplained: after two seconds a line says what is waited for, and the prompt that comes then counts.
func TestSilenceIsExplained(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("--agent", "codex")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	errOut, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 200)
	n, _ := errOut.Read(first)
	if !strings.Contains(string(first[:n]), "reading the prompt from standard input") {
		t.Errorf("said %q", first[:n])
	}
	_, _ = io.WriteString(in, "late")
	_ = in.Close()
	if err := cmd.Wait(); err != nil || w.calls()[0].Stdin != "late" {
		t.Errorf("%v %+v", err, w.calls())
	}
}

// TestTerminalStaysOne: with a prompt and without, standard output is the terminal itself.
func TestTerminalStaysOne(t *testing.T) {
	for _, args := range [][]string{{"--agent", "claude", "-p", "x"}, {"--agent", "claude"}} {
		w := newWorld(t)
		master, slave, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		cmd := w.command(args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		if err := runWithin(cmd, 20*time.Second); err != nil {
			t.Fatal(err)
		}
		if c := w.calls()[0]; !c.OutIsTTY || c.Terminal != (len(args) == 2) {
			t.Errorf("%q: %+v", args, c)
		}
		_ = slave.Close()
		_ = master.Close()
	}
}

// TestStderrIsRelayedWhole: it is read along, and nothing of it is lost.
func TestStderrIsRelayedWhole(t *testing.T) {
	w := newWorld(t)
	w.behave.Moan, w.behave.Times = "moan\n", 50_000
	r := w.run(nil, "--agent", "claude", "-p", "x")
	if r.code != 0 || r.stderr != strings.Repeat("moan\n", 50_000) {
		t.Errorf("%d bytes of %d", len(r.stderr), len(w.behave.Moan))
	}
}

func TestTimeout(t *testing.T) {
	w := newWorld(t)
	w.behave.Family = "leaf"
	r := w.run(nil, "--agent", "claude", "-p", "x", "--timeout", "300ms")
	if r.code != 1 || !strings.Contains(r.stderr, "did not end within 300ms") {
		t.Errorf("%+v", r)
	}
}
