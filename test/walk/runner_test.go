//go:build unix

package walk

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEveryRunner makes the checks with the commands that run a program of the caller's: its streams and its exit
// status are those of the call, and what is not the program's stands on standard error behind the name of ours.
func TestEveryRunner(t *testing.T) {
	walled := slices.DeleteFunc(ofTerminal(t, true), func(c *command) bool { return !c.walls() })
	everyOne(t, walled, map[string]func(*testing.T, *command){
		"no_walls":        runnerWithoutWalls,
		"unwritable_home": runnerUnwritableHome,
		"leaves_nothing":  runnerLeavesNothing,
	})
	everyOne(t, ofTerminal(t, true), map[string]func(*testing.T, *command){
		"exit_status":           runnerExitStatus,
		"streams":               runnerStreams,
		"stdin_silent":          runnerStdinSilent,
		"stdout_lost":           runnerStdoutLost,
		"stderr_closed":         runnerStderrClosed,
		"flags_of_the_program":  runnerFlags,
		"signals":               runnerSignals,
		"no_program":            runnerWithoutProgram,
		"wrong_call":            runnerWrongCall,
		"no_home":               runnerNoHome,
		"torn_config":           runnerTornConfig,
		"help":                  checkHelp,
		"help_names_every_flag": checkOptionsInHelp,
		"schema":                runnerSchema,
	})
}

// of is a call that runs a program, in a place that an earlier one has made.
func (c *command) of(program ...string) call {
	words := c.words()
	if c.Flags["name"].Type != "" {
		words = append(words, "--name", "walk")
	}
	return call{args: append(append(words, "--"), program...)}
}

// walls reports whether the program runs behind walls.
func (c *command) walls() bool { return c.Flags["walls"].Type != "" }

func (c *command) sh(line string) call { return c.of("/bin/sh", "-c", line) }

// walled skips where the kernel has no walls at all, which the refusal has to say.
func walled(t *testing.T, c *command) *box {
	t.Helper()
	b := furnished(t, c)
	if o := b.run(t, c.sh("exit 0")); o.code == 12 {
		c.turnedAway(t, o, 12)
		t.Skipf("there are no walls here: %s", unwarned(o))
	}
	return b
}

func runnerExitStatus(t *testing.T, c *command) {
	b := walled(t, c)
	before := b.tree(t)
	for line, want := range map[string]int{
		"exit 0": 0, "exit 1": 1, "exit 7": 7, "exit 12": 12, "exit 255": 255, "kill -TERM $$": 128 +
			15, "kill -KILL $$": 128 + 9, "exit 143": 143,
	} {
		o := b.run(t, c.sh(line))
		if o.code != want || o.stdout != "" || unwarned(o) != "" {
			t.Errorf("%q does not end with %d, or something else speaks\n%s", line, want, o)
		}
		b.leftOnly(t, before, o)
		b.alone(t, o)
	}
}

// runnerStreams hands on what is not text.
func runnerStreams(t *testing.T, c *command) {
	b := walled(t, c)
	odd := "\x00\xff\r\n\x1b[31m\x80 no line end"
	typed := c.sh("cat; printf 'to\\tstderr\\0' >&2")
	typed.stdin = strings.Repeat(odd, 10_000)
	o := b.run(t, typed)
	if o.code != 0 || o.stdout != typed.stdin || unwarned(o) != "to\tstderr\x00" {
		t.Errorf("%d bytes in, %d out, %q on standard error, exit status %d", len(typed.stdin), len(o.stdout),
			unwarned(o), o.code)
	}
	typed = c.sh("cat")
	typed.redir = "<&-"
	if o := b.run(t, typed); o.stdout != "" {
		t.Errorf("what was closed is not\n%s", o)
	}
}

// runnerStdinSilent has a program that reads nothing, so nobody may wait for standard input.
func runnerStdinSilent(t *testing.T, c *command) {
	b := walled(t, c)
	typed := c.sh("echo heard")
	typed.silent = true
	if o := b.run(t, typed); o.code != 0 || o.stdout != "heard\n" {
		t.Errorf("it fails\n%s", o)
	}
}

// runnerStdoutLost: what the program makes of it is the program's affair.
func runnerStdoutLost(t *testing.T, c *command) {
	b := walled(t, c)
	for how, typed := range lost(t, c.sh("exec 2>&-; sleep 300 & echo heard || exit 9; exit 8")) {
		// what is closed is opened as /dev/null
		if o := b.run(t, typed); o.code != 9 && !(how == "gone" && o.code == 128+13) && !(how == ">&-" && o.code == 8) {
			t.Errorf("with %s it is not the program's own status\n%s", how, o)
		}
	}
	for _, typed := range lost(t, c.sh("exit 7")) {
		o := b.run(t, typed)
		if o.code != 7 {
			t.Errorf("a program that prints nothing is disturbed\n%s", o)
		}
		b.alone(t, o)
	}
}

