//go:build unix

package manual

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

const repository = "../.."

// program is the built program.
var program string

func TestMain(m *testing.M) {
	os.Exit(measure.WithProgram(repository, func(file string) int {
		program = file
		return hermetic.Sample(m, "TestLinks", "TestWordsOfPages", "TestReadme")
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources(repository); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reader is somebody at a terminal: Ann, in a project of hers.
type reader struct {
	root, home, app, bin, model string
	agents                      string   // where the real ones are
	keys                        []string // lines that are typed where the program shows "> " and waits
}

// wrapper stands in front of the program: an agent is not started unless it is ours, and a model is the one that is
// here.
const wrapper = `#!/bin/sh
[ -z "${REAL-}" ] || exec "$PROGRAM" "$@"
case ${1-} in
doctor)
	case " $* " in
	*" --rehearse"*) set -- "$@" --validate-only ;; # which would run the agents: the ones here are fake
	esac
	;;
acp | mcp) exec "$PROGRAM" "$@" </dev/null ;; # a host that has gone
start | chat)
	case " $* " in
	*" --dialect claude --agent codex "*) shift 5 && set -- start --dialect claude "$@" && export ANTHROPIC_BASE_URL="$MODEL" ;;
	*" --rehearse"*) ;; # a script of its own
	*) set -- "$@" --api-base "$MODEL" ;;
	esac
	;;
-V | --version | -h | --help) ;;
-*)
	case " $* " in
	*" native "* | *" scribe "* | *" sc "*) ;; # ours, and that of docs/custom-agents.md
	*" --output events"*) ;; # what start prints
	*) set -- --trace-translate=only "$@" ;;
	esac
	;;
esac
exec "$PROGRAM" "$@"
`

// newReader has an empty home and, with git, a repository in which one file was changed. The model thinks for longer
// than any look for a question lasts.
func newReader(t *testing.T) reader {
	t.Helper()
	root, err := filepath.EvalSymlinks(beyond(t))
	must(t, err)
	home := filepath.Join(root, "home", "ann")
	r := reader{root: root, home: home, app: filepath.Join(home, "app"), bin: filepath.Join(root, "bin")}
	for _, dir := range []string{filepath.Join(r.app, ".git"), r.bin, filepath.Join(root, "tmp")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, hermetic.WriteProgram(filepath.Join(r.bin, "omniagent"), []byte(wrapper), 0o755))
	if git, err := exec.LookPath("git"); err == nil {
		note := filepath.Join(r.app, "note.txt")
		must(t, os.WriteFile(note, []byte("one\n"), 0o644))
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
			cmd := exec.Command(git, args...)
			cmd.Dir, cmd.Env = r.app, []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH")}
			must(t, cmd.Run())
		}
		must(t, os.WriteFile(note, []byte("two\n"), 0o644))
	}
	backend, err := modelserver.ParseScript([]byte(`{"slow":{"first":"3s"},"steps":[{"say":"None of them."}]}`))
	must(t, err)
	server, err := modelserver.Start(backend, modelserver.Options{})
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	r.model = server.URL()
	return r
}

// beyond is an empty directory outside of those for temporary files, which behind walls are others, where there is a
// place for one.
func beyond(t *testing.T) string {
	t.Helper()
	for _, base := range []string{os.Getenv("HOME"), repository} {
		base, err := filepath.Abs(base)
		if made, wrong := os.MkdirTemp(base, ".test-"); err == nil && wrong == nil {
			t.Cleanup(func() { _ = os.RemoveAll(made) })
			if !strings.HasPrefix(made, "/tmp/") && !strings.HasPrefix(made, "/var/tmp/") {
				return made
			}
		}
	}
	return t.TempDir()
}

// stubs puts programs with the names of the agents where they are found. Codex thinks, and does a task.
func (r reader) stubs(t *testing.T) {
	t.Helper()
	for _, name := range []string{"claude", "codex", "copilot", "gemini", "opencode"} {
		text := "#!/bin/sh\nexit 0\n"
		if name == "codex" {
			text = codex
		}
		must(t, hermetic.WriteProgram(filepath.Join(r.bin, name), []byte(text), 0o755))
	}
}

// codex speaks as much of codex exec and of codex app-server as one turn takes, and leaves a file.
const codex = `#!/bin/sh
if [ "$1" = exec ]; then
	cat >/dev/null
	sleep 3
	echo done >mended
	echo '{"type":"thread.started","thread_id":"t1"}'
	echo '{"type":"turn.started"}'
	echo '{"type":"item.completed","item":{"type":"agent_message","id":"a1","text":"It is done."}}'
	echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
	exit
fi
while read -r line; do
	case $line in
	*'"initialize"'*) echo '{"id":1,"result":{}}' ;;
	*'"thread/'*) echo '{"id":2,"result":{"thread":{"id":"t1"}}}' ;;
	*'"turn/start"'*)
		sleep 3
		echo done >mended
		echo '{"id":3,"result":{"turn":{"id":"u1"}}}'
		echo '{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}'
		echo '{"method":"item/completed","params":{"threadId":"t1","turnId":"u1",` +
	`"item":{"type":"agentMessage","id":"a1","text":"It is done."}}}'
		echo '{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}'
		;;
	esac
done
`

// types has a shell do a text, in a terminal, and returns what stands there in the end and the exit code. What is typed
// meanwhile is a message and the end of a conversation, for those that read.
func (r reader) types(t *testing.T, options, line string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", options, line)
	cmd.Dir, cmd.WaitDelay = r.app, time.Second
	cmd.Env = []string{
		"HOME=" + r.home, "PATH=" + r.bin + ":/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + filepath.Join(r.root,
			"tmp"), "USER=ann", "TERM=xterm", "LC_ALL=C",
		"PROGRAM=" + program, "MODEL=" + r.model, "ANTHROPIC_API_KEY=sk-reader",
	}
	if r.agents != "" {
		cmd.Env = append(cmd.Env, "REAL=1", "PATH="+r.bin+":"+r.agents+":/usr/local/bin:/usr/bin:/bin")
	}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 300})
	must(t, err)
	defer func() { _ = terminal.Close() }()
	var shown bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		keys, from := r.keys, 0
		for block := make([]byte, 4096); ; {
			n, err := terminal.Read(block)
			shown.Write(block[:n])
			if len(keys) > 0 && bytes.Contains(shown.Bytes()[from:], []byte("\n> ")) {
				from = shown.Len()
				_, _ = io.WriteString(terminal, keys[0]+"\r")
				keys = keys[1:]
			}
			if err != nil {
				return
			}
		}
	}()
	if strings.Contains(line, "omniagent chat") {
		_, err = terminal.WriteString("hello\r/exit\r") // as keys, whether or not it reads keys already
		must(t, err)
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		_ = terminal.Close() // what the shell started may still wait there
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, shown.String())
	}
	<-read
	// what a terminal shows while a call takes longer than a second, and how that is wiped out
	waited := regexp.MustCompile(`(\r[a-z ]+: \d+s *\x08*)+\r *\x08*\r`)
	text := waited.ReplaceAllString(strings.ReplaceAll(shown.String(), "\r\n", "\n"), "")
	return strings.ReplaceAll(text, r.root, ""), cmd.ProcessState.ExitCode()
}

