//go:build unix

package walk

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
)

// What the commands share that talk to a model: a model, and what may be left of them.

const said = "Nothing but a lock."

// model listens on this machine and says what the script does. What comes back is the address of its API.
func model(t *testing.T, script string) string {
	t.Helper()
	backend, err := modelserver.ParseScript([]byte(script))
	must(t, err)
	server, err := modelserver.Start(backend, modelserver.Options{})
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return server.URL() + "/v1"
}

// says is a model with one answer.
func says(t *testing.T) string {
	t.Helper()
	return model(t, `[{"say": "`+said+`"}]`)
}

// nobody is an address where no server is.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return "http://" + l.Addr().String() + "/v1"
}

// talk is the first example, with the model that is meant here.
func (c *command) talk(t *testing.T, base string, more ...string) call {
	t.Helper()
	typed := c.plain(t)
	if i := slices.Index(typed.args, "codex"); c.key == "run" && i > 0 {
		typed.args[i] = "native"
	}
	i := slices.Index(typed.args, "--api-base")
	if i < 0 {
		typed.args = placed(typed.args, "--provider", "openai", "--model", "qwen3", "--api-base", base)
	} else {
		typed.args[i+1] = base
	}
	typed.args = placed(typed.args, more...)
	return typed
}

// valued are the flags that need a value.
func (c *command) valued() []string {
	names := []string{}
	for name, f := range c.Flags {
		if f.Type != "boolean" && c.ext.Parameters[name].Nargs != "?" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// declares reports whether the exit status is one that the description has.
func (c *command) declares(t *testing.T, o outcome) {
	t.Helper()
	if clean(t, o); c.Exits[strconv.Itoa(o.code)].Name == "" {
		t.Errorf("%s ended with %d, which its --schema does not declare\n%s", c.key, o.code, o)
	}
}

// refused holds what is promised of a call that cannot begin: lines on standard error, the last of them with a way on.
func refused(t *testing.T, o outcome, code int, words ...string) {
	t.Helper()
	lines := unwarned(o)
	if o.code != code || !strings.HasPrefix(lines, "omniagent: ") || !strings.Contains(lines, "\nhint: ") ||
		!strings.HasSuffix(lines, "\n") {
		t.Errorf("it is not refused with %d and a line that says so\n%s", code, o)
	}
	for _, word := range words {
		if !strings.Contains(lines, word) {
			t.Errorf("the refusal does not name %q\n%s", word, o)
		}
	}
}

// unwarned is what stands on standard error, without the warning that the project's configuration is not trusted.
func unwarned(o outcome) string {
	rest := ""
	for line := range strings.Lines(o.stderr) {
		if !strings.HasPrefix(line, "warning: ") || !strings.Contains(line, "is not trusted") {
			rest += line
		}
	}
	return rest
}

// leftOnly looks whether a call has changed anything outside of its record and the places.
func (b *box) leftOnly(t *testing.T, before map[string]string, o outcome, places ...string) {
	t.Helper()
	// what runs in a fork writes there
	places = append(places, b.record(), b.locks(), b.children(), filepath.Join(b.home, ".local/state/omniagent/forks"))
	if changed := without(changes(before, b.tree(t)), places...); len(changed) > 0 {
		t.Errorf("it wrote %v\n%s", changed, o)
	}
}

// alone looks whether any process of the box still runs. Its home, which no other box has, gives it away; where the
// environment of a process cannot be read nothing is shown.
func (b *box) alone(t *testing.T, o outcome) {
	t.Helper()
	var left []string
	for late := time.Now().Add(5 * time.Second); time.Now().Before(late); {
		if left = b.processes(); len(left) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("it left the processes %v\n%s", left, o)
}

func (b *box) processes() []string {
	found := []string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if env, err := os.ReadFile(file); err == nil && strings.Contains(string(env), "HOME="+b.home+"\x00") {
			argv, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, strings.ReplaceAll(string(argv), "\x00", " "))
		}
	}
	return found
}

// lost are the ways in which nobody reads standard output.
func lost(t *testing.T, typed call) map[string]call {
	t.Helper()
	ways := map[string]call{}
	for _, redir := range []string{">&-", ">" + full(t)} {
		way := typed
		way.redir = redir
		ways[redir] = way
	}
	typed.gone = true
	ways["gone"] = typed
	return ways
}
