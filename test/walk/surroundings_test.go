//go:build unix

package walk

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The checks with odd surroundings: streams, homes, configurations, locales.

func checkStdinClosed(t *testing.T, c *command) {
	var b *box
	for _, redir := range []string{"<&-", "</dev/null"} {
		b = refurnished(t, c, b)
		typed := c.plain(t)
		typed.stdin, typed.redir = "", redir
		o := b.run(t, typed)
		e := c.judge(t, o)
		switch {
		case c.reads() && (o.code != 4 || e.Error["code"] != "STDIN_REQUIRED"):
			t.Errorf("with %s the empty input is not refused\n%s", redir, o)
		case !c.reads() && o.code != 0:
			t.Errorf("with %s it fails\n%s", redir, o)
		}
	}
	for name, p := range c.ext.Parameters {
		if !p.Stdin {
			continue
		}
		b = refurnished(t, c, b)
		args := append(c.words(), "--"+name, "-")
		for other, f := range c.Flags {
			if f.Required && other != name {
				args = append(args, "--"+other, "x")
			}
		}
		o := b.run(t, call{args: args, redir: "<&-"})
		if e := c.judge(t, o); o.code != 2 || e.Error["code"] != "EMPTY_STDIN" {
			t.Errorf("--%s - without input is not refused\n%s", name, o)
		}
	}
}

// checkStdinInstead gives the message of a command that may read it on standard input: one, none, and one that never
// comes.
func checkStdinInstead(t *testing.T, c *command) {
	if c.ext.Stdin == nil || c.reads() {
		return
	}
	inputs := map[int]call{0: {stdin: "Where is it?\n"}, 2: {redir: "<&-"}, 10: {silent: true}}
	if c.key == "review" { // without a diff it looks for one
		inputs = map[int]call{0: {stdin: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}, 10: {silent: true}}
	}
	for code, typed := range inputs {
		b := furnished(t, c)
		before := b.tree(t)
		if typed.args = []string{"review", "--agent", "codex"}; c.key != "review" {
			typed.args = wordless(t, c.plain(t)).args
		}
		if typed.silent {
			typed.args = append(typed.args, "--timeout", "300ms")
		}
		o := b.run(t, typed)
		if e := c.judge(t, o); o.code != code || code == 2 && e.Error["phase"] != "validation" {
			t.Errorf("exit status %d instead of %d\n%s", o.code, code, o)
		}
		if code != 0 {
			b.leftOnly(t, before, o)
		}
		b.alone(t, o)
	}
}

func checkStdinSilent(t *testing.T, c *command) {
	b := furnished(t, c)
	typed := c.plain(t)
	typed.stdin, typed.silent = "", true
	want := 0
	if c.reads() {
		typed.args, want = append(typed.args, "--timeout", "300ms"), 10
	}
	o := b.run(t, typed)
	if c.judge(t, o); o.code != want {
		t.Errorf("exit status %d instead of %d\n%s", o.code, want, o)
	}
}

func checkStdoutClosed(t *testing.T, c *command) {
	b := furnished(t, c)
	typed := c.plain(t)
	typed.redir = ">&-"
	o := b.run(t, typed)
	if clean(t, o); o.code != 0 || o.stdout != "" {
		t.Errorf("it does not work with standard output closed\n%s", o)
	}
	if o := b.run(t, call{args: append(c.words(), "--no-such-flag"), redir: ">&-"}); o.code != 2 {
		t.Errorf("a wrong flag has no exit status of its own with standard output closed\n%s", o)
	}
}

func checkStderrClosed(t *testing.T, c *command) {
	var b *box
	for _, redir := range []string{"2>&-", "2>/dev/null", "2>" + full(t)} {
		b = refurnished(t, c, b)
		typed := c.plain(t)
		typed.redir = redir
		o := b.run(t, typed)
		if c.judge(t, o); o.code != 0 {
			t.Errorf("with %s it fails\n%s", redir, o)
		}
		o = b.run(t, call{args: append(c.words(), "--no-such-flag"), redir: redir})
		if c.judge(t, o); o.code != 2 {
			t.Errorf("with %s a failure is not told on standard output\n%s", redir, o)
		}
	}
}

func checkReaderGone(t *testing.T, c *command) {
	b := furnished(t, c)
	typed := c.plain(t)
	typed.gone = true
	want := 0
	if c.key == "exec" { // which does not carry out what is left
		want = 1
	}
	if o := b.run(t, typed); o.code != want || strings.Contains(o.stderr, "pipe") ||
		strings.Contains(o.stderr, "could not") {
		t.Errorf("exit status %d instead of %d where the reader has left\n%s", o.code, want, o)
	}
}

// full is a file that cannot be written for want of room; where there is none, one that may not be opened to the end is
// as good.
func full(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/full"); err != nil {
		return "/dev/null"
	}
	return "/dev/full"
}

func checkDiskFull(t *testing.T, c *command) {
	if full(t) == "/dev/null" {
		t.Skip("there is no /dev/full here")
	}
	b := furnished(t, c)
	typed := c.plain(t)
	typed.redir = ">/dev/full"
	o := b.run(t, typed)
	if clean(t, o); o.code != 1 || !strings.Contains(o.stderr, "could not be written") {
		t.Errorf("a result that was lost is not told\n%s", o)
	}
	if !c.safe() && !c.ext.SafeDefault && !strings.Contains(o.stderr, "the work is done") {
		t.Errorf("it is not told that the work was done\n%s", o)
	}
}

