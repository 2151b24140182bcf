//go:build unix

package walk

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pure are the calls that only tell: they need nothing and leave nothing.
func pure() [][]string {
	return [][]string{
		{"--version"},
		{"-V"},
		{"version"},
		{"--help"},
		{"-h"},
		{},
		{"config"},
		{"config", "--help"},
		{"--schema"},
		{"manifest"},
		{"completion", "bash"},
	}
}

func TestPurity(t *testing.T) {
	t.Run("writes_nothing", testPureWritesNothing)
	t.Run("no_home", testPureWithoutHome)
	t.Run("parallel", testPureInParallel)
}

func testPureWritesNothing(t *testing.T) {
	b := furnished(t)
	before := b.tree(t)
	for _, args := range pure() {
		o := b.run(t, call{args: args})
		if clean(t, o); o.code != 0 {
			t.Errorf("it fails\n%s", o)
		}
		if changed := changes(before, b.tree(t)); len(changed) > 0 {
			t.Errorf("omniagent %v wrote %v", args, changed)
		}
	}
	if o := b.run(t, call{args: []string{"status"}}); len(changes(before, b.tree(t))) == 0 {
		t.Errorf("a call that is recorded leaves nothing, so this test sees nothing\n%s", o)
	}
}

func testPureWithoutHome(t *testing.T) {
	b := furnished(t)
	torn := b.write(t, "torn/.config/omniagent/config.toml", "output = [")
	closed := filepath.Join(b.root, "closed")
	must(t, os.Mkdir(closed, 0o000))
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	calls := append(pure(), []string{"config", "path"}, []string{"doctor"}, []string{"errors", "list"},
		[]string{"changelog"})
	for name, set := range map[string][]string{
		"none": {}, "empty": {"HOME="}, "relative": {"HOME=here"}, "device": {"HOME=/dev/null"}, "missing": {"HOME=" +
			filepath.Join(b.root, "nowhere")},
		"closed": {"HOME=" + closed}, "torn": {"HOME=" + filepath.Join(b.root, "torn")},
	} {
		for _, args := range calls {
			o := b.run(t, call{args: args, unset: []string{"HOME"}, set: set})
			clean(t, o)
			good := o.code == 0 || slices.Contains(args, "doctor") && o.code == 1
			if !good || o.stdout == "" {
				t.Errorf("home %s: it does not work\n%s", name, o)
			}
			if slices.Contains(args, "doctor") && o.code == 1 && !strings.Contains(o.stdout, "PREFLIGHT_FAILED") {
				t.Errorf("home %s: doctor does not say what is wrong\n%s", name, o)
			}
		}
	}
	if text, _ := os.ReadFile(torn); string(text) != "output = [" {
		t.Errorf("the torn configuration was changed to %q", text)
	}
	if _, err := os.Stat(filepath.Join(b.project, "here")); err == nil {
		t.Error("a relative HOME was made in the current directory")
	}
}

// testPureInParallel is the shell prompt that asks for the version in many terminals at once.
func testPureInParallel(t *testing.T) {
	b := newBox(t)
	before := b.tree(t)
	version := b.run(t, call{args: []string{"--version"}}).stdout
	jobs := make(chan []string)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for args := range jobs {
				cmd := execProgram(args...)
				cmd.Env, cmd.Dir = b.environment(call{}), b.project
				if out, err := cmd.Output(); err != nil || args[0] == "--version" && string(out) != version {
					t.Errorf("omniagent %v: %v: %s", args, err, out)
				}
			}
		})
	}
	for range 100 {
		jobs <- []string{"--version"}
		jobs <- []string{"--help"}
	}
	close(jobs)
	workers.Wait()
	if changed := changes(before, b.tree(t)); len(changed) > 0 {
		t.Errorf("two hundred calls wrote %v", changed)
	}
}

func TestBareCall(t *testing.T) {
	b := newBox(t)
	before := b.tree(t)
	for _, c := range []call{
		{redir: "<&-"},
		{redir: "</dev/null"},
		{redir: "<&-", unset: []string{"HOME", "PATH", "TMPDIR", "USER"}},
	} {
		o := b.run(t, c)
		e := judgeLines(t, o)[0]
		listed, _ := e.Data.(map[string]any)["commands"].([]any)
		if o.code != 0 || e.Meta["help"] != true || len(listed) != len(commands(t)) {
			t.Errorf("the bare call is not the help\n%s", o)
		}
		for _, c := range commands(t) {
			if !regexp.MustCompile(`(?m)(^  |also: |, |^        )` + c.words()[0] + `( |,|$)`).MatchString(o.stderr) {
				t.Errorf("the help on standard error does not name %s", c.key)
			}
		}
	}
	pages := map[string]string{} // of each first word, which have the rest
	for _, c := range commands(t) {
		word, path := c.words()[0], strings.Join(c.words(), " ")
		if pages[word] == "" {
			pages[word] = b.run(t, call{args: []string{"help", word}}).stdout
		}
		if !strings.Contains(pages[word], "\n  "+path+" ") &&
			!strings.HasPrefix(pages[word], "Usage: omniagent "+path+" ") &&
			!strings.Contains(b.run(t, call{args: append([]string{"help"}, c.words()...)}).stdout,
				"Usage: omniagent "+path) {
			t.Errorf("the help about %s does not name %s", word, path)
		}
	}
	if changed := changes(before, b.tree(t)); len(changed) > 0 {
		t.Errorf("it wrote %v", changed)
	}
}

// TestFreshHome is the first call on a new machine, for every command that changes nothing.
func TestFreshHome(t *testing.T) {
	for _, c := range enveloped(t) {
		if !c.safe() {
			continue
		}
		want := 0
		if c.namesOne() {
			want = 5 // there is none yet
		}
		t.Run(c.key, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			before := b.tree(t)
			typed := c.plain(t)
			typed.stdin = strings.ReplaceAll(typed.stdin, "3s", "2s")
			o := b.run(t, typed)
			if e := c.judge(t, o); o.code != want || len(e.Warnings) > 0 {
				t.Errorf("the first call fails or complains\n%s", o)
			}
			after := b.tree(t)
			if changed := without(changes(before, after), b.record(), b.children()); len(changed) > 0 {
				t.Errorf("it set something up: %v", changed)
			}
			if left := slices.Collect(maps.Keys(after)); slices.ContainsFunc(left,
				func(path string) bool { return strings.HasPrefix(path, b.temp+"/") }) {
				t.Errorf("something is left in the temporary directory: %v", left)
			}
		})
	}
}
