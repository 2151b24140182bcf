//go:build unix

package walk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tree "omniagent/internal/cli/command"
	"omniagent/internal/cli/contract"
)

// The checks of what comes out and what is left behind.

func checkLineEnds(t *testing.T, c *command) {
	var b *box
	for _, form := range []string{"json", "jsonl", "tsv", "plain", "id"} {
		b = refurnished(t, c, b)
		o := b.run(t, c.plain(t, "--output", form))
		_, list := c.Flags["limit"]
		want := 0
		if form == "id" && o.code == 2 && !list && strings.Contains(o.stderr, "has no id") {
			want = 2 // what has no id says so
		}
		if clean(t, o); o.code != want || o.stdout != "" && !strings.HasSuffix(o.stdout, "\n") {
			t.Errorf("--output %s is not made of lines\n%s", form, o)
		}
		if form == "plain" && o.stdout == "" && !list {
			t.Errorf("--output plain tells nothing\n%s", o)
		}
		for line := range strings.Lines(o.stdout) {
			if strings.HasPrefix(form, "json") && !json.Valid([]byte(line)) {
				t.Errorf("--output %s has a line that is not JSON: %s", form, line)
			}
		}
		for line := range strings.Lines(o.stderr) {
			if !strings.HasSuffix(line, "\n") {
				t.Errorf("standard error does not end with a line\n%s", o)
			}
		}
	}
}

func checkAbsolutePaths(t *testing.T, c *command) {
	c.absolute(t, c.judge(t, furnished(t, c).run(t, c.plain(t, "--cwd", "."))))
}

// absolute reports the relative paths in an answer.
func (c *command) absolute(t *testing.T, e envelope) {
	t.Helper()
	for _, part := range []any{e.Data, e.Meta, e.Error} {
		members(part, "", func(path, name string, value any) {
			s, isText := value.(string)
			isPath := name == "path" || name == "dir" || name == "file" || name == "cwd" ||
				strings.HasSuffix(name, "_path") || strings.HasSuffix(name, "_dir")
			if isPath && isText && s != "" && !filepath.IsAbs(s) && c.key != "manifest" {
				t.Errorf("%s is relative: %s", path, s)
			}
		})
	}
}

// checkRowsInOrder looks at lists that have at least two rows. What they are sorted by is a matter of the declaration
// alone.
func checkRowsInOrder(t *testing.T, c *command) {
	all := tree.Program().All()
	i := slices.IndexFunc(all, func(d *contract.Command) bool { return d.Key() == c.key })
	list := all[i].List
	if list == nil || list.Order == "given" {
		return
	}
	b := furnished(t, c)
	for _, name := range []string{"z", "a", "m"} { // several repositories are trusted, several calls are on record
		b.write(t, name+"/.omniagent/config.toml", "grace = \"1s\"\n")
		must(t, os.MkdirAll(filepath.Join(b.root, name, ".git"), 0o755))
		b.run(t, call{args: []string{"trust", filepath.Join(b.root, name)}})
	}
	o := b.run(t, call{args: append(c.words(), "--limit", "0")})
	e := c.judge(t, o)
	rows, _ := e.Data.(map[string]any)[list.Key].([]any)
	if len(rows) < 2 {
		t.Fatalf("there are not enough rows to have an order\n%s", o)
	}
	values := []string{}
	for _, row := range rows {
		values = append(values, row.(map[string]any)[list.Order].(string))
	}
	if !slices.IsSorted(values) {
		t.Errorf("the rows are not sorted by %s: %v", list.Order, values)
	}
}

func checkSameDataTwice(t *testing.T, c *command) {
	if !c.safe() {
		return
	}
	b := furnished(t, c)
	b.run(t, c.plain(t)) // the first call may make the audit log, which some commands tell of
	first, second := c.judge(t, b.run(t, c.plain(t))), c.judge(t, b.run(t, c.plain(t)))
	if diff := cmp.Diff(c.steady(first.Data, ""), c.steady(second.Data, "")); diff != "" {
		t.Errorf("two calls tell different things:\n%s", diff)
	}
	if first.Meta["request_id"] == second.Meta["request_id"] {
		t.Error("two calls have one request id")
	}
}

