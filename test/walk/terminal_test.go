//go:build unix

package walk

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryTerminal makes the checks with the commands that talk to a person. Nobody is here, so they must
// not wait; --plain lets a pipe take the person's place. That they work in a terminal is shown elsewhere.
func TestEveryTerminal(t *testing.T) {
	everyOne(t, ofTerminal(t, false), map[string]func(*testing.T, *command){
		"no_terminal":           terminalMissing,
		"plain":                 terminalPlain,
		"no_model":              terminalWithoutModel,
		"help":                  checkHelp,
		"help_names_every_flag": checkOptionsInHelp,
		"schema":                terminalSchema,
		"wrong_call":            terminalWrongCall,
		"stdout_lost":           terminalStdoutLost,
		"stderr_closed":         terminalStderrClosed,
		"no_home":               terminalNoHome,
		"torn_config":           terminalTornConfig,
	})
}

// turnedAway is a call that is refused: nothing on standard output, which belongs to the conversation.
func (c *command) turnedAway(t *testing.T, o outcome, code int, words ...string) {
	t.Helper()
	c.declares(t, o)
	refused(t, o, code, words...)
	if o.stdout != "" {
		t.Errorf("a refusal speaks on standard output\n%s", o)
	}
}

func terminalMissing(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	for _, typed := range []call{{redir: "<&-"}, {redir: "</dev/null"}, {silent: true}, {stdin: "hello\n"}} {
		for _, args := range [][]string{c.plain(t).args, c.talk(t, nobody(t)).args} {
			typed.args = args
			o := b.run(t, typed)
			c.turnedAway(t, o, 4, "terminal", "--plain")
			b.leftOnly(t, before, o)
			b.alone(t, o)
		}
	}
}

func terminalPlain(t *testing.T, c *command) {
	base := model(t, `[{"say": "`+said+` ${input}"}]`)
	for in, want := range map[string]int{"": 0, "one\n": 1, "one\ntwo\n": 2, "one\n/exit\ntwo\n": 1, "last": 1} {
		b := furnished(t, c)
		before := b.tree(t)
		typed := c.talk(t, base, "--plain")
		typed.stdin = in
		o := b.run(t, typed)
		c.declares(t, o)
		if got := strings.Count(o.stdout, said); o.code != 0 || got != want || unwarned(o) != "" {
			t.Errorf("%q has %d answers instead of %d\n%s", in, got, want, o)
		}
		b.leftOnly(t, before, o, b.conversations(), b.snapshots(), b.triedWalls(), b.eidolon())
		b.alone(t, o)
	}
	b := furnished(t, c)
	typed := c.talk(t, base, "--plain")
	typed.redir = "<&-"
	o := b.run(t, typed)
	if c.declares(t, o); o.code != 0 {
		t.Errorf("with standard input closed it fails\n%s", o)
	}
}

func terminalWithoutModel(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	typed := c.plain(t, "--plain")
	typed.stdin = "hello\n"
	o := b.run(t, typed) // no key, no --provider: nothing says which model
	c.declares(t, o)
	if o.code == 0 || !strings.HasPrefix(unwarned(o), "omniagent: ") ||
		!strings.Contains(o.stderr, "  omniagent login") ||
		o.stdout != "" {
		t.Errorf("that no model was chosen is not told\n%s", o)
	}
	b.leftOnly(t, before, o)
}

func terminalSchema(t *testing.T, c *command) {
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
	for _, number := range []string{"0", "2", "4"} {
		if c.Exits[number].Name == "" {
			t.Errorf("exit %s is not declared", number)
		}
	}
}

// terminalWrongCall is refused as such, and not for want of a terminal.
func terminalWrongCall(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	base := nobody(t)
	o := b.run(t, c.talk(t, base, "--cwdd", "x", "--no-such-flag"))
	c.turnedAway(t, o, 2, "--cwdd", "--no-such-flag", "did you mean --cwd?")
	c.turnedAway(t, b.run(t, c.talk(t, base, "surplus")), 2, "surplus")
	// of envelopes alone
	for _, flag := range []string{"--validate-only", "--dry-run", "--output-schema", "--show-requirements", "--quiet"} {
		c.turnedAway(t, b.run(t, c.talk(t, base, flag)), 2, flag)
	}
	for _, name := range c.valued() {
		c.turnedAway(t, b.run(t, c.talk(t, base, "--"+name)), 2, "--"+name)
	}
	help := b.run(t, call{args: append(c.words(), "--no-such-flag", "--help")})
	c.turnedAway(t, help, 2, "--no-such-flag") // so an example that is tried with --help can fail
	b.leftOnly(t, before, o)
}

func terminalStdoutLost(t *testing.T, c *command) {
	base := says(t)
	for _, more := range [][]string{{"--plain"}, {}, {"--no-such-flag"}} {
		typed := c.talk(t, base, more...)
		typed.stdin = "one\n"
		for how, typed := range lost(t, typed) {
			b := furnished(t, c)
			before := b.tree(t)
			o := b.run(t, typed)
			c.declares(t, o)
			if len(more) == 0 && o.code != 4 || len(more) > 0 && more[0] != "--plain" && o.code != 2 {
				t.Errorf("a refusal is another with %s\n%s", how, o)
			}
			b.leftOnly(t, before, o, b.conversations(), b.snapshots(), b.triedWalls(), b.eidolon())
			b.alone(t, o)
		}
	}
}

func terminalStderrClosed(t *testing.T, c *command) {
	b := furnished(t, c)
	base := says(t)
	for _, redir := range []string{"2>&-", "2>/dev/null", "2>" + full(t)} {
		typed := c.talk(t, base, "--plain")
		typed.redir, typed.stdin = redir, "one\n"
		if o := b.run(t, typed); o.code != 0 || !strings.Contains(o.stdout, said) {
			t.Errorf("with %s it fails\n%s", redir, o)
		}
		typed = c.talk(t, base)
		typed.redir = redir
		if o := b.run(t, typed); o.code != 4 || o.stdout != "" {
			t.Errorf("with %s a refusal is another\n%s", redir, o)
		}
	}
}

func terminalNoHome(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	for _, set := range [][]string{nil, {"HOME="}} {
		typed := c.talk(t, says(t), "--plain")
		typed.unset, typed.set = []string{"HOME"}, set
		o := b.run(t, typed)
		c.turnedAway(t, o, 4)
		b.wroteNothing(t, before)
	}
	file := b.write(t, "file", "a file cannot hold anything\n")
	typed := c.talk(t, says(t), "--plain")
	typed.unset, typed.set = []string{"HOME"}, []string{"HOME=" + filepath.Join(file, "home")}
	if o := b.run(t, typed); o.code != 0 || !strings.Contains(o.stderr, "nothing of the conversation is kept") {
		t.Errorf("it does not say that nothing is kept\n%s", o)
	}
}

func terminalTornConfig(t *testing.T, c *command) {
	b := furnished(t, c)
	file := b.write(t, "home/.config/omniagent/config.toml", "# mine\ngrace = \"3s\"\noutput = \"js")
	o := b.run(t, c.talk(t, says(t), "--plain"))
	if c.declares(t, o); !strings.Contains(o.stderr, file+":3:") {
		t.Errorf("the torn line is not named\n%s", o)
	}
}
