//go:build unix

package evaluation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// subject is a program under evaluation.
type subject struct {
	name   string
	argv   []string
	env    []string
	schema func() *result       // of the whole program; asked for once
	second func() time.Duration // a second of the specification, or more on a slow machine; measured once
	limit  time.Duration        // after which a call counts as hung
	slots  int                  // modes that are checked at once

	patient bool // what seemed to hang is checked again
}

func newSubject(name string, env []string, argv ...string) *subject {
	s := &subject{
		name: name, argv: argv, env: env, limit: 3 * time.Second, slots: max(2, runtime.NumCPU()), patient: true,
	}
	s.schema = sync.OnceValue(func() *result {
		dir, err := os.MkdirTemp("", "evaluation-schema-")
		if err != nil {
			return &result{}
		}
		defer func() { _ = os.RemoveAll(dir) }()
		p := newProbe(context.Background(), s, dir)
		return p.run("--schema", "--output", "json")
	})
	s.second = sync.OnceValue(func() time.Duration {
		dir, err := os.MkdirTemp("", "evaluation-second-")
		if err != nil {
			return time.Second
		}
		defer func() { _ = os.RemoveAll(dir) }()
		// The least call tells how fast the machine is: it takes 10 ms where the second is meant.
		least := newProbe(context.Background(), s, dir).fastest(0, call{args: []string{"version"}, secret: true})
		return max(time.Second, 100*least.took)
	})
	return s
}

// built is the program, compiled once for all tests.
var built = sync.OnceValues(func() (string, error) {
	program, err := measure.Shared(repository, scratch)
	return program.File, err
})

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources(repository); err != nil {
		t.Fatal(err)
	}
}

const repository = "../.."

var scratch string // of the whole run

func TestMain(m *testing.M) {
	hermetic.Signals()
	if os.Getenv("EVALUATION_BAD_CLI") != "" {
		badCLI(os.Args[1:])
	}
	hermetic.InMemory()
	dir, err := os.MkdirTemp("", "evaluation-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// ours is the program that this repository builds.
func ours(t *testing.T) *subject {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return newSubject("omniagent", nil, path)
}

// call is one start of the subject.
type call struct {
	args   []string
	stdin  string    // what is there to read; nothing is /dev/null
	input  io.Reader // an open pipe instead
	env    []string
	dir    string
	limit  time.Duration // instead of the subject's
	stdout io.Writer     // instead of the result's
	secret bool          // not in the trace: what happens is not the same every time
	during func(*exec.Cmd)
}

// result is what can be seen of a call that has ended.
type result struct {
	exit     int // -1: it had to be killed
	out, err string
	took     time.Duration
	value    // standard output, where that is exactly one JSON document
}

func (p *probe) run(args ...string) *result { return p.do(call{args: args}) }

func (p *probe) do(c call) *result {
	limit := c.limit
	if limit == 0 {
		limit = p.s.limit
	}
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.s.argv[0], append(slices.Clone(p.s.argv[1:]), c.args...)...)
	cmd.Dir, cmd.Env = p.work, slices.Concat(p.environment(), p.s.env, c.env)
	if c.dir != "" {
		cmd.Dir = c.dir
	}
	switch {
	case c.input != nil:
		cmd.Stdin = c.input
	case c.stdin != "":
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if c.stdout != nil {
		cmd.Stdout = c.stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 200 * time.Millisecond
	started := time.Now()
	err := cmd.Start()
	if err == nil {
		if c.during != nil {
			c.during(cmd)
		}
		err = cmd.Wait()
	}
	r := &result{out: out.String(), err: stderr.String(), took: time.Since(started), exit: -1}
	if cmd.ProcessState != nil && ctx.Err() == nil {
		r.exit = cmd.ProcessState.ExitCode()
	}
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) && !errors.Is(err, exec.ErrWaitDelay) {
		r.exit = -1
	}
	r.value = parse(r.out)
	if r.exit < 0 {
		p.mu.Lock()
		p.hung = true
		p.mu.Unlock()
	}
	if !c.secret {
		p.record(c.args, r.exit)
	}
	return r
}

// fastest is the quickest of up to eight tries: a busy machine is not the subject's fault.
func (p *probe) fastest(within time.Duration, c call) *result {
	var best *result
	for range 8 {
		r := p.do(c)
		if c.secret = true; best == nil || r.took < best.took {
			best = r
		}
		if best.took <= within {
			break
		}
	}
	return best
}

// value is a piece of JSON that may not be there; asking it for anything is safe.
type value struct {
	raw   any
	there bool
}

func parse(text string) value {
	d := json.NewDecoder(strings.NewReader(text))
	var raw any
	if d.Decode(&raw) != nil {
		return value{}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return value{}
	}
	return value{raw, true}
}

// lines are the JSON documents of a text of one on each line.
func lines(text string) []value {
	list := []value{}
	for line := range strings.Lines(text) {
		list = append(list, parse(line))
	}
	return list
}

// at follows a path such as "error/code".
func (v value) at(path string) value {
	for name := range strings.SplitSeq(path, "/") {
		o, _ := v.raw.(map[string]any)
		raw, there := o[name]
		v = value{raw, there}
	}
	return v
}

func (v value) str(path string) string { s, _ := v.at(path).raw.(string); return s }
func (v value) yes(path string) bool   { b, _ := v.at(path).raw.(bool); return b }
func (v value) no(path string) bool    { b, ok := v.at(path).raw.(bool); return ok && !b }
func (v value) has(path string) bool   { return v.at(path).there }

func (v value) num(path string) int {
	n, ok := v.at(path).raw.(float64)
	if !ok {
		return -1
	}
	return int(n)
}

func (v value) list(path string) []value {
	raw, _ := v.at(path).raw.([]any)
	list := make([]value, len(raw))
	for i, item := range raw {
		list[i] = value{item, true}
	}
	return list
}

func (v value) strings(path string) []string {
	list := []string{}
	for _, item := range v.list(path) {
		s, _ := item.raw.(string)
		list = append(list, s)
	}
	return list
}

func (v value) keys() []string {
	o, _ := v.raw.(map[string]any)
	keys := make([]string, 0, len(o))
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// text is the value as JSON.
func (v value) text() string {
	b, _ := json.Marshal(v.raw)
	return string(b)
}

// envelope reports whether standard output is one document of the five members.
func (r *result) envelope() bool {
	return slices.Equal(r.keys(), []string{"data", "error", "meta", "ok", "warnings"})
}

// failed reports whether the call ended with that exit status and an envelope that says the same.
func (r *result) failed(exit int, code string) bool {
	return r.exit == exit && r.envelope() && r.no("ok") && r.num("error/exit_code") == exit &&
		(code == "" || r.str("error/code") == code)
}

func (r *result) succeeded() bool { return r.exit == 0 && r.envelope() && r.yes("ok") }

// warned reports whether the answer has a warning of that code.
func (r *result) warned(code string) bool {
	return slices.ContainsFunc(r.strings("warnings"), func(w string) bool { return strings.HasPrefix(w, code+":") })
}
