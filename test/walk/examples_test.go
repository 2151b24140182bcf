//go:build unix

package walk

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
)

// example is a row of testdata/examples.tsv: an example of a help, and what becomes of it.
//
// how is the exit code; "terminal" where it is typed at one, with a message and the end of a conversation;
// "interrupted" where it goes on until somebody interrupts it; and "not" where it cannot be shown here, for which shows
// is the reason. setup are lines of a shell that come before, and shows is a pattern of what both streams say.
type example struct {
	how, line, setup, shows string
}

func examples(t *testing.T) map[string]example {
	t.Helper()
	data, err := os.ReadFile("testdata/examples.tsv")
	must(t, err)
	all := map[string]example{}
	for line := range strings.Lines(string(data)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(row) != 4 || all[row[1]].line != "" {
			t.Fatalf("not a row of an example: %q", line)
		}
		all[row[1]] = example{row[0], row[1], row[2], row[3]}
	}
	return all
}

// rootExamples returns the examples of the program's own help, each with a command that it resembles.
func rootExamples(t *testing.T, all []*command) map[string]*command {
	t.Helper()
	help, err := exec.Command(program, "help").Output()
	must(t, err)
	_, rest, _ := strings.Cut(string(help), "\nExamples:\n")
	rest, _, found := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatalf("the help shows no examples:\n%s", help)
	}
	byName, examples := map[string]*command{}, map[string]*command{}
	for _, c := range all {
		byName[c.key] = c
	}
	for line := range strings.Lines(rest + "\n") {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "  ")
		if !strings.HasPrefix(line, "omniagent ") {
			continue // what the line above is for
		}
		examples[line] = byName[strings.Fields(line)[1]]
		if examples[line] == nil { // a call that goes straight to an agent
			examples[line] = byName["start"]
		}
	}
	return examples
}

// TestExamples types each example of each help, with slow models, and compares what comes with what the list says. An
// example without a row fails, a row without an example, and one that says that it cannot be shown although it can.
func TestExamples(t *testing.T) {
	hermetic.Long(t)
	rows, all := examples(t), commands(t)
	lines := rootExamples(t, all)
	for _, c := range all {
		for _, e := range c.Examples {
			lines[e.Command] = c
		}
	}
	for line, c := range lines {
		row, listed := rows[line]
		if delete(rows, line); !listed {
			t.Errorf("an example without a row in testdata/examples.tsv: %s", line)
			continue
		}
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			row.typed(t, c)
		})
	}
	for line := range rows {
		t.Errorf("a row of testdata/examples.tsv without an example: %s", line)
	}
}

// typed types an example in a box where the command has something to do.
func (e example) typed(t *testing.T, c *command) {
	t.Helper()
	b := furnished(t, c)
	b.slow(t, c)
	over := b.before(t, e.setup)
	out, code := b.types(t, e.line, e.how)
	switch e.how {
	case "not":
		if code == 0 {
			t.Errorf("it can be shown: %s", out)
		}
		t.Skip("it cannot be shown here: " + e.shows)
	case "terminal", "interrupted":
	default:
		if want := e.how; want != strconv.Itoa(code) {
			t.Errorf("exit code %d, not %s\n%s", code, want, out)
		}
	}
	if !regexp.MustCompile(e.shows).MatchString(out) {
		t.Errorf("it does not show %q\n%s", e.shows, out)
	}
	over()
	b.alone(t, outcome{args: []string{e.line}, code: code})
}

// before types what comes before an example, and returns how to end what goes on in the background.
func (b *box) before(t *testing.T, setup string) (over func()) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", setup)
	cmd.Dir, cmd.Env = b.project, b.environment(call{})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("what comes before fails: %v\n%s", err, out)
	}
	return func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// silence is how long the models and the agents of these boxes think.
const silence = 3 * time.Second

// claude speaks as much of Claude Code's protocol as a turn takes. At a terminal it answers one line.
const claude = `#!/bin/sh
if [ -t 0 ]; then
	read -r line
	sleep 3
	echo '` + mended + `'
	exit
fi
while read -r line; do
	case $line in
	*'"subtype":"initialize"'*)
		id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
		printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
		;;
	*'"type":"user"'*)
		text='` + mended + `'
		case $line in *findings*) text='{\"findings\":0}' ;; esac
		echo '{"type":"system","subtype":"init","session_id":"11111111-1111-4111-8111-111111111111","model":"m1"}'
		sleep 3
		printf '%s\n' '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text",` +
	`"text":"'"$text"'"}]}}'
		printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"'"$text"'",` +
	`"session_id":"11111111-1111-4111-8111-111111111111"}'
		;;
	esac
done
`

// slow puts agents and a model into the box that think for a while.
func (b *box) slow(t *testing.T, about *command) {
	t.Helper()
	bin := filepath.Join(b.root, "bin")
	must(t, os.MkdirAll(bin, 0o755))
	thinks := strings.NewReplacer("text='"+mended+"'\n", "text='"+mended+"'\n\tsleep 3\n", `"turn/start"'*)`,
		`"turn/start"'*)`+"\n\t\tsleep 3")
	for name, script := range map[string]string{
		"codex": thinks.Replace(codex), "claude": claude, "omniagent": "#!/bin/sh\nexec '" + program + `' "$@"` + "\n",
	} {
		must(t, hermetic.WriteProgram(filepath.Join(bin, name), []byte(script), 0o755))
	}
	b.env["PATH"] = bin + string(filepath.ListSeparator) + b.env["PATH"]
	backend, err := modelserver.ParseScript([]byte(`{"slow":{"first":"3s"},"steps":[{"say":"` + said + `"}]}`))
	must(t, err)
	server, err := modelserver.Start(backend, modelserver.Options{})
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	b.env["ANTHROPIC_BASE_URL"], b.env["ANTHROPIC_API_KEY"] = server.URL(), "sk-walker"
	b.env["MODEL"] = server.URL()
	if about.key == "agents.allow" {
		return
	}
	if out, code := b.types(t, "omniagent agents allow codex claude", "0"); code != 0 {
		t.Fatalf("the agents are not allowed: %s", out)
	}
}

// types types a line and returns what both streams say, and the exit code.
func (b *box) types(t *testing.T, line, how string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = b.project, b.environment(call{}), time.Second
	var shown bytes.Buffer
	if how != "terminal" {
		cmd.Stdout, cmd.Stderr = &shown, &shown
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		must(t, cmd.Start())
		if how == "interrupted" {
			stop := time.AfterFunc(silence, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) })
			defer stop.Stop()
		}
	} else {
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200})
		must(t, err)
		defer func() { _ = terminal.Close() }()
		_, err = terminal.WriteString("hello\r/exit\r") // as keys, whether or not it reads keys already
		must(t, err)
		_, _ = shown.ReadFrom(terminal) // until the terminal is closed
	}
	_ = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatalf("%s does not end\n%s", line, shown.String())
	}
	return shown.String(), cmd.ProcessState.ExitCode()
}
