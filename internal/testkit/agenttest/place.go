//go:build unix

package agenttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/talk/session"
)

// place is where a conversation is held: a home, a workspace, the agents in PATH, and a model. It may be held
// there again.
type place struct {
	home, work, temp, bin string
	mark                  string // in the environment of all that is started
	model                 *modelserver.Server
	env                   []string
	more                  []string // of the environment, for an installed agent
	other                 string   // the conversation of somebody else in the workspace
}

func newPlace(t *testing.T, s Subject) *place {
	t.Helper()
	top := s.top(t)
	p := &place{
		home: filepath.Join(top, "home"), work: filepath.Join(top, "work"), temp: filepath.Join(top, "temp"),
		mark: fmt.Sprintf("OMNI_TEST_MARK=laws.%d.%s", os.Getpid(), strings.ReplaceAll(top, "/", "_")),
	}
	for _, dir := range []string{p.home, p.work, p.temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if !s.installed {
		p.bin = install(t, s.Pace)
	}
	p.model = serve(t, s.Pace)
	p.env = []string{
		"HOME=" + p.home, "PATH=" + p.bin + ":/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + p.temp, p.mark,
		"ANTHROPIC_API_KEY=key-of-a-test", "GEMINI_API_KEY=key-of-a-test", "GORACE=atexit_sleep_ms=0",
	}
	if s.installed {
		p.env = append(slices.Clone(s.env), "HOME="+p.home, "TMPDIR="+p.temp, p.mark)
	}
	t.Cleanup(func() {
		if left := p.waitGone(10 * time.Second); left != "" {
			t.Errorf("left alive:\n%s", left)
		}
	})
	if s.Busy {
		p.disturb(t)
	}
	return p
}

// top returns a directory for a place.
func (s Subject) top(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if s.base != "" {
		var err error
		if dir, err = os.MkdirTemp(s.base, "omniagent-laws-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			over := time.Now().Add(patience) // an agent may still write
			for os.RemoveAll(dir) != nil && time.Now().Before(over) {
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func (p *place) store() session.Store { return session.Default(p.home) }

// file returns the path of a file in the workspace.
func (p *place) file(name string) string { return filepath.Join(p.work, name) }

func (p *place) has(name string) bool { return p.hasPath(p.file(name)) }

func (p *place) hasPath(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (p *place) touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(p.file(name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// alive lists the processes that were started here.
func (p *place) alive() string {
	names, _ := filepath.Glob("/proc/[0-9]*")
	var found strings.Builder
	for _, name := range names {
		if pid, _ := strconv.Atoi(filepath.Base(name)); pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join(name, "environ"))
		if err != nil || !bytes.Contains(env, []byte(p.mark)) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(name, "cmdline"))
		stat, _ := os.ReadFile(filepath.Join(name, "stat"))
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && !strings.HasPrefix(rest, "Z") && len(line) > 0 {
			fmt.Fprintf(&found, "%s %q\n", filepath.Base(name), line)
		}
	}
	return found.String()
}

// waitGone waits until nothing is alive, and returns what still is.
func (p *place) waitGone(limit time.Duration) string {
	over := time.Now().Add(limit)
	for {
		left := p.alive()
		if left == "" || time.Now().After(over) {
			return left
		}
		time.Sleep(5 * time.Millisecond)
	}
}