// TestDiskFullNothingDone: of a call that changed nothing it is not said that its work was done.
func TestDiskFullNothingDone(t *testing.T) {
	t.Parallel()
	o := newBox(t).run(t, call{args: []string{"undo", "--list"}, redir: ">" + full(t)})
	if full(t) == "/dev/full" && (o.code != 1 || !strings.Contains(o.stderr, "the result could not be written")) {
		t.Errorf("a list that was lost is not told\n%s", o)
	}
}

func checkNoHome(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	typed := c.plain(t)
	typed.unset = []string{"HOME"}
	o := b.run(t, typed)
	e := c.judge(t, o)
	refused := o.code == 4 && e.Error["code"] == "NO_HOME" && strings.Contains(c.Exits["4"].Description, "no home")
	if c.safe() && o.code != 0 && !refused && c.key != "doctor" { // doctor's task is to say what is missing
		t.Errorf("it needs a home without declaring so, and changes nothing\n%s", o)
	}
	if o.code != 0 && !slices.Contains([]int{1, 4}, o.code) {
		t.Errorf("no home is not told as a missing condition\n%s", o)
	}
	if c.safe() {
		b.wroteNothing(t, before)
	}
	if silent := slices.Contains([]string{"version", "manifest", "completion", "demo"}, c.key); c.key != "exec" &&
		silent == slices.ContainsFunc(e.Warnings, recordIsOff) {
		t.Errorf("whether the call is on record is not told, or told in vain\n%s", o)
	}
}

// wroteNothing reports what a call without a home wrote. The walls keep what has to be tidied in the temporary
// directory then.
func (b *box) wroteNothing(t *testing.T, before map[string]string) {
	t.Helper()
	changed := slices.DeleteFunc(changes(before, b.tree(t)), func(path string) bool {
		return strings.Contains(path, "/omniagent-state-")
	})
	if len(changed) > 0 {
		t.Errorf("without a home it wrote %v", changed)
	}
}

func recordIsOff(warning string) bool { return strings.HasPrefix(warning, "AUDIT_OFF") }

func checkUnwritableHome(t *testing.T, c *command) {
	b := furnished(t, c)
	file := b.write(t, "file", "a file cannot hold anything, for the superuser neither\n")
	for _, home := range []string{filepath.Join(file, "home"), filepath.Join(b.root, "sealed")} {
		must(t, os.MkdirAll(filepath.Join(b.root, "sealed"), 0o500))
		typed := c.plain(t)
		typed.unset, typed.set = []string{"HOME"}, []string{"HOME=" + home}
		o := b.run(t, typed)
		e := c.judge(t, o)
		absent := o.code == 5 && c.namesOne() // it lies in the other home
		if c.safe() && o.code != 0 && !absent && c.key != "doctor" {
			t.Errorf("it needs a home that can be written, and changes nothing\n%s", o)
		}
		if home != filepath.Join(b.root, "sealed") && o.code == 1 && e.Error["code"] == "INTERNAL_ERROR" {
			t.Errorf("a home that cannot be written is an internal error\n%s", o)
		}
	}
}

// checkTornConfig cuts the configuration in the middle of a line, the user's own and the project's.
func checkTornConfig(t *testing.T, c *command) {
	const torn = "# mine\ngrace = \"3s\"\noutput = \"js"
	for _, name := range []string{"home/.config/omniagent/config.toml", "project/.omniagent/config.toml"} {
		b := furnished(t, c)
		file := b.write(t, name, torn)
		if strings.HasPrefix(name, "project") {
			if o := b.run(t, call{args: []string{"trust"}}); o.code != 0 {
				t.Fatalf("a torn file cannot be trusted\n%s", o)
			}
		}
		o := b.run(t, c.plain(t))
		e := c.judge(t, o)
		told, _ := json.Marshal([]any{e.Error, e.Warnings})
		if o.code != 0 && !bytes.Contains(told, []byte(file)) {
			t.Errorf("it fails without naming the torn file\n%s", o)
		}
		if bytes.Contains(told, []byte("CONFIG_INVALID")) && !bytes.Contains(told, []byte(":3:")) &&
			!bytes.Contains(told, []byte(`"line":3`)) {
			t.Errorf("the line is not told\n%s", o)
		}
		if o.code != 0 && o.code != 2 && !(c.key == "doctor" && o.code == 1) {
			t.Errorf("a torn configuration ends with %d\n%s", o.code, o)
		}
		if text, _ := os.ReadFile(file); string(text) != torn {
			t.Errorf("the torn file was changed to %q\n%s", text, o)
		}
		if help := b.run(t, call{args: append(c.words(), "--help")}); help.code != 0 {
			t.Errorf("there is no help with a torn configuration\n%s", help)
		}
	}
}

// checkNarrowAndForeign compares a call on a wide terminal of the locale C with one that is narrow and German.
func checkNarrowAndForeign(t *testing.T, c *command) {
	b := furnished(t, c)
	plain := c.plain(t, "--stable-output")
	if c.safe() {
		b.run(t, plain) // what is there only after a first call does not matter here
	}
	first := c.judge(t, b.run(t, plain))
	for _, set := range [][]string{
		{"COLUMNS=40", "LINES=10"},
		{"LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8", "LC_NUMERIC=de_DE.UTF-8", "TZ=Europe/Berlin"},
	} {
		typed := plain
		typed.set = set
		o := b.run(t, typed)
		if again := c.judge(t, o); c.safe() {
			if diff := cmp.Diff(c.steady(first.Data, ""), c.steady(again.Data, "")); diff != "" {
				t.Errorf("%v changes the data:\n%s", set, diff)
			}
		}
	}
}
