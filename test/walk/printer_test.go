//go:build unix

package walk

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryPrinter makes the checks with streams that only print. What is in their lines is shown in test/start and
// test/run.
func TestEveryPrinter(t *testing.T) {
	printers := slices.DeleteFunc(of(t, "stream"), func(c *command) bool {
		return !c.prints() || c.key == "help" // which prints text, and needs nothing
	})
	if len(printers) < 4 {
		t.Fatalf("there are %d printers", len(printers))
	}
	everyOne(t, printers, map[string]func(*testing.T, *command){
		"help":                  checkHelp,
		"help_names_every_flag": checkOptionsInHelp,
		"schema":                serverSchema,
		"wrong_call":            printerWrongCall,
		"no_home":               printerNoHome,
	})
	// one goes on until it is interrupted, which test/run has
	printers = slices.DeleteFunc(slices.Clone(printers), func(c *command) bool { return c.key == "fork.open" })
	everyOne(t, printers, map[string]func(*testing.T, *command){
		"unknown":       printerUnknown,
		"prints":        printerPrints,
		"stdout_lost":   printerStdoutLost,
		"stderr_closed": printerStderrClosed,
		"torn_config":   printerTornConfig,
	})
}

// failed holds an outcome against what is promised of a printer that fails: an envelope, and the same for people.
func (c *command) failed(t *testing.T, o outcome, code int, errorCode string, words ...string) {
	t.Helper()
	e := c.judge(t, o)
	if told, _ := e.Error["code"].(string); o.code != code || told != errorCode {
		t.Errorf("it does not fail with %d %s\n%s", code, errorCode, o)
	}
	lines := unwarned(o)
	if !strings.HasPrefix(lines, "omniagent: ") || !strings.Contains(lines, "\nhint: ") {
		t.Errorf("standard error does not tell it\n%s", o)
	}
	for _, word := range words {
		if !strings.Contains(lines, word) || !strings.Contains(o.stdout, word) {
			t.Errorf("the failure does not name %q\n%s", word, o)
		}
	}
}

func printerWrongCall(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	for _, more := range [][]string{
		{"--no-such-flag"},
		{"surplus"},
		{"--dry-run"},
		{"--quiet"},
		{"--timeout", "soon"},
		{"--cwd", "nowhere"},
	} {
		typed := c.plain(t, more...)
		if c.key == "runs.diff" && more[0] == "surplus" { // which takes two runs
			typed = c.plain(t, "run-0000", "surplus")
		}
		o := b.run(t, typed)
		c.failed(t, o, 2, "VALIDATION_ERROR", strings.TrimLeft(more[0], "-"))
		b.leftOnly(t, before, o)
	}
	for _, name := range c.valued() {
		c.failed(t, b.run(t, c.plain(t, "--"+name)), 2, "VALIDATION_ERROR", name)
	}
	c.failed(t, b.run(t, call{args: c.words()}), 2, "VALIDATION_ERROR", "ID")
}

// printerUnknown asks for what is not there.
func printerUnknown(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	typed := c.elsewhere(t)
	o := b.run(t, typed)
	c.failed(t, o, 5, "NOT_FOUND", typed.args[len(typed.args)-1])
	b.leftOnly(t, before, o)
}

// printed judges the lines of a printer by what it prints: records are JSON, the others are text for people and
// programs.
func (c *command) printed(t *testing.T, o outcome) {
	t.Helper()
	c.declares(t, o)
	if o.code != 0 || !strings.HasSuffix(o.stdout, "\n") || unwarned(o) != "" {
		t.Errorf("it does not print whole lines, and nothing else\n%s", o)
	}
	switch c.key {
	case "runs.diff":
		if !strings.Contains(o.stdout, "+++ b/lock.txt\n") || !strings.Contains(o.stdout, "\n+one lock\n") {
			t.Errorf("that is not the diff\n%s", o)
		}
		return
	case "runs.logs":
		if !strings.Contains(o.stdout, "Where is the deadlock?") ||
			!strings.Contains(o.stdout, "Between the two locks of the cache.") {
			t.Errorf("that is not the conversation\n%s", o)
		}
		return
	}
	var last map[string]any
	for line := range strings.Lines(o.stdout) {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if _, numbered := last["seq"]; numbered && last["kind"] == "" {
			t.Errorf("a record has no kind: %s", line)
		}
	}
	if c.key == "runs.watch" && (last["status"] != "succeeded" || last["exit_code"] != 0.0) {
		t.Errorf("the last line is not the end of the run\n%s", o)
	}
}

// printerPrints: its lines and nothing else, whatever becomes of standard input, and nothing is left.
func printerPrints(t *testing.T, c *command) {
	first := ""
	for _, typed := range []call{{}, {redir: "<&-"}, {redir: "</dev/null"}, {silent: true}} {
		b := furnished(t, c)
		before := b.tree(t)
		typed.args = c.plain(t).args
		o := b.run(t, typed)
		c.printed(t, o)
		if first == "" {
			first = o.stdout
		}
		if o.stdout != first {
			t.Errorf("it prints something else the next time: %q\n%s", first, o)
		}
		b.leftOnly(t, before, o)
		b.alone(t, o)
	}
}

