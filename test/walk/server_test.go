//go:build unix

package walk

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// servers are the streams that speak JSON-RPC with a program which started them: what they do follows from requests,
// not from their arguments.
func servers(t *testing.T) []*command {
	t.Helper()
	return slices.DeleteFunc(of(t, "stream"), func(c *command) bool { return !c.serves() || c.prints() })
}

// prints says of a stream that it has nothing to hear: it prints lines and ends.
func (c *command) prints() bool { return c.ext.Prints }

func (c *command) serves() bool { _, has := c.Flags["prompt"]; return !has }

// TestEveryServer makes the checks with them. What each of them answers is shown elsewhere.
func TestEveryServer(t *testing.T) {
	everyOne(t, servers(t), map[string]func(*testing.T, *command){
		"help":                  checkHelp,
		"help_names_every_flag": checkOptionsInHelp,
		"schema":                serverSchema,
		"wrong_call":            serverWrongCall,
		"nothing_asked":         serverNothingAsked,
		"garbage":               serverGarbage,
		"stdout_lost":           serverStdoutLost,
	})
}

func serverSchema(t *testing.T, c *command) {
	b := newBox(t)
	before := b.tree(t)
	o := b.run(t, call{args: append(c.words(), "--schema")})
	if list := judgeLines(t, o); o.code != 0 || len(list) != 1 ||
		list[0].Data.(map[string]any)["output_class"] != "stream" {
		t.Errorf("--schema tells nothing\n%s", o)
	}
	if changed := changes(before, b.tree(t)); len(changed) > 0 {
		t.Errorf("a description wrote %v", changed)
	}
}

// serverWrongCall is refused before anything is spoken: standard output belongs to the protocol.
func serverWrongCall(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	for _, more := range [][]string{
		{"--no-such-flag"},
		{"surplus"},
		{"--dry-run"},
		{"--quiet"},
		{"--timeout", "soon"},
	} {
		typed := c.plain(t, more...)
		o := b.run(t, typed)
		c.declares(t, o)
		refused(t, o, 2, more[0])
		if o.stdout != "" {
			t.Errorf("a refusal speaks on standard output\n%s", o)
		}
		b.leftOnly(t, before, o)
	}
	for _, name := range c.valued() {
		c.declares(t, b.run(t, c.plain(t, "--"+name)))
	}
}

// serverNothingAsked: a client that leaves at once leaves nothing.
func serverNothingAsked(t *testing.T, c *command) {
	for _, redir := range []string{"<&-", "</dev/null"} {
		b := furnished(t, c)
		before := b.tree(t)
		typed := c.plain(t)
		typed.redir = redir
		o := b.run(t, typed)
		if c.declares(t, o); o.code != 0 || o.stdout != "" || unwarned(o) != "" {
			t.Errorf("with %s it fails, or speaks unasked\n%s", redir, o)
		}
		b.leftOnly(t, before, o)
		b.alone(t, o)
	}
}

func serverGarbage(t *testing.T, c *command) {
	b := furnished(t, c)
	before := b.tree(t)
	typed := c.plain(t)
	typed.stdin = "nonsense\n\x00\xff\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"no/such\"}\n{\"half"
	o := b.run(t, typed)
	c.declares(t, o)
	answered := false
	for line := range strings.Lines(o.stdout) {
		var m struct {
			Version string `json:"jsonrpc"`
			ID      any    `json:"id"`
			Error   *struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Version != "2.0" || m.Error == nil {
			t.Errorf("%v: %s", err, line)
		}
		answered = answered || m.ID == 7.0
	}
	if o.code != 0 || !answered {
		t.Errorf("a request behind garbage is not answered\n%s", o)
	}
	b.leftOnly(t, before, o)
	b.alone(t, o)
}

func serverStdoutLost(t *testing.T, c *command) {
	typed := c.plain(t)
	typed.stdin = strings.Repeat(`{"jsonrpc":"2.0","id":7,"method":"no/such"}`+"\n", 1000)
	for _, typed := range lost(t, typed) {
		b := furnished(t, c)
		o := b.run(t, typed)
		c.declares(t, o)
		b.alone(t, o)
	}
}
