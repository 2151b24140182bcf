//go:build unix

package evaluation

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// mode is one way in which a command line can fail the programs that call it.
type mode struct {
	section         int
	severity, title string
	unknown         string       // why nothing of the kind can be exercised yet
	check           func(*probe) // otherwise
}

// probe is the evaluation of one mode: a machine of its own, and what was seen there.
type probe struct {
	ctx                           context.Context
	s                             *subject
	root, home, work, temp, tools string

	mu       sync.Mutex
	criteria []criterion
	notes    []string
	trace    []string
	calls    int
	reason   string // why it is "?" after all
	hung     bool   // a call had to be ended
}

// criterion is one observation, and the level that it is needed for.
type criterion struct {
	level int
	holds bool
	text  string
}

func newProbe(ctx context.Context, s *subject, root string) *probe {
	root, _ = filepath.EvalSymlinks(root)
	p := &probe{
		ctx: ctx, s: s, root: root, home: filepath.Join(root, "home"), work: filepath.Join(root, "work"),
		temp: filepath.Join(root, "tmp"), tools: filepath.Join(root, "bin"),
	}
	for _, dir := range []string{p.home, p.work, p.temp, p.tools} {
		_ = os.MkdirAll(dir, 0o755)
	}
	return p
}

// environment is all that a call is told; the rest of the machine's stays outside.
func (p *probe) environment() []string {
	return []string{"HOME=" + p.home, "TMPDIR=" + p.temp, "PATH=" + p.tools, "USER=evaluator"}
}

// need states a criterion of a level.
func (p *probe) need(level int, holds bool, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.criteria = append(p.criteria, criterion{level, holds, fmt.Sprintf(format, args...)})
}

// note adds a reading of the rubric that the reader has to know of.
func (p *probe) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

const tracedCalls = 8

func (p *probe) record(args []string, exit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls++; p.calls > tracedCalls {
		return
	}
	words := []string{p.s.name}
	for _, a := range args {
		a = strings.ReplaceAll(a, p.root, "$BOX")
		if len(a) > 60 {
			a = fmt.Sprintf("(%d bytes)", len(a))
		}
		if a == "" || !utf8.ValidString(a) || strings.ContainsAny(a, " \t\n'\"`|<>{}$;&\x1b") &&
			!strings.HasPrefix(a, "$BOX") {
			a = fmt.Sprintf("%q", a)
		}
		words = append(words, strings.ReplaceAll(a, "`", "'"))
	}
	p.trace = append(p.trace, fmt.Sprintf("`%s` → %d", strings.Join(words, " "), exit))
}

// write makes a file in the probe's machine.
func (p *probe) write(name, text string) string {
	path := filepath.Join(p.root, name)
	_ = os.MkdirAll(filepath.Dir(path), 0o755)
	_ = os.WriteFile(path, []byte(text), 0o644)
	return path
}

// script makes a program that calls may find.
func (p *probe) script(name, body string) {
	_ = os.Chmod(p.write("bin/"+name, "#!/bin/sh\n"+body+"\n"), 0o755)
}

// read is the text of a file, or nothing.
func (p *probe) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(p.root, name))
	return string(b)
}

func (p *probe) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(p.root, name))
	return err == nil
}

// litter fills the subject's cache with so much that its removal takes a while.
func (p *probe) litter(n int) {
	if len(p.commands()) == 0 {
		return // nothing here would remove it
	}
	p.write("home/.cache/omniagent/0", "")
	for i := range n {
		_ = os.WriteFile(filepath.Join(p.home, ".cache", "omniagent", fmt.Sprint(i)), nil, 0o600)
	}
}

// files are all files of the probe's machine, relative to its root.
func (p *probe) files() []string {
	list := []string{}
	_ = filepath.WalkDir(p.root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(p.root, path)
			list = append(list, rel)
		}
		return nil
	})
	return list
}

// fifo makes a pipe in the file system and holds it open, so that neither side waits for the other to open it.
func (p *probe) fifo(name string) (path string, f *os.File) {
	path = filepath.Join(p.root, name)
	_ = syscall.Mkfifo(path, 0o600)
	f, _ = os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	return path, f
}

// waitFor reads from a pipe until something comes, for two seconds at most.
func waitFor(f *os.File) string {
	_ = f.SetReadDeadline(time.Now().Add(2 * time.Second))
	b := make([]byte, 4096)
	n, _ := f.Read(b)
	return string(b[:n])
}

// commands are the entries of the whole schema that can be called, by their dotted names.
func (p *probe) commands() map[string]value {
	all := map[string]value{}
	entries := p.s.schema().at("data/commands")
	for _, name := range entries.keys() {
		if e := entries.at(name); !e.has("subcommands") {
			all[name] = e
		}
	}
	return all
}

// extensions are the declarations that have no place in the manifest's own schema.
func (p *probe) extensions() map[string]value {
	all := map[string]value{}
	entries := p.s.schema().at("meta/command_ext")
	for _, name := range entries.keys() {
		all[name] = entries.at(name)
	}
	return all
}

// enveloped are the commands that answer with an envelope, which most of the rubric is about. Those that talk to a
// model speak a protocol of their own; what they do about a mode is a criterion of its own there.
func (p *probe) enveloped() map[string]value {
	all, classes := p.commands(), p.extensions()
	maps.DeleteFunc(all, func(name string, _ value) bool { return classes[name].str("output_class") != "envelope" })
	return all
}

