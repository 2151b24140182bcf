//go:build unix

package walk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// limit is how long any call may take before it counts as one that hangs.
const limit = 30 * time.Second

// box is a machine of its own for some calls: a home, a repository to stand in, a place for temporary files.
type box struct {
	root, home, project, temp string
	env                       map[string]string
}

// newBox makes a box with an empty home and an empty repository.
func newBox(t *testing.T) *box {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	b := &box{
		root: root, home: filepath.Join(root, "home"), project: filepath.Join(root, "project"),
		temp: filepath.Join(root, "tmp"),
	}
	for _, dir := range []string{b.home, b.temp, filepath.Join(b.project, ".git")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	b.env = map[string]string{"HOME": b.home, "TMPDIR": b.temp, "PATH": os.Getenv("PATH"), "USER": "walker"}
	b.env["MY_OPENAI_KEY"] = "sk-walker-0123456789"
	return b
}

// furnished is a box where every command has something to do: a setting to remove, a file to trust, rubbish to clean
// up, a conversation, an agent, a run in the state that the command is about.
func furnished(t *testing.T, about ...*command) *box {
	t.Helper()
	b := newBox(t)
	b.write(t, "project/.omniagent/config.toml", "# how this project wants it\ngrace = \"3s\"\noutput = \"json\"\n")
	b.write(t, "home/.config/omniagent/config.toml", "lock_timeout = \"9s\"\n")
	b.write(t, "tmp/omniagent-0left0/.made-by-call", "0left0")
	old := time.Now().Add(-48 * time.Hour)
	must(t, os.Chtimes(filepath.Join(b.temp, "omniagent-0left0"), old, old))
	b.write(t, "home/.yume/sessions/sess-1a2b3c4d.jsonl", conversation)
	b.write(t, "home/.config/omniagent/keys.json",
		`{"version": 1, "keys": [{"name": "minimax", "place": "file", "stored": "2026-01-31T12:00:00Z", "key": "sk-1"}]}`)
	must(t, os.Chmod(filepath.Join(b.home, ".config/omniagent/keys.json"), 0o600))
	b.employ(t, about...)
	b.change(t, about...)
	b.fork(t, about...)
	b.delegate(t, about...)
	b.destroy(t, about...)
	return b
}

// refurnished is a box where the command has something to do once more: the one that it had, if it changes nothing.
func refurnished(t *testing.T, c *command, b *box) *box {
	t.Helper()
	if b != nil && c.safe() {
		return b
	}
	return furnished(t, c)
}

// conversation is what somebody and the native agent said to each other; the examples name it.
const conversation = `{"n":1,"p":0,"k":"begin","t":"2026-01-31T12:00:00.000Z","d":{"v":1,"id":"sess-1a2b3c4d","provider":"gemini","model":"m1","cwd":"/somewhere","created":"2026-01-31T12:00:00Z"}}
{"n":2,"p":1,"k":"message","t":"2026-01-31T12:00:01.000Z","d":{"role":"user","blocks":[{"kind":"text","text":"Where is the deadlock?"}]}}
{"n":3,"p":2,"k":"message","t":"2026-01-31T12:00:02.000Z","d":{"role":"assistant","blocks":[{"kind":"text","text":"Between the two locks of the cache."}]}}
`

func (b *box) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(b.root, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call is one start of the program.
type call struct {
	args   []string
	stdin  string   // what is there to read; nothing is /dev/null
	silent bool     // standard input is a pipe that nobody writes to or closes
	gone   bool     // standard output is a pipe whose reader has left
	redir  string   // as a shell would say it: ">&-", "2>/dev/full"
	dir    string   // the project unless given
	unset  []string // variables that are not there
	set    []string // NAME=value
}

func (b *box) environment(c call) []string {
	env := []string{}
	for name, value := range b.env {
		if !slices.Contains(c.unset, name) {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return append(env, c.set...)
}

// outcome is how a call ended.
type outcome struct {
	args           []string
	stdout, stderr string
	code           int // -1: ended by a signal
}

func (o outcome) String() string {
	return fmt.Sprintf("omniagent %s\nexit status %d\nstdout: %.2000s\nstderr: %.2000s", strings.Join(o.args, " "),
		o.code, o.stdout, o.stderr)
}

// execProgram is a bare start of the program, where no test is at hand.
func execProgram(args ...string) *exec.Cmd { return exec.Command(program, args...) }

// run makes a call and waits for it, but not for ever.
func (b *box) run(t *testing.T, c call) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	argv := append([]string{program}, c.args...)
	if c.redir != "" {
		argv = append([]string{"/bin/sh", "-c", `exec "$@" ` + c.redir, "sh"}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = b.project, b.environment(c), hermetic.Patience
	if c.dir != "" {
		cmd.Dir = c.dir
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	if c.silent {
		r, w, err := os.Pipe()
		must(t, err)
		defer func() { _, _ = r.Close(), w.Close() }()
		cmd.Stdin = r
	}
	if c.gone {
		r, w, err := os.Pipe()
		must(t, err)
		must(t, r.Close())
		defer func() { _ = w.Close() }()
		cmd.Stdout = w
	}
	err := cmd.Run()
	o := outcome{c.args, stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("hangs: no end within %s\n%s", limit, o)
	case err != nil && !errors.As(err, &exit):
		t.Fatalf("cannot be started: %v\n%s", err, o)
	case o.code < 0:
		t.Fatalf("ended by a signal: %v\n%s", err, o)
	}
	return o
}

// tree is every file of the box, with its mode and content.
func (b *box) tree(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		entry := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			entry += fmt.Sprintf(" %x", sha256.Sum256(content))
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			entry += " " + target
		}
		files[path] = entry
		return nil
	}))
	return files
}

// changes are the files that appeared, went or differ.
func changes(before, after map[string]string) []string {
	list := []string{}
	for path, entry := range after {
		if before[path] != entry {
			list = append(list, path)
		}
	}
	for path := range before {
		if _, stays := after[path]; !stays {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// without leaves out what lies at or below one of the places, and the directories that lead there.
func without(list []string, places ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(path string) bool {
		return slices.ContainsFunc(places, func(place string) bool {
			return path == place || strings.HasPrefix(path, place+"/") || strings.HasPrefix(place, path+"/") ||
				path == place+".head" || path == place+".lock" // of the audit log
		})
	})
}

// conversations are what the native agent keeps of what was said.
func (b *box) conversations() string { return filepath.Join(b.home, ".yume/sessions") }

// eidolon is where a chat keeps its record for people.
func (b *box) eidolon() string { return filepath.Join(b.home, ".eidolon") }

// record is the audit log, locks hold the places of locks, and children is where running children stand on record: all
// that a command may leave that changes nothing.
func (b *box) record() string { return filepath.Join(b.home, ".local/share/omniagent/audit.jsonl") }

func (b *box) locks() string { return filepath.Join(b.home, ".local/state/omniagent/locks") }

func (b *box) children() string { return filepath.Join(b.home, ".local/state/omniagent/sessions") }
