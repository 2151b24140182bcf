package run

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/testkit/measure"
)

// forked is the answer of a command about forks.
type forked struct {
	Data struct {
		Name  string
		Fork  string
		Turn  string
		ID    string `json:"run_id"`
		Files []struct{ Path, Result, Status string }
		Forks []struct {
			Name, Tier string
			Running    []int
		}
	}
	Error *struct{ Code, Message string }
}

func (p *place) fork(want int, args ...string) (f forked) {
	p.t.Helper()
	a := p.call(args...)
	if err := json.Unmarshal([]byte(a.Stdout), &f); err != nil || a.Code != want {
		p.t.Fatalf("%v: want %d: %v\n%s", args, want, err, a)
	}
	return f
}

// TestARunInAFork lets an agent destroy everything in a fork, and brings home what another one has made.
func TestARunInAFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; echo one >first.txt; rm -rf src; echo "I wrote it."`).
		agent("vandal", `cat >/dev/null; rm -rf ./* .git; echo "It is clean."`)
	p.put("src/a.txt", "a\n")
	was, err := measure.Oracle(p.work, p.env)
	if err != nil {
		t.Fatal(err)
	}
	unchanged := func() {
		t.Helper()
		if is, err := measure.Oracle(p.work, p.env); err != nil || is != was {
			t.Errorf("the workspace is %s\nand was %s: %v", is, was, err)
		}
	}
	p.run("vandal", "--yolo", "--fork").is(t, 0, "succeeded", "done")
	unchanged()
	a := p.run("scribe", "--yolo", "--fork")
	a.is(t, 0, "succeeded", "done")
	unchanged()
	if !strings.Contains(a.Stdout, `"fork":"work-2"`) || a.Data.Changed == nil || a.Data.Changed.Count != 2 {
		t.Errorf("%s", a)
	}
	if next := strings.Join(a.Data.Summary.Next, ";"); !strings.Contains(next, "omniagent fork apply work-2") {
		t.Errorf("next is %s", next)
	}
	if d := p.fork(0, "fork", "diff", "work-2"); len(d.Data.Files) != 3 {
		t.Errorf("%+v", d)
	}
	if d := p.fork(0, "fork", "apply", "work-2"); len(d.Data.Files) != 3 || d.Data.Turn == "" {
		t.Errorf("%+v", d)
	}
	if p.read("first.txt") != "one\n" {
		t.Error("nothing was brought home")
	}
	p.fork(0, "undo")
	unchanged()
	p.fork(2, "fork", "delete", "work-1", "work-2")
	p.fork(5, "fork", "delete", "work-1", "nobody", "--confirm-destructive") // and the other one stays
	if d := p.fork(0, "fork", "delete", "work-1", "work-2", "work-1", "--confirm-destructive"); len(d.Data.Forks) != 2 {
		t.Errorf("%+v", d)
	}
	if d := p.fork(0, "fork", "list"); len(d.Data.Forks) > 0 {
		t.Errorf("%+v", d)
	}
	p.nothing()
}

// TestNothingComesHomeInside: who asks for it in the fork itself is not told to delete it.
func TestNothingComesHomeInside(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	out, _ := p.command("fork", "run", "--name", "try", "--", program, "fork", "apply", "try", "--output=json").Output()
	if s := string(out); !strings.Contains(s, `"CONFLICT"`) || strings.Contains(s, "fork delete") ||
		!strings.Contains(s, "in "+p.work+": omniagent fork apply try") {
		t.Error(s)
	}
	if d := p.call("fork", "apply", "try"); d.Code != 0 || !strings.Contains(d.Stdout, `"effect":"noop"`) {
		t.Errorf("%s", d)
	}
}

// TestAChatInAFork says how it goes on in the fork, and not in the files themselves, and so do lists of sessions.
func TestAChatInAFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"calls":[{"shell":"echo 1 >one.txt"}]},{"say":"ok"},
		{"calls":[{"shell":"echo 2 >two.txt"}]},{"say":"ok"}]`)
	talk := func(said string, args ...string) string {
		t.Helper()
		cmd := p.command(append(args, "--plain", "--provider", "openai", "-m", "m", "--approval", "yolo")...)
		cmd.Stdin = strings.NewReader(said + "\n/quit\n")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	out := talk("go\n/undo", "chat", "--fork")
	if !strings.Contains(out, "nothing was taken back: this is the fork work-1, of which no snapshots are kept") {
		t.Error(out)
	}
	next := regexp.MustCompile(`Go on with: omniagent (fork run --name work-1 .*-- )omniagent (chat --resume \S+)`).
		FindStringSubmatch(out)
	if next == nil {
		t.Fatal(out)
	}
	talk("more", append(strings.Fields(next[1]), append([]string{program}, strings.Fields(next[2])...)...)...)
	if p.read("one.txt") != "" || p.read("two.txt") != "" {
		t.Error("it worked in the workspace")
	}
	if d := p.fork(0, "fork", "diff", "work-1"); len(d.Data.Files) != 2 {
		t.Errorf("%+v", d)
	}
	inside := "omniagent fork run --name work-1 --network internet -- "
	for _, want := range []string{inside + "omniagent start", "omniagent start"} {
		for _, args := range [][]string{{"session", "list"}, {"session", "search", "more"}} {
			if d := p.call(args...); !strings.Contains(d.Stdout, `"resume":"`+want+" --resume ") {
				t.Errorf("%v: not %q: %s", args, want, d)
			}
		}
		p.call("fork", "delete", "work-1", "--confirm-destructive")
	}
	p.nothing()
}

// TestAPathThatIsNotText: a workspace whose path is not UTF-8 is not covered, since its record would name another one,
// and nothing is written there.
func TestAPathThatIsNotText(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; rm old.txt; echo "I removed it."`)
	above := p.work
	p.work = filepath.Join(above, "\xff")
	p.put("old.txt", "old\n")
	p.git("init", "-q")
	a := p.run("scribe", "--yolo")
	a.is(t, 0, "succeeded", "done")
	if !strings.Contains(a.Stdout, "is not UTF-8, so neither undo nor a fork covers it") {
		t.Errorf("%s", a)
	}
	for _, args := range [][]string{{"undo"}, {"run", "--agent", "scribe", "--yolo", "--fork", "-p", "go"}} {
		if a := p.call(args...); a.Code != 2 || a.Error == nil || a.Error.Code != "UNSUPPORTED" {
			t.Errorf("%v: %s", args, a)
		}
	}
	if names, err := os.ReadDir(above); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
	p.nothing()
}

// TestAnAnswerToAFork that names no run is asked about as that to any run of another directory.
func TestAnAnswerToAFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("script.json", `[{"ask":"Which colour?"},{"say":"painted"}]`)
	p.put("far/a.txt", "a\n")
	a := p.call("run", "--fork", "--rehearse", "--script", p.work+"/script.json", "-p", "paint",
		"--cwd", p.work+"/far")
	if a.Data.Status != "needs_input" {
		t.Fatalf("%s", a)
	}
	shown, code := p.atTerminal([][2]string{{"Answer it? [y/N] ", "n\r"}}, "answer", "blue")
	if code != 2 || !strings.Contains(shown, "/far asks: Which colour?") ||
		!strings.Contains(shown, "nothing was answered") {
		t.Errorf("%d %s", code, shown)
	}
	shown, code = p.atTerminal([][2]string{{"Answer it? [y/N] ", "y\r"}}, "answer", "blue")
	if code != 0 || !strings.Contains(shown, "painted") {
		t.Errorf("%d %s", code, shown)
	}
}

// TestWhatStaysInAFork: apply says that commits of another repository are in the fork alone, and a run knows its diff
// also when the fork is gone.
func TestWhatStaysInAFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("nester", `cat >/dev/null; git init -q -b main inner; echo 1 >inner/f; git -C inner add .
git -C inner -c user.name=a -c user.email=a@example.org commit -q -m first; echo "I made it."`)
	p.git("init", "-q", "-b", "main")
	a := p.run("nester", "--yolo", "--fork")
	a.is(t, 0, "succeeded", "done")
	applied := p.call("fork", "apply", "work-1")
	if applied.Code != 0 || p.read("inner/f") != "1\n" ||
		!strings.Contains(applied.Stdout, "FORK_OWN: commits of refs/heads/main of inner stay in the fork") {
		t.Errorf("%s", applied)
	}
	p.fork(0, "fork", "delete", "work-1", "--confirm-destructive")
	for _, command := range []string{"apply", "retry"} {
		gone := p.call("runs", command, a.Data.ID)
		if gone.Code != 5 || !strings.Contains(gone.Error.Suggestion, "runs diff "+a.Data.ID) {
			t.Errorf("%s", gone)
		}
	}
}

// TestTheNativeAgentInAFork removes files without a question, because the fork covers them, and behind walls.
func TestTheNativeAgentInAFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"calls":[{"shell":"rm -rf src && echo new >new.txt && echo removed"}]},{"say":"${result}"}]`)
	p.put("src/a.txt", "a\n")
	a := p.call("run", "--agent", "native", "-m", "m", "--provider", "openai", "-p", "go", "--fork")
	a.is(t, 0, "succeeded", "done")
	if !strings.Contains(a.Data.Text.Value, "removed") || p.read("src/a.txt") != "a\n" {
		t.Errorf("%s", a)
	}
	if d := p.fork(0, "fork", "diff", "work-1"); len(d.Data.Files) != 3 {
		t.Errorf("%+v", d)
	}
	p.fork(0, "fork", "delete", "work-1", "--confirm-destructive")
	p.nothing()
}

// TestWallsInAFork has walls in a fork and outside of it at a time: what they make for a moment is removed in both.
func TestWallsInAFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("a.txt", "a\n")
	was, err := os.ReadDir(p.work)
	if err != nil {
		t.Fatal(err)
	}
	inside := p.command("fork", "run", "--name", "try", "--", program, "sandbox", "run", "--", "sh", "-c",
		"echo ready; read x; echo done")
	in, err := inside.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := inside.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(said)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q %v", line, err)
	}
	if out, err := p.command("sandbox", "run", "--", "true").CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
	if is, err := os.ReadDir(p.work); err != nil || len(is) != len(was) {
		t.Errorf("it left %v %v", is, err)
	}
	_ = in.Close()
	if line, err := lines.ReadString('\n'); line != "done\n" {
		t.Errorf("%q %v", line, err)
	}
	if err := inside.Wait(); err != nil {
		t.Error(err)
	}
	if d := p.fork(0, "fork", "diff", "try"); len(d.Data.Files) > 0 {
		t.Errorf("%+v", d)
	}
	p.fork(0, "fork", "delete", "try", "--confirm-destructive")
}

// TestWhereACallInAForkBegins: it begins in the directory of the call, whether that has a line break in its name or is
// told by a relative path.
func TestWhereACallInAForkBegins(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; echo one >first.txt; echo "I wrote it."`)
	p.put("a\nb/a.txt", "a\n")
	p.put("b/a.txt", "a\n")
	wrote := func(dir string, args ...string) {
		t.Helper()
		a := p.run("scribe", append(args, "--yolo")...)
		if a.is(t, 0, "succeeded", "done"); a.Data.Changed == nil || len(a.Data.Changed.Files) != 1 ||
			a.Data.Changed.Files[0].Path != filepath.Join(p.work, dir, "first.txt") {
			t.Errorf("%s", a)
		}
	}
	wrote("b", "--fork", "--cwd", "b")
	p.work = filepath.Join(p.work, "a\nb")
	wrote("", "--fork")
	a := p.call("run", "--race", "scribe*2", "--yolo", "-p", "the task")
	a.is(t, 0, "succeeded", "done")
}

// TestARunInAForkGoesOn answers the question of a run that works in a fork, from outside of it.
func TestARunInAForkGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >answer.txt; echo "I wrote it."`)
	asked := p.run("scribe", "--yolo", "--fork", "--require", "colour=Which colour?")
	asked.is(t, 4, "needs_input", asked.Data.Reason)
	done := p.call("answer", asked.Data.ID, "blue")
	done.is(t, 0, "succeeded", "done")
	if _, err := os.Stat(filepath.Join(p.work, "answer.txt")); err == nil {
		t.Error("it worked in the workspace")
	}
	p.fork(0, "fork", "apply", "work-1")
	if got := p.read("answer.txt"); !strings.Contains(got, "blue") {
		t.Errorf("%q", got)
	}
	p.fork(0, "fork", "delete", "work-1", "--confirm-destructive")
	p.nothing()
}

// TestWhatIsRefusedLeavesNoFork: what is refused before an agent works leaves no fork behind, and makes one only if it
// takes the call itself to find out.
func TestWhatIsRefusedLeavesNoFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("gone", "").agent("stranger", "").agent("scribe", `cat >/dev/null; echo "I wrote it."`)
	if err := os.Remove(filepath.Join(p.bin, "gone")); err != nil {
		t.Fatal(err)
	}
	p.allowed = []string{"scribe"}
	p.configured("")
	for _, c := range []struct {
		code int
		made bool
		args []string
	}{
		{8, false, []string{"run", "-p", "x"}},
		{5, false, []string{"run", "-p", "x", "--agent", "nobody"}},
		{5, false, []string{"run", "-p", "x", "--agent", "gone"}},
		{5, false, []string{"run", "-p", "x", "--agent", "gone", "--detach"}},
		{7, false, []string{"run", "-p", "x", "--agent", "stranger"}},
		{8, false, []string{"run", "-p", "x", "--agent", "native"}},
		{2, false, []string{"run", "-p", "x", "--agent", "scribe", "--unknown"}},
		{2, false, []string{"run", "-p", " ", "--agent", "scribe"}},
		{2, true, []string{"run", "--agent", "scribe"}},
		{5, false, []string{"run", "-p", "x", "--agent", "scribe", "--answer-from", "a=missing"}},
		{5, false, []string{"run", "-p", "x", "--agent", "scribe", "--answer-from", "a=missing", "--detach"}},
		{2, false, []string{"start", "-p", "x", "--agent", "nobody"}},
		{1, false, []string{"start", "-p", "x"}},
		{2, false, []string{"start", "-p", "x", "--system-prompt-file", "missing"}},
		{2, false, []string{"start", "-p", "x", "--agent", "scribe", "--protocol-version", "2"}},
		{4, false, []string{"chat"}},
		{8, false, []string{"chat", "--plain"}},
	} {
		cmd := p.command(append(c.args, "--fork")...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%v: exit %d, want %d\n%s", c.args, code, c.code, out)
		}
		if made := strings.Contains(string(out), "working in the fork"); made != c.made {
			t.Errorf("%v: %s", c.args, out)
		}
		if d := p.fork(0, "fork", "list"); len(d.Data.Forks) > 0 {
			t.Fatalf("%v: %+v", c.args, d)
		}
	}
	p.run("scribe", "--yolo", "--fork").is(t, 0, "succeeded", "done_unchanged")
	if d := p.fork(0, "fork", "list"); len(d.Data.Forks) != 1 {
		t.Errorf("%+v", d)
	}
	p.nothing()
}

// TestAForkThatIsInterrupted presses Ctrl-C before the call in the fork listens to signals: there is an answer all the
// same.
func TestAForkThatIsInterrupted(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; echo "I wrote it."`)
	cmd := p.command("run", "-p", "x", "--agent", "scribe", "--yolo", "--fork", "--output", "json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || !strings.Contains(line, "in the fork") {
		t.Errorf("%q: %v", line, err)
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	_, _ = io.Copy(io.Discard, stderr)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), `"code":"CANCELLED"`) {
		t.Errorf("exit %d: %s", code, out.String())
	}
	p.nothing()
}

// TestAForkIsOpened reaches a server in a fork from outside, twice, until the relay is interrupted.
func TestAForkIsOpened(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3, which serves")
	}
	p := newPlace(t)
	p.put("page.html", "in the workspace\n")
	server := p.command("fork", "run", "--name", "web", "--", "sh", "-c", "echo in the fork >page.html; exec "+python+
		" -u -m http.server 3000 --bind 127.0.0.1")
	said, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); !strings.Contains(line, "Serving") {
		t.Fatalf("%q %v", line, err)
	}
	relay := p.command("fork", "open", "web", ":3000")
	out, err := relay.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		answer, err := http.Get(strings.TrimSpace(address) + "/page.html")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if string(text) != "in the fork\n" {
			t.Errorf("%q", text)
		}
	}
	_ = relay.Process.Signal(syscall.SIGTERM)
	if err := relay.Wait(); err != nil {
		t.Errorf("the relay: %v", err)
	}
	_ = server.Process.Signal(syscall.SIGTERM)
	_ = server.Wait()
	p.fork(0, "fork", "delete", "web", "--confirm-destructive")
	p.nothing()
}

// TestAForkOfTheSameName: a run never takes up the fork that got the name of its own, be that of another workspace or
// of the same one.
func TestAForkOfTheSameName(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; pwd >from.txt; echo "I wrote it."`).
		agent("asker", `cat >/dev/null; printf 'What is your favourite colour?\n'`)
	p.put("a.txt", "a\n")
	elsewhere := filepath.Join(p.home, "elsewhere", "work")
	p.put(filepath.Join(elsewhere, "b.txt"), "b\n")
	first := p.run("scribe", "--yolo", "--fork")
	asked := p.run("asker", "--yolo", "--fork")
	asked.is(t, 4, "needs_input", "question")
	p.fork(0, "runs", "apply", first.Data.ID)
	p.fork(0, "fork", "delete", "work-1", "work-2", "--confirm-destructive")

	for _, dir := range []string{elsewhere, p.work} {
		other := p.run("scribe", "--yolo", "--fork", "--cwd", dir)
		other.is(t, 0, "succeeded", "done")
		again := p.run("scribe", "--yolo", "--fork", "--cwd", dir)
		p.put("from.txt", dir)
		p.put(filepath.Join(elsewhere, "from.txt"), dir)
		for _, old := range []bool{false, true} {
			if old { // a record of an earlier version
				p.forgetForks()
			}
			for _, args := range [][]string{
				{"runs", "apply", first.Data.ID},
				{"runs", "apply", first.Data.ID, "--as", "branch"},
				{"runs", "retry", first.Data.ID},
				{"runs", "retry", first.Data.ID, "--detach"},
				{"answer", asked.Data.ID, "blue"},
				{"answer", asked.Data.ID, "blue", "--detach"},
				{"runs", "continue", asked.Data.ID},
			} {
				if d := p.fork(5, args...); d.Error == nil || !strings.Contains(d.Error.Message, "was deleted") {
					t.Errorf("%v: %+v", args, d)
				}
			}
			if out, err := p.command("runs", "diff", first.Data.ID, other.Data.ID).CombinedOutput(); err == nil ||
				!strings.Contains(string(out), "was deleted") {
				t.Errorf("%v: %s", err, out)
			}
		}
		if p.read("from.txt") != dir {
			t.Error("it was changed")
		}
		d := p.fork(3, "runs", "apply", other.Data.ID) // old records of forks that are there work
		if len(d.Data.Files) != 1 || d.Data.Files[0].Path != filepath.Join(dir, "from.txt") {
			t.Errorf("%+v", d)
		}
		p.call("runs", "retry", again.Data.ID).is(t, 0, "succeeded", "done_unchanged")
		p.fork(0, "fork", "delete", "work-1", "work-2", "--confirm-destructive")
	}
}

// forgetForks removes from the records of runs what an earlier version did not write.
func (p *place) forgetForks() {
	p.t.Helper()
	found, _ := filepath.Glob(filepath.Join(p.home, ".local/state/omniagent/runs/*/*.json"))
	changed := 0
	for _, file := range found {
		data, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		text := regexp.MustCompile(`"fork_id":\s*"[^"]*",?`).ReplaceAllString(string(data), "")
		if text != string(data) {
			changed++
			p.put(file, text)
		}
	}
	if changed == 0 {
		p.t.Errorf("no record names the ID of a fork: %q", found)
	}
}