// envelopedExtensions are the further declarations of the same commands.
func (p *probe) envelopedExtensions() map[string]value {
	all := p.extensions()
	maps.DeleteFunc(all, func(_ string, x value) bool { return x.str("output_class") != "envelope" })
	return all
}

// refusedInStream reports whether a call ended with that status, told it on standard error, and told it in the lines as
// well: an error, a result that is one, and the end.
func (r *result) refusedInStream(exit int, word string) bool {
	list := lines(r.out)
	return r.exit == exit && strings.HasPrefix(r.err, "omniagent: ") && strings.Contains(r.err, word) &&
		strings.Contains(r.err, "hint: ") && len(list) == 3 &&
		list[0].has("message") && list[1].str("type") == "result" && list[1].yes("is_error") &&
		strings.Contains(list[1].str("result"), word) && list[2].str("type") == "message_stop"
}

// every reports whether something holds for each command of the schema, of which there must be some.
func every(all map[string]value, holds func(name string, v value) bool) bool {
	for name, v := range all {
		if !holds(name, v) {
			return false
		}
	}
	return len(all) > 0
}

// safeCalls are one call of each command that only reads, as its own declaration shows it.
func (p *probe) safeCalls() [][]string {
	var calls [][]string
	commands, classes := p.commands(), p.extensions()
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		e := commands[name]
		if e.str("danger_level") != "safe" || classes[name].str("output_class") == "stream" {
			continue
		}
		for _, example := range e.list("examples") {
			line := example.str("command")
			words := strings.Fields(line)
			if len(words) > 1 && words[0] == "omniagent" && !strings.ContainsAny(line, "|'\"<>$") &&
				!strings.Contains(line, "--input-file") {
				calls = append(calls, words[1:])
				break
			}
		}
	}
	if len(calls) == 0 {
		return [][]string{{"list"}, {"status"}, {"version"}}
	}
	return calls
}

// grade is the outcome of one mode.
type grade struct {
	mode
	score   int // -1: "?"
	text    string
	lacking []string
	trace   []string
	hidden  int  // calls that the trace leaves out
	hung    bool // a call, or the whole check, had to be ended
}

const (
	modeLimit    = 10 * time.Second
	patientLimit = 2 * time.Minute // for a subject whose calls end, on a machine that has much else to do
	installLimit = 5 * time.Minute // Installation compiles the program, perhaps on a machine that has never done it
)

// evaluate runs the checks of all modes.
func evaluate(t *testing.T, s *subject, list []mode) []grade {
	t.Helper()
	dir := t.TempDir()
	grades := make([]grade, len(list))
	slots := make(chan struct{}, s.slots)
	var wait sync.WaitGroup
	for i, m := range list {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			grades[i] = gradeOne(s, m, filepath.Join(dir, fmt.Sprint(m.section)))
		})
	}
	wait.Wait()
	for i, g := range grades {
		if s.patient && g.hung { // was it the subject, or the machine? alone it has no excuse
			grades[i] = gradeOne(s, g.mode, filepath.Join(dir, fmt.Sprint(g.section, "-again")))
		}
	}
	return grades
}

func gradeOne(s *subject, m mode, dir string) grade {
	g := grade{mode: m, score: -1, text: m.unknown}
	if m.unknown != "" {
		return g
	}
	_ = os.MkdirAll(dir, 0o755)
	limit := modeLimit
	switch {
	case m.title == "Installation":
		limit = installLimit
	case s.patient:
		limit = patientLimit
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	p := newProbe(ctx, s, dir)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.check(p)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		g.text, g.hung = "the check did not end within "+limit.String(), true
		return g
	}
	g.trace, g.hidden, g.hung = p.trace, max(0, p.calls-len(p.trace)), p.hung
	if p.reason != "" {
		g.text = p.reason
		return g
	}
	g.score, g.lacking = score(p.criteria)
	g.text = evidence(p)
	return g
}

// score is the highest level up to which everything holds, and the criteria that do not. A level without a criterion of
// its own cannot be reached by default: it is refused.
func score(criteria []criterion) (level int, lacking []string) {
	level = 3
	for _, c := range criteria {
		if !c.holds {
			level = min(level, c.level-1)
			lacking = append(lacking, c.text)
		}
	}
	for n := 1; n <= 3; n++ {
		if !slices.ContainsFunc(criteria, func(c criterion) bool { return c.level == n }) {
			return 0, append(lacking, fmt.Sprintf("there is no criterion for level %d", n))
		}
	}
	return level, lacking
}

// evidence tells what was seen, level by level.
func evidence(p *probe) string {
	parts := []string{}
	for n := 1; n <= 3; n++ {
		seen := []string{}
		for _, c := range p.criteria {
			switch {
			case c.level != n:
			case c.holds:
				seen = append(seen, c.text)
			default:
				seen = append(seen, "NOT "+c.text)
			}
		}
		parts = append(parts, fmt.Sprintf("%d: %s", n, strings.Join(seen, ", ")))
	}
	text := strings.Join(parts, "; ")
	if len(p.notes) > 0 {
		text += " (" + strings.Join(p.notes, "; ") + ")"
	}
	return text
}