func printerStdoutLost(t *testing.T, c *command) {
	for how, typed := range lost(t, c.plain(t)) {
		b := furnished(t, c)
		before := b.tree(t)
		o := b.run(t, typed)
		c.declares(t, o)
		if how == ">/dev/full" && (o.code != 1 || strings.Count(o.stderr, "standard output cannot be written: ") != 1 ||
			strings.Count(o.stderr, "write ") != 1) {
			t.Errorf("lines that were lost are not told once\n%s", o)
		}
		want := 0
		if c.key == "runs.watch" && how == "gone" {
			want = 1 // its code is that of the run, whose end it has not seen
		}
		if how != ">/dev/full" && o.code != want {
			t.Errorf("with %s it fails\n%s", how, o)
		}
		b.leftOnly(t, before, o)
	}
}

func printerStderrClosed(t *testing.T, c *command) {
	b := furnished(t, c)
	for _, redir := range []string{"2>&-", "2>/dev/null", "2>" + full(t)} {
		typed := c.plain(t)
		typed.redir = redir
		if o := b.run(t, typed); o.code != 0 || o.stdout == "" {
			t.Errorf("with %s it fails\n%s", redir, o)
		}
		typed = c.elsewhere(t)
		typed.redir = redir
		if o := b.run(t, typed); c.judge(t, o).Error["code"] != "NOT_FOUND" || o.code != 5 {
			t.Errorf("with %s a failure is another\n%s", redir, o)
		}
	}
}

func printerNoHome(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	typed := c.plain(t)
	typed.unset = []string{"HOME"}
	c.failed(t, b.run(t, typed), 4, "NO_HOME")
	b.wroteNothing(t, before)
	typed.set = []string{"HOME=" + filepath.Join(b.write(t, "file", "no directory\n"), "home")}
	o := b.run(t, typed)
	c.failed(t, o, 5, "NOT_FOUND")
}

func printerTornConfig(t *testing.T, c *command) {
	b := furnished(t, c)
	file := b.write(t, "home/.config/omniagent/config.toml", "# mine\ngrace = \"3s\"\noutput = \"js")
	o := b.run(t, c.plain(t))
	if c.declares(t, o); o.code != 0 || !strings.Contains(o.stderr, file+":3:") {
		t.Errorf("the torn line is not named, or nothing is printed\n%s", o)
	}
}

// TestHelpCommand: help prints text and leaves nothing, whatever becomes of the streams, the home and the
// configuration. A wrong call is an envelope.
func TestHelpCommand(t *testing.T) {
	c := commandNamed(t, "help")
	t.Run("help", func(t *testing.T) { checkHelp(t, c) })
	t.Run("flags", func(t *testing.T) { checkOptionsInHelp(t, c) })
	t.Run("schema", func(t *testing.T) { serverSchema(t, c) })
	t.Run("stdout", func(t *testing.T) { printerStdoutLost(t, c) })
	b := newBox(t)
	b.write(t, "home/.config/omniagent/config.toml", "output = \"js")
	before := b.tree(t)
	for _, typed := range []call{
		{},
		{redir: "<&-"},
		{redir: "</dev/null"},
		{silent: true},
		{redir: "2>&-"},
		{redir: "2>" + full(t)},
		{unset: []string{"HOME"}},
		{set: []string{"CI=1", "OMNIAGENT_OUTPUT=json"}},
	} {
		for _, more := range [][]string{nil, {"agents"}, {"session", "list"}, {"config"}} {
			typed.args = append([]string{"help"}, more...)
			o := b.run(t, typed)
			if c.declares(t, o); o.code != 0 || o.stderr != "" || strings.Contains(o.stdout, "\x1b") ||
				strings.Contains(o.stdout, `{"ok"`) || !strings.HasSuffix(o.stdout, "\n") {
				t.Errorf("that is not the help\n%s", o)
			}
		}
	}
	for typed, code := range map[string]string{
		"surplus": "UNKNOWN_COMMAND", "session lst": "UNKNOWN_COMMAND", "--no-such-flag": "VALIDATION_ERROR",
		"--dry-run": "VALIDATION_ERROR",
	} {
		o := b.run(t, call{args: append([]string{"help"}, strings.Fields(typed)...)})
		c.failed(t, o, 2, code, strings.TrimLeft(typed, "-"))
	}
	if changed := changes(before, b.tree(t)); len(changed) > 0 {
		t.Errorf("it wrote %v", changed)
	}
}

// TestWatchWithoutOwner: a run that nobody carries out is told as such. It is not waited for.
func TestWatchWithoutOwner(t *testing.T) {
	b := furnished(t, commandNamed(t, "runs.continue"))
	before := b.tree(t)
	c := commandNamed(t, "runs.watch")
	o := b.run(t, c.plain(t))
	c.failed(t, o, 12, "UNAVAILABLE", "omniagent runs continue run-1a2b3c4d")
	b.leftOnly(t, before, o)
}