// files puts the files that a page shows where the page says, or where the reader stands.
func (r reader) files(t *testing.T, list []block) {
	t.Helper()
	for _, b := range list {
		dir := r.app
		switch {
		case b.file == "":
			continue
		case b.kind == "sh":
			dir = r.bin
		case b.kind == "toml":
			dir = filepath.Join(r.home, ".config", "omniagent", "agents")
		}
		must(t, os.MkdirAll(dir, 0o755))
		must(t, hermetic.WriteProgram(filepath.Join(dir, b.file), []byte(b.text), 0o755))
	}
}

// block is a piece of code in a page.
type block struct {
	kind, text string
	line       int
	file       string // of what stands in a file, its name: that is not typed
}

// blocks are those of a page, but for the recording of the demo, which has a test of its own.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, page))
	must(t, err)
	text := string(raw)
	if before, rest, ok := strings.Cut(text, "<!-- demo -->"); ok {
		demo, after, _ := strings.Cut(rest, "<!-- /demo -->")
		text = before + strings.Repeat("\n", strings.Count(demo, "\n")) + after
	}
	list := []block{}
	for _, at := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$").FindAllStringSubmatchIndex(text, -1) {
		b := block{kind: text[at[2]:at[3]], text: text[at[4]:at[5]], line: strings.Count(text[:at[0]], "\n") + 1}
		if m := regexp.MustCompile(`<!-- file: (\S+) -->\n$`).FindStringSubmatch(text[:at[0]]); m != nil {
			b.file = m[1]
		}
		list = append(list, b)
	}
	return list
}
