//go:build unix

package walk

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestEveryCommand makes every check with every command that answers with an envelope, each in a box of its own.
// TestEveryStream and TestEveryTerminal have the others.
func TestEveryCommand(t *testing.T) {
	checks := map[string]func(*testing.T, *command){
		"envelope":                checkEnvelope,
		"help":                    checkHelp,
		"schema":                  checkSchema,
		"wrong_flag":              checkWrongFlag,
		"missing_argument":        checkMissingArgument,
		"surplus_argument":        checkSurplusArgument,
		"stdin_closed":            checkStdinClosed,
		"stdin_silent":            checkStdinSilent,
		"stdin_instead":           checkStdinInstead,
		"stdout_closed":           checkStdoutClosed,
		"stderr_closed":           checkStderrClosed,
		"reader_gone":             checkReaderGone,
		"disk_full":               checkDiskFull,
		"no_home":                 checkNoHome,
		"unwritable_home":         checkUnwritableHome,
		"torn_config":             checkTornConfig,
		"narrow_and_foreign":      checkNarrowAndForeign,
		"line_ends":               checkLineEnds,
		"absolute_paths":          checkAbsolutePaths,
		"rows_in_order":           checkRowsInOrder,
		"same_data_twice":         checkSameDataTwice,
		"side_effects_declared":   checkSideEffectsDeclared,
		"safe_changes_nothing":    checkSafeChangesNothing,
		"dry_run_changes_nothing": checkDryRunChangesNothing,
		"validate_only":           checkValidateOnly,
		"help_names_every_flag":   checkOptionsInHelp,
	}
	everyOne(t, enveloped(t), checks)
	for _, c := range commands(t) {
		if !slices.Contains([]string{"envelope", "stream", "terminal"}, c.ext.Class) {
			t.Errorf("%s is of class %q, for which there are no checks", c.key, c.ext.Class)
		}
	}
}

// everyOne makes every check with every one of the commands, or with some of them where others do as well.
func everyOne(t *testing.T, list []*command, checks map[string]func(*testing.T, *command)) {
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range some(name, list) {
				t.Run(c.key, func(t *testing.T) {
					t.Parallel()
					check(t, c)
				})
			}
		})
	}
}

