//go:build unix

package walk

import (
	"slices"
	"strings"
	"testing"
)

// servers are the streams that answer what another program asks for, and say nothing of their own: they have no result at the end. What they
// answer has tests of its own.
func servers() []string { return []string{"acp"} }

func (c *command) serves() bool { return slices.Contains(servers(), c.key) }

// ofStream are the streams that answer messages, or those that serve.
func ofStream(t *testing.T, serves bool) []*command {
	t.Helper()
	list := slices.DeleteFunc(of(t, "stream"), func(c *command) bool { return c.serves() != serves })
	if len(list) == 0 {
		t.Fatalf("no command of class stream has serves %t", serves)
	}
	return list
}

// TestEveryServer makes the checks with the commands that answer another program as long as it speaks.
func TestEveryServer(t *testing.T) {
	everyOne(t, ofStream(t, true), map[string]func(*testing.T, *command){
		"help":                  checkHelp,
		"help_names_every_flag": checkOptionsInHelp,
		"wrong_flag":            serverWrongFlag,
		"missing_argument":      serverMissingArgument,
		"input_ends":            serverInputEnds,
		"no_home":               serverNoHome,
	})
}

func serverWrongFlag(t *testing.T, c *command) {
	b := furnished(t)
	before := b.tree(t)
	for _, word := range []string{"--no-such-flag", "--validate-only", "--dry-run", "--output-schema", "surplus"} {
		o := b.run(t, call{args: append(c.words(), word)})
		if refused(t, o, 2, word); o.stdout != "" {
			t.Errorf("a refusal stands on standard output\n%s", o)
		}
		c.declares(t, o)
		b.leftOnly(t, before, o)
	}
}

func serverMissingArgument(t *testing.T, c *command) {
	b := furnished(t)
	before := b.tree(t)
	for _, name := range c.valued() {
		o := b.run(t, call{args: append(c.words(), "--"+name)})
		refused(t, o, 2, "--"+name)
		b.leftOnly(t, before, o)
	}
}

// serverInputEnds: nobody asks, and garbage asks; both end with the input.
func serverInputEnds(t *testing.T, c *command) {
	for _, in := range []string{"", "garbage\n", "{"} {
		b := furnished(t)
		before := b.tree(t)
		o := b.run(t, call{args: c.words(), stdin: in})
		c.declares(t, o)
		if o.code != 0 || (o.stdout == "") != (in == "") || unwarned(o) != "" || o.stdout != "" && !strings.HasSuffix(o.stdout, "\n") {
			t.Errorf("%q\n%s", in, o)
		}
		b.leftOnly(t, before, o)
		b.alone(t, o)
	}
}

func serverNoHome(t *testing.T, c *command) {
	b := furnished(t)
	o := b.run(t, call{args: c.words(), unset: []string{"HOME"}})
	c.declares(t, o)
	refused(t, o, 1, "home")
}
