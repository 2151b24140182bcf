package emulator

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/text"
)

// Pane is a program in a window of tmux.
type Pane struct {
	t      *testing.T
	socket string
}

// Tmux starts a program in a window of 80 columns and 24 rows, in a directory and with further variables. The window
// stays when the program has ended.
func Tmux(t *testing.T, dir string, env []string, argv ...string) *Pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not here: apt-get install tmux")
	}
	place := t.TempDir()
	p := &Pane{t, filepath.Join(place, "socket")}
	conf := filepath.Join(place, "conf")
	settings := "set -g history-limit 100000\nset -g status off\n"
	if err := os.WriteFile(conf, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	words := []string{"env"}
	for _, word := range append(env, argv...) {
		words = append(words, text.Shell(word))
	}
	begin := []string{"-f", conf, "new-session", "-d", "-x", "80", "-y", "24"}
	if dir != "" {
		begin = append(begin, "-c", dir)
	}
	p.Run(append(begin, strings.Join(words, " ")+"; exec cat")...)
	t.Cleanup(func() { p.Run("kill-server") })
	return p
}

// Run runs a command of tmux, and returns what it prints.
func (p *Pane) Run(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Types types keys.
func (p *Pane) Types(keys string) {
	p.t.Helper()
	p.Run("send-keys", "-l", keys)
}

// Lines returns the scrollback and the screen. What tmux has broken is one line.
func (p *Pane) Lines() []string {
	p.t.Helper()
	return Trim(strings.Split(p.Run("capture-pane", "-p", "-J", "-S", "-"), "\n"))
}

// Shows waits for a text in the scrollback or on the screen.
func (p *Pane) Shows(text string) {
	p.t.Helper()
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		out := p.Run("capture-pane", "-p", "-J", "-S", "-")
		if strings.Contains(out, text) {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("no %q in\n%s", text, out)
		}
	}
}
