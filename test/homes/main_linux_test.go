package homes

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// program is the built program.
var program string

func TestMain(m *testing.M) {
	hermetic.Signals()
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		return m.Run()
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}

// What the files of testdata have in place of what differs from copy to copy.
const (
	writtenBase  = "/tmp/omniagent-home-of-an-earlier-version-000000000000000000"
	writtenModel = "http://127.0.0.1:00000"
	writtenShell = "/usr/bin/dash"
)

// place is a copy of the files of a person, and a model.
type place struct {
	t     *testing.T
	base  string
	env   []string
	model *modelserver.Server
}

// open copies the files that a version left, and starts a model that plays a script.
func open(t *testing.T, version, script string) *place {
	t.Helper()
	parsed, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(parsed, modelserver.Options{Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	p := &place{t: t, base: newBase(t), model: server}
	p.env = []string{
		"HOME=" + p.path("home"), "PATH=" + p.path("bin") + ":/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + p.path("tmp"),
		"ANTHROPIC_API_KEY=key-of-a-test", "LANG=C.UTF-8",
	}
	from := filepath.Join("testdata", version)
	change := rewriting(t, p.base, server.URL())
	check(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return copyFile(path, p.base, name, change)
	}))
	for _, dir := range []string{"tmp", "work/.git/refs/tags", "work/.git/objects/pack", "work/.git/objects/info"} {
		check(t, os.MkdirAll(p.path(dir), 0o755))
	}
	return p
}

// newBase makes a directory whose path has the length of the one in testdata: binary files have the lengths of paths.
func newBase(t *testing.T) string {
	t.Helper()
	parent := os.TempDir()
	if len(parent)+len("/12345678") > len(writtenBase) {
		parent = "/tmp"
	}
	random := make([]byte, len(writtenBase))
	_, _ = rand.Read(random)
	base := filepath.Join(parent, hex.EncodeToString(random)[:len(writtenBase)-len(parent)-1])
	check(t, os.Mkdir(base, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return base
}

// rewriting replaces paths and what follows from them, the address of the model, and the shell of the machine, which
// has been allowed with a script.
func rewriting(t *testing.T, base, model string) *strings.Replacer {
	t.Helper()
	shell, err := filepath.EvalSymlinks("/bin/sh")
	check(t, err)
	text, err := os.ReadFile(shell)
	check(t, err)
	sum := sha256.Sum256(text)
	pairs := []string{
		writtenBase, base, writtenModel, model, writtenShell, shell,
		"SHA-256-OF-THE-SHELL", hex.EncodeToString(sum[:]), "SIZE-OF-THE-SHELL", fmt.Sprint(len(text)),
		"dot-git", ".git",
	}
	for _, dir := range []string{"/work", "/work/.git"} {
		pairs = append(pairs, key(writtenBase+dir), key(base+dir))
	}
	return strings.NewReplacer(pairs...)
}

// key is the name that a path has in the store of undo.
func key(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:8])
}

// copyFile copies a file whose paths are replaced. Its checksums become right again.
func copyFile(from, base, name string, change *strings.Replacer) error {
	old, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	text := []byte(change.Replace(string(old)))
	switch {
	case bytes.HasPrefix(text, []byte("omniagent tree ")): // it ends with its SHA-256
		body := text[:len(text)-sha256.Size]
		sum := sha256.Sum256(body)
		text = append(body, sum[:]...)
	case strings.HasSuffix(name, ".jsonl") && bytes.HasPrefix(text, []byte(`{"n":1,`)):
		text = record.ReplaceAllFunc(text, checksummed)
	}
	to, mode, dirs := filepath.Join(base, change.Replace(name)), os.FileMode(0o644), os.FileMode(0o755)
	switch {
	case strings.HasPrefix(name, "home/"), strings.HasPrefix(name, "work/.omniagent/"):
		mode, dirs = 0o600, 0o700
	case strings.HasPrefix(name, "bin/"):
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(to), dirs); err != nil {
		return err
	}
	return hermetic.WriteProgram(to, text, mode)
}

// record is a line of a journal: what is before its checksum, the checksum, and its data.
var record = regexp.MustCompile(`(?m)^(\{"n":.*?),"c":"[0-9a-f]{8}","d":(.*)\}$`)

func checksummed(line []byte) []byte {
	m := record.FindSubmatch(line)
	sum := crc32.Checksum(append(bytes.Clone(m[1]), m[2]...), crc32.MakeTable(crc32.Castagnoli))
	return fmt.Appendf(nil, `%s,"c":"%08x","d":%s}`, m[1], sum, m[2])
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place) path(name string) string { return filepath.Join(p.base, name) }

// file returns the content of a file of the workspace, or "none".
func (p *place) file(name string) string {
	text, err := os.ReadFile(p.path("work/" + name))
	if err != nil {
		return "none"
	}
	return string(text)
}

// call calls the program in the workspace, expects an exit code, and returns what it printed.
func (p *place) call(code int, args ...string) string {
	p.t.Helper()
	return p.typed(code, "", args...)
}

// typed is call with a standard input.
func (p *place) typed(code int, input string, args ...string) string {
	p.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = p.path("work"), p.env, strings.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("omniagent %s: exit %d, not %d\n%s%s", strings.Join(args, " "), got, code, out, stderr.String())
	}
	return string(out)
}

// json calls the program and reads the data of its envelope.
func (p *place) json(code int, data any, args ...string) {
	p.t.Helper()
	out := p.call(code, append(args, "--output", "json")...)
	if err := json.Unmarshal([]byte(out), &struct{ Data any }{data}); err != nil {
		p.t.Fatalf("omniagent %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// has fails unless a text has all words.
func has(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("there is no %q in:\n%s", w, text)
		}
	}
}

// asked returns what the model was sent first: the texts of the messages, and what tools answered.
func (p *place) asked() string {
	p.t.Helper()
	requests := p.model.Requests()
	if len(requests) == 0 {
		p.t.Fatal("the model was asked nothing")
	}
	var all strings.Builder
	for _, m := range requests[0].Messages {
		for _, b := range m.Blocks {
			fmt.Fprintln(&all, b.Text)
		}
	}
	return all.String()
}
