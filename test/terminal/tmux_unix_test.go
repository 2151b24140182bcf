//go:build unix

package terminal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pane is talk in a window of tmux.
type pane struct {
	t      *testing.T
	socket string
}

func tmux(t *testing.T, args ...string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not here: apt-get install tmux")
	}
	dir := t.TempDir()
	p := &pane{t, filepath.Join(dir, "socket")}
	conf := filepath.Join(dir, "conf")
	settings := "set -g history-limit 100000\nset -g status off\n"
	if err := os.WriteFile(conf, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	// cat keeps the window when the program has ended.
	line := "env NO_COLOR= '" + strings.Join(append([]string{talk}, args...), "' '") + "'; exec cat"
	p.run("-f", conf, "new-session", "-d", "-x", "80", "-y", "24", line)
	t.Cleanup(func() { p.run("kill-server") })
	return p
}

func (p *pane) run(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *pane) types(keys string) {
	p.t.Helper()
	p.run("send-keys", "-l", keys)
}

// lines returns the scrollback and the screen. What tmux has broken is one line.
func (p *pane) lines() []string {
	p.t.Helper()
	return trim(strings.Split(p.run("capture-pane", "-p", "-J", "-S", "-"), "\n"))
}

func (p *pane) shows(text string) {
	p.t.Helper()
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		out := p.run("capture-pane", "-p", "-J", "-S", "-")
		if strings.Contains(out, text) {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("no %q in\n%s", text, out)
		}
	}
}

// TestTmux: what tmux has after 50 changes of the size is the finished lines.
func TestTmux(t *testing.T) {
	t.Parallel()
	throughSizes(t, func(random *rand.Rand) string {
		file := filepath.Join(t.TempDir(), "transcript")
		p := tmux(t, "-transcript", file, "-script", long(t, 20), "-rate", "1000")
		p.shows("say something")
		p.types("hello\r")
		for i := range 50 {
			time.Sleep(time.Duration(20+random.IntN(180)) * time.Millisecond)
			p.run("resize-window", "-x", fmt.Sprint(50+random.IntN(90)), "-y", fmt.Sprint(20+random.IntN(30)))
			if i%5 == 0 {
				p.types("typed ")
			}
		}
		p.shows("word19-39")
		p.types("\x15/quit")
		p.shows("> /quit")
		p.types("\r")
		p.shows("goodbye")
		return differ(p.lines(), transcript(t, file))
	})
}