func runnerStderrClosed(t *testing.T, c *command) {
	b := walled(t, c)
	for _, redir := range []string{"2>&-", "2>/dev/null", "2>" + full(t)} {
		typed := c.sh("echo heard; exit 7")
		typed.redir = redir
		if o := b.run(t, typed); o.code != 7 || o.stdout != "heard\n" {
			t.Errorf("with %s it fails\n%s", redir, o)
		}
		typed = c.of("no-such-program")
		typed.redir = redir
		if o := b.run(t, typed); o.code != 5 || o.stdout != "" {
			t.Errorf("with %s a refusal is another\n%s", redir, o)
		}
	}
}

// runnerFlags: behind -- no word is ours, whatever it looks like.
func runnerFlags(t *testing.T, c *command) {
	b := walled(t, c)
	words := []string{
		"--help", "-h", "--schema", "--version", "--no-such-flag", "--", "--cwd", "/", "", "two words",
		"$HOME", "*",
	}
	typed := c.of(append([]string{"/bin/sh", "-c", `for word; do echo "$word"; done`, "sh"}, words...)...)
	if o := b.run(t, typed); o.code != 0 || o.stdout != strings.Join(words, "\n")+"\n" {
		t.Errorf("words of the program are not handed on as they are\n%s", o)
	}
}

// runnerSignals sends the signals that end a call to ours alone. The program gets them, and all that it started is
// gone.
func runnerSignals(t *testing.T, c *command) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		b := walled(t, c)
		r, w, err := os.Pipe()
		must(t, err)
		cmd := execProgram(c.sh("echo ready; exec sleep 300").args...)
		cmd.Dir, cmd.Env, cmd.Stdout = b.project, b.environment(call{}), w
		must(t, cmd.Start())
		must(t, w.Close())
		if _, err := r.Read(make([]byte, 64)); err != nil {
			t.Errorf("the program was not started: %v", err)
		}
		must(t, cmd.Process.Signal(s))
		late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		late.Stop()
		_ = r.Close()
		if got := cmd.ProcessState.ExitCode(); got != 128+int(s) {
			t.Errorf("%s ends it with %d", s, got)
		}
		b.alone(t, outcome{args: cmd.Args, code: 128 + int(s)})
	}
}

func runnerWithoutProgram(t *testing.T, c *command) {
	b := walled(t, c)
	before := b.tree(t)
	file := b.write(t, "project/no-program", "exit 0\n")
	before[file] = b.tree(t)[file]
	for _, name := range []string{
		"no-such-program", "./no-such-program", "/no/such/program", "./no-program",
		"./.git",
	} {
		o := b.run(t, c.of(name))
		c.turnedAway(t, o, 5, name)
		b.leftOnly(t, before, o)
	}
	if !c.walls() {
		return
	}
	o := b.run(t, call{args: append(c.words(), "--write", "/no/such/directory", "--", "true")})
	c.turnedAway(t, o, 5, "/no/such/directory")
	b.leftOnly(t, before, o)
}

// runnerWithoutWalls asks for walls that another system has, and takes those away that this one has: nothing runs
// outside.
func runnerWithoutWalls(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	foreign := "seatbelt"
	if runtime.GOOS == "darwin" {
		foreign = "landlock"
	}
	o := b.run(t, call{args: append(c.words(), "--walls", foreign, "--", "touch", "made")})
	c.turnedAway(t, o, 12, foreign)
	b.leftOnly(t, before, o)
	if runtime.GOOS != "linux" {
		return
	}
	for _, asked := range []string{"", "--walls=namespaces"} {
		line := `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`
		args := []string{"-Ur", "/bin/sh", "-c", line, "sh", program, "sandbox", "run"}
		if asked != "" {
			args = append(args, asked)
		}
		cmd := exec.Command("unshare",
			append(args, "--", "/bin/sh", "-c", "echo ran; touch "+filepath.Join(b.root, "outside"))...)
		cmd.Dir, cmd.Env = b.project, b.environment(call{})
		out, err := cmd.CombinedOutput()
		if _, started := err.(*exec.ExitError); err != nil && !started || strings.Contains(string(out), "unshare: ") ||
			strings.Contains(string(out), "max_user_namespaces") {
			t.Skipf("namespaces cannot be taken away here: %v %s", err, out)
		}
		code, ran := cmd.ProcessState.ExitCode(), strings.Contains(string(out), "ran\n")
		if refusal := code == 12 && !ran; asked != "" && !refusal || asked == "" && !refusal && !ran {
			t.Errorf("%q without namespaces: exit status %d\n%s", asked, code, out)
		}
		if _, err := os.Lstat(filepath.Join(b.root, "outside")); err == nil {
			t.Errorf("%q without namespaces: it wrote outside\n%s", asked, out)
		}
	}
}