// some returns the commands with which a check is made. What surrounds a call is the affair of contract, which treats
// all commands alike: of these checks each third command is enough for every day, another third with each check, and
// one more where a run is begun. OMNIAGENT_WHOLE=matrices makes all.
func some(check string, list []*command) []*command {
	shared := []string{
		"wrong_flag", "stdin_closed", "stdin_silent", "stdout_closed", "stderr_closed", "reader_gone", "disk_full",
		"no_home", "unwritable_home", "torn_config", "narrow_and_foreign", "line_ends",
	}
	at := slices.Index(shared, check)
	if at < 0 || len(list) < 20 || hermetic.Matrices() {
		return list
	}
	var chosen []*command
	for i, c := range list {
		if (i+at)%3 == 0 || c.key == "run" {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

func checkEnvelope(t *testing.T, c *command) {
	b := furnished(t, c)
	o := b.run(t, c.plain(t))
	e := c.judge(t, o)
	if o.code != 0 {
		t.Errorf("the first example fails\n%s", o)
	}
	if e.Meta["command"] != c.key && c.key != "exec" {
		t.Errorf("meta.command is %v, not %s", e.Meta["command"], c.key)
	}
	c.absolute(t, e)
	if c.key == "manifest" {
		data, err := json.Marshal(e.Data)
		must(t, err)
		valid(t, "manifest-response.json", data, o)
	}
}

func checkHelp(t *testing.T, c *command) {
	b := newBox(t)
	before := b.tree(t)
	long := b.run(t, call{args: append(c.words(), "--help")})
	e := c.judge(t, long)
	if long.code != 0 || e.Meta["help"] != true {
		t.Errorf("--help is not the help\n%s", long)
	}
	for _, want := range []string{
		"Usage: omniagent " + strings.Join(c.words(), " "), "Examples:", "Exit codes:",
		c.Examples[0].Command,
	} {
		if !strings.Contains(long.stderr, want) {
			t.Errorf("the help does not say %q\n%s", want, long)
		}
	}
	if short := b.run(t, call{args: append(c.words(), "-h")}); short.code != 0 || short.stderr != long.stderr {
		t.Errorf("-h is not --help\n%s", short)
	}
	ref := strings.Fields(e.Meta["schema_ref"].(string))
	if o := b.run(t, call{args: ref[1:]}); o.code != 0 {
		t.Errorf("meta.schema_ref does not run\n%s", o)
	}
	for _, example := range c.Examples {
		if strings.Contains(example.Command, "|") {
			continue
		}
		checked := b.run(t, call{args: placed(shellWords(example.Command)[1:], c.parseOnly())})
		if checked.code != 0 {
			t.Errorf("an example of the help is wrong\n%s", checked)
		}
	}
	if changed := without(changes(before, b.tree(t)), b.record()); len(changed) > 0 {
		t.Errorf("help and schema wrote %v", changed)
	}
}

// parseOnly is the flag that makes a call be looked at and not done. What has no envelope has no --validate-only; its
// --help comes after all flags were read.
func (c *command) parseOnly() string {
	if _, has := c.Flags["validate-only"]; has {
		return "--validate-only"
	}
	return "--help"
}

func checkSchema(t *testing.T, c *command) {
	b := newBox(t)
	before := b.tree(t)
	for _, flag := range []string{"--schema", "--output-schema", "--show-requirements"} {
		o := b.run(t, call{args: append(c.words(), flag)})
		if list := judgeLines(t, o); o.code != 0 || list[0].Data == nil {
			t.Errorf("%s tells nothing\n%s", flag, o)
		}
	}
	if changed := changes(before, b.tree(t)); len(changed) > 0 {
		t.Errorf("a description wrote %v", changed)
	}
	if _, ok := c.Exits["0"]; !ok {
		t.Error("exit 0 is not declared")
	}
}

func checkWrongFlag(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	typed := c.plain(t, "--cwdd", "x", "--no-such-flag")
	o := b.run(t, typed)
	e := c.judge(t, o)
	if o.code != 2 || e.Error["code"] != "VALIDATION_ERROR" || e.Error["phase"] != "validation" {
		t.Errorf("a wrong flag is not refused\n%s", o)
	}
	problems, _ := json.Marshal(e.Error["errors"])
	if !bytes.Contains(problems, []byte(`"corrected":"--cwd"`)) || !bytes.Contains(problems, []byte("--no-such-flag")) {
		t.Errorf("not every wrong flag is told, with what was meant\n%s", o)
	}
	if !strings.HasPrefix(o.stderr, "omniagent: ") || !strings.Contains(o.stderr, "\nhint: ") ||
		!strings.HasSuffix(o.stderr, "TOOL_FAILED=1\n") {
		t.Errorf("standard error does not tell it\n%s", o)
	}
	if changed := without(changes(before, b.tree(t)), b.record()); len(changed) > 0 {
		t.Errorf("a refused call wrote %v", changed)
	}
}

func checkMissingArgument(t *testing.T, c *command) {
	b := furnished(t, c)
	typed, want := c.plain(t, "--timeout"), "timeout" // every command has a flag that needs a value
	for name, f := range c.Flags {
		if f.Required {
			typed, want = call{args: c.words()}, name
		}
	}
	before := b.tree(t)
	o := b.run(t, typed)
	e := c.judge(t, o)
	if told, _ := json.Marshal(e.Error); o.code != 2 || !bytes.Contains(told, []byte(want)) {
		t.Errorf("the missing %s is not told\n%s", want, o)
	}
	if changed := without(changes(before, b.tree(t)), b.record()); len(changed) > 0 {
		t.Errorf("a refused call wrote %v", changed)
	}
}

func checkSurplusArgument(t *testing.T, c *command) {
	b := furnished(t, c)
	typed := call{args: c.words()}
	if c.anyWords() { // none is surplus and none is wrong, so they all have to be in the answer
		o := b.run(t, call{args: append(c.words(), "--", "no-such-thing", "--surplus")})
		if c.judge(t, o); o.code != 0 || !strings.Contains(o.stdout, "no-such-thing --surplus") {
			t.Errorf("a word of another program is lost\n%s", o)
		}
		return
	}
	for _, p := range c.ext.Parameters {
		if p.Nargs == "*" || p.Nargs == "+" {
			typed.args = append(typed.args, "no-such-thing") // takes any number, so a wrong one must be told
		}
	}
	if len(typed.args) == len(c.words()) {
		typed = c.plain(t, slices.Repeat([]string{"surplus"}, len(c.ext.Parameters)+1)...)
	}
	o := b.run(t, typed)
	if c.judge(t, o); o.code == 0 || !strings.Contains(o.stdout, "surplus") &&
		!strings.Contains(o.stdout, "no-such-thing") {
		t.Errorf("a surplus argument is not told\n%s", o)
	}
}

// anyWords reports whether a command takes any number of words, whatever they are: those of another program's call.
func (c *command) anyWords() bool {
	for name, p := range c.ext.Parameters {
		if (p.Nargs == "*" || p.Nargs == "+") && p.Pattern == "" &&
			strings.Contains(c.Flags[name].Description, "behind --") {
			return true
		}
	}
	return false
}

func commandNamed(t *testing.T, key string) *command {
	t.Helper()
	for _, c := range commands(t) {
		if c.key == key {
			return c
		}
	}
	t.Fatalf("there is no command %s", key)
	return nil
}