// checkSideEffectsDeclared compares what a call leaves with what the program says that the command leaves.
func checkSideEffectsDeclared(t *testing.T, c *command) {
	b := furnished(t, c)
	typed := c.plain(t)
	allowed := []string{b.locks()}
	if c.key == "agents.list" { // the agents that it asks stand on record
		allowed = append(allowed, b.children())
	}
	o := b.run(t, call{args: []string{"status", "--show-side-effects"}})
	effects, _ := commandNamed(t, "status").judge(t, o).Data.(map[string]any)["side_effects"].([]any)
	for _, item := range effects {
		effect := item.(map[string]any)
		if by := effect["command"]; by == strings.Join(c.words(), " ") || by == "every command" {
			allowed = append(allowed, effect["path"].(string), effect["path"].(string)+".lock")
		}
	}
	if len(allowed) < 2 {
		t.Fatalf("status tells of no side effects\n%s", o)
	}
	for _, arg := range typed.args[len(c.words()):] { // what the caller named is not a secret
		if c.Danger == "mutating" && !strings.HasPrefix(arg, "-") && strings.HasPrefix(c.key, "generate-") {
			allowed = append(allowed, filepath.Join(b.project, arg))
		}
	}
	if c.ext.SafeDefault {
		typed.args, allowed = append(typed.args, "--live"), append(allowed, filepath.Join(b.temp, "omniagent-0left0"))
	}
	before := b.tree(t)
	if done := b.run(t, typed); done.code != 0 {
		t.Fatalf("it fails\n%s", done)
	}
	if changed := without(changes(before, b.tree(t)), allowed...); len(changed) > 0 {
		t.Errorf("it left what is not declared: %v", changed)
	}
}

func checkSafeChangesNothing(t *testing.T, c *command) {
	if !c.safe() {
		return
	}
	b := furnished(t, c)
	before := b.tree(t)
	b.run(t, c.plain(t))
	if changed := without(changes(before, b.tree(t)), b.record(), b.locks(), b.children()); len(changed) > 0 {
		t.Errorf("a safe command changed %v", changed)
	}
}

// checkDryRunChangesNothing also makes the same call in earnest, so that a dry run cannot pass for want of anything to
// do.
func checkDryRunChangesNothing(t *testing.T, c *command) {
	_, can := c.Flags["dry-run"]
	if c.safe() {
		return
	}
	if !can {
		t.Fatal("it changes things and has no --dry-run")
	}
	b := furnished(t, c)
	before := b.tree(t)
	typed, try := c.plain(t), c.plain(t, "--dry-run")
	if c.key == "exec" { // what it changes is what its lines change
		typed.stdin = `{"_cmd":"config.set","key":"output","value":"plain"}` + "\n"
		try.stdin = typed.stdin
	}
	o := b.run(t, try)
	e := c.judge(t, o)
	if changed := without(changes(before, b.tree(t)), b.record()); len(changed) > 0 {
		t.Errorf("a dry run changed %v", changed)
	}
	data, _ := e.Data.(map[string]any)
	effect, _ := data["effect"].(string)
	if affected, _ := data["would_affect"].(map[string]any); o.code != 0 || !strings.HasPrefix(effect, "would_") ||
		effect == "would_noop" || len(affected) == 0 {
		t.Errorf("the dry run does not tell what would change\n%s", o)
	}
	if c.ext.SafeDefault {
		typed.args = append(typed.args, "--live")
	}
	done := b.run(t, typed)
	if c.judge(t, done); done.code != 0 || len(without(changes(before, b.tree(t)), b.record(), b.locks())) == 0 {
		t.Errorf("in earnest nothing happens, so the dry run shows nothing\n%s", done)
	}
}

func checkValidateOnly(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	o := b.run(t, c.plain(t, "--validate-only"))
	if e := c.judge(t, o); o.code != 0 || e.Meta["validation_only"] != true {
		t.Errorf("--validate-only does not pass a good call\n%s", o)
	}
	o = b.run(t, c.plain(t, "--validate-only", "--timeout", "soon"))
	if c.judge(t, o); o.code != 2 {
		t.Errorf("--validate-only passes a bad call\n%s", o)
	}
	if changed := without(changes(before, b.tree(t)), b.record(), b.locks()); len(changed) > 0 {
		t.Errorf("--validate-only changed %v", changed)
	}
}

// checkOptionsInHelp looks for every flag of the description in the help.
func checkOptionsInHelp(t *testing.T, c *command) {
	o := newBox(t).run(t, call{args: append(c.words(), "--help")})
	for name := range c.Flags {
		if !strings.Contains(o.stderr, "--"+name) {
			t.Errorf("the help does not name --%s", name)
		}
	}
	for number, exit := range c.Exits {
		if _, err := strconv.Atoi(number); err != nil || !strings.Contains(o.stderr, exit.Name) {
			t.Errorf("the help does not name exit %s %s", number, exit.Name)
		}
	}
}