func runnerWrongCall(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	typed := c.sh("touch made")
	with := func(more ...string) call { return call{args: placed(typed.args, more...)} }
	o := b.run(t, with("--cwdd", "x", "--no-such-flag"))
	c.turnedAway(t, o, 2, "--cwdd", "--no-such-flag", "did you mean --cwd?")
	for _, flag := range []string{
		"--validate-only", "--dry-run", "--output-schema", "--show-requirements", "--timeout",
		"--walls=none", "--cwd=/no/such",
	} {
		name, _, _ := strings.Cut(flag, "=")
		if name == "--walls" && !c.walls() {
			continue
		}
		c.turnedAway(t, b.run(t, with(flag)), 2, name)
	}
	c.turnedAway(t, b.run(t, call{args: c.words()}), 2, "COMMAND")
	c.turnedAway(t, b.run(t, call{args: append(c.words(), "--")}), 2, "COMMAND")
	for _, name := range c.valued() {
		if c.Flags[name].Required {
			continue
		}
		c.turnedAway(t, b.run(t, call{args: append(c.words(), "true", "--"+name)}), 2, "--"+name)
	}
	b.leftOnly(t, before, o)
}

func runnerNoHome(t *testing.T, c *command) {
	b := walled(t, c)
	before := b.tree(t)
	for _, set := range [][]string{nil, {"HOME="}} {
		typed := c.sh("exit 7")
		typed.unset, typed.set = []string{"HOME"}, set
		if o := b.run(t, typed); o.code != 7 {
			c.turnedAway(t, o, o.code)
		}
		b.wroteNothing(t, before)
	}
}

// runnerUnwritableHome: the record of what has to be tidied lies in the temporary directory then.
func runnerUnwritableHome(t *testing.T, c *command) {
	b := walled(t, c)
	file := b.write(t, "file", "a file cannot hold anything, for the superuser neither\n")
	typed := call{args: append(c.words(), "--walls", "namespaces", "--", "touch", "made")}
	if o := b.run(t, typed); o.code == 12 {
		t.Skipf("there are no namespaces here: %s", unwarned(o))
	}
	must(t, os.Remove(filepath.Join(b.project, "made")))
	typed.unset, typed.set = []string{"HOME"}, []string{"HOME=" + filepath.Join(file, "home")}
	o := b.run(t, typed)
	if _, err := os.Lstat(filepath.Join(b.project, "made")); err != nil || o.code != 0 {
		t.Errorf("it did not run\n%s", o)
	}
}

func runnerTornConfig(t *testing.T, c *command) {
	b := walled(t, c)
	file := b.write(t, "home/.config/omniagent/config.toml", "# mine\ngrace = \"3s\"\noutput = \"js")
	if o := b.run(t, c.sh("exit 0")); !strings.Contains(o.stderr, file+":3:") {
		t.Errorf("the torn line is not named\n%s", o)
	}
}

// runnerLeavesNothing: what the program wrote in the workspace stays, and nothing else does. It also wrote, and
// started, what must not stay.
func runnerLeavesNothing(t *testing.T, c *command) {
	b := walled(t, c)
	before := b.tree(t)
	o := b.run(t,
		c.sh("echo kept >kept; echo gone >$TMPDIR/gone; echo no >../outside; echo no >$HOME/outside; sleep 300 "+
			"& exit 3"))
	if o.code != 3 {
		t.Errorf("it fails\n%s", o)
	}
	if text, err := os.ReadFile(filepath.Join(b.project, "kept")); err != nil || string(text) != "kept\n" {
		t.Errorf("what it wrote in the workspace is %q, %v", text, err)
	}
	b.leftOnly(t, before, o, filepath.Join(b.project, "kept"))
	b.alone(t, o)
}

func runnerSchema(t *testing.T, c *command) {
	b := newBox(t)
	before := b.tree(t)
	o := b.run(t, call{args: append(c.words(), "--schema")})
	if list := judgeLines(t, o); o.code != 0 || len(list) != 1 ||
		list[0].Data.(map[string]any)["output_class"] != "terminal" {
		t.Errorf("--schema tells nothing\n%s", o)
	}
	if changed := changes(before, b.tree(t)); len(changed) > 0 {
		t.Errorf("a description wrote %v", changed)
	}
	for _, number := range []int{0, 2, 5, 7, 12} {
		if c.Exits[strconv.Itoa(number)].Name == "" {
			t.Errorf("exit %d is not declared", number)
		}
	}
}
