package secrets

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
	if len(os.Args) > 1 && os.Args[1] == "serve-mcp" {
		serveMCP()
		return
	}
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

// The canaries, by where the user has them. None has a format that would tell it. They are made of two parts, so that
// no command has one written out.
func canaries() map[string]string {
	return map[string]string{
		"OPENAI_API_KEY": "canary" + "-Kp41-of-the-provider", "ANTHROPIC_API_KEY": "canary" +
			"-Zt72-of-another-provider", "FOO_TOKEN": "canary" + "-Ar93-of-foo",
		"AWS_SECRET_ACCESS_KEY": "canary" + "/Wq58+of/aws", "DATABASE_URL": "canary" +
			"-Md26-of-a-database", "mcp": "canary" + "-Ux15-of-a-server",
		"header": "canary" + "-Nb84-of-a-header", "profile": "canary" + "-Vy63-of-a-profile",
	}
}

// box is a home, a workspace and a place for temporary files, with canaries in them.
type box struct {
	home, work, temp string
	env              []string
	wrote            map[string]bool // files in which the user wrote a canary
}

func newBox(t *testing.T) *box {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &box{
		home: filepath.Join(base, "home"), work: filepath.Join(base, "work"), temp: filepath.Join(base, "temp"),
		wrote: map[string]bool{},
	}
	c := canaries()
	b.env = []string{
		"HOME=" + b.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + b.temp, "PLAIN=seen",
		"DATABASE_URL=postgres://ann:" + c["DATABASE_URL"] + "@127.0.0.1/db",
	}
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "FOO_TOKEN", "AWS_SECRET_ACCESS_KEY"} {
		b.env = append(b.env, name+"="+c[name])
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, filepath.Join(b.home, ".config", "omniagent", "mcp.json"), fmt.Sprintf(`{"mcpServers":{"tell":{"command":%q,"args":["serve-mcp"],"env":{"SERVER_TOKEN":%q}},
		"far":{"url":"http://127.0.0.1:9/mcp","headers":{"Authorization":"Bearer %s"}}}}`, self, c["mcp"], c["header"]))
	b.write(t, filepath.Join(b.home, ".config", "omniagent", "config.toml"), "foo_token = '"+c["FOO_TOKEN"]+"'\n")
	b.write(t, filepath.Join(b.work, "keys.txt"), "first\nkey "+c["OPENAI_API_KEY"]+"\naws "+c["AWS_SECRET_ACCESS_KEY"]+
		"\nlast\n")
	b.write(t, filepath.Join(b.work, "plain.txt"), "nothing to hide\n")
	if err := os.MkdirAll(b.temp, 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *box) write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	b.wrote[path] = true
}

// model is a scripted model, and the flags that choose it.
func (b *box) model(t *testing.T, script string) (*modelserver.Server, []string) {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(s, modelserver.Options{Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server, []string{"--provider", "openai", "--model", "test-model", "--api-base", server.URL() + "/v1"}
}

func (b *box) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(program, args...)
	var out bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = b.env, b.work, &out, &out
	return cmd, &out
}

// run runs the program and returns all that it printed. How it ends is not the question here.
func (b *box) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd, out := b.command(args...)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String()
}

// clean fails where a canary is in a text.
func clean(t *testing.T, where, text string) {
	t.Helper()
	for name, canary := range canaries() {
		for _, form := range forms(canary) {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("the canary of %s is in %s: …%q…", name, where,
					text[max(0, at-120):min(len(text), at+len(form)+40)])
				break
			}
		}
	}
}

// search looks into every file of the home, the workspace and the temporary directory, but for snapshots: they keep the
// bytes of the workspace as they are, or an undo could not bring them back. Only the user may enter those.
func (b *box) search(t *testing.T) (files int) {
	t.Helper()
	snapshots := filepath.Join(b.home, ".local/state/omniagent/undo")
	err := filepath.WalkDir(filepath.Dir(b.home), func(path string, d fs.DirEntry, err error) error {
		if path == snapshots && err == nil {
			if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v %v", path, info.Mode(), err)
			}
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || b.wrote[path] {
			return err
		}
		data, err := os.ReadFile(path)
		clean(t, path, string(data))
		files++
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return files
}