// TestWhatARepositoryLost removes what git needs and no index of a run has. Packed again, objects are not lost.
func TestWhatARepositoryLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		gone   string
	}{
		{"rm -rf .git/objects", ".git/objects"},
		{"rm -f .git/objects/*/*", ".git/objects"},
		{"rm -rf .git/logs", ".git/logs"},
		{"rm .git/index", ".git/index"},
		{"git gc -q --prune=now; git branch -D b; git commit -q --allow-empty -m two", ""},
	} {
		for _, fork := range []bool{false, true} {
			p := newPlace(t).agent("rough", "cat >/dev/null; export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name "+
				"GIT_CONFIG_VALUE_0=a GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=a@b; "+c.script+"; echo ok")
			p.put("a.txt", "a\n")
			p.git("init", "-q", "-b", "main")
			p.git("add", ".")
			p.git("commit", "-q", "-m", "first")
			p.git("branch", "b")
			args := []string{"--yolo"}
			if fork {
				args = append(args, "--fork")
			}
			a := p.run("rough", args...)
			var d struct {
				Data struct {
					Changed struct {
						Git  []struct{ Value string }
						Gone []struct {
							Path  string
							Count int
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(a.Stdout), &d); err != nil {
				t.Fatal(err)
			}
			gone := d.Data.Changed.Gone
			if c.gone == "" && len(gone) > 0 || c.gone != "" && (len(gone) != 1 || gone[0].Path != c.gone ||
				gone[0].Count == 0 || !strings.Contains(a.Stdout, `"`+c.gone+`"`)) {
				t.Errorf("%s (fork %t): %+v", c.script, fork, d.Data.Changed)
			}
		}
	}
}
