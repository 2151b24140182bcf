package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planned hands over a plan and then writes a file, in every turn.
const planned = `[
	{"call":{"name":"ExitPlanMode","input":{"plan":"write w.txt"}}},
	{"write":{"path":"w.txt","content":"one\n"}},
	{"say":"Done."}]`

// agreeing answers questions about plans with plan, and allows everything else. It keeps the titles of the questions.
func (c *client) agreeing(plan *string, asked *[]string) {
	c.answer = func(_ string, params object) (any, object) {
		title, _ := dig(params, "toolCall", "title").(string)
		if t, ok := params["title"].(string); ok {
			title = t
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		*asked = append(*asked, title)
		option := "allow"
		if !strings.HasPrefix(title, "Write") {
			option = *plan
		}
		return object{"outcome": object{"outcome": "selected", "optionId": option}}, nil
	}
}

// modes are those that the client was told, in order.
func (c *client) modes(version int) []string {
	var told []string
	if version == 1 {
		for _, u := range c.updates("current_mode_update") {
			told = append(told, u["currentModeId"].(string))
		}
		return told
	}
	for _, u := range c.updates("config_option_update") {
		told = append(told, dig(u, "configOptions", 0, "currentValue").(string))
	}
	return told
}

func (c *client) setMode(version int, session, mode string) object {
	c.t.Helper()
	if version == 1 {
		return c.call("session/set_mode", object{"sessionId": session, "modeId": mode})
	}
	return c.call("session/set_config_option", object{"sessionId": session, "configId": "mode", "value": mode})
}

// ask is a message and its whole turn.
func (c *client) ask(version int, session, said string) {
	c.t.Helper()
	from := len(c.all())
	c.prompt(session, said)
	if version > 1 {
		c.await(from, func(m object) bool { return dig(m, "params", "update", "state") == "idle" })
	}
}

// TestPlanAgain: the client hears that a plan it agreed to has ended the mode plan, and can set that mode again:
// nothing is written in it.
func TestPlanAgain(t *testing.T) {
	t.Parallel()
	for version, name := range map[int]string{1: "version 1", 2: "version 2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, planned)
			planAgain(t, p, p.launch(t, "--undo", "off"), version) // with it the file would be written unasked
		})
	}
}

func planAgain(t *testing.T, p place, c *client, version int) {
	t.Helper()
	plan, asked := "allow", []string{}
	c.agreeing(&plan, &asked)
	id := c.begin(version, p.work, object{})
	c.setMode(version, id, "plan")
	c.ask(version, id, "go")
	if p.read("w.txt") != "one\n" || len(asked) != 2 {
		t.Fatalf("the plan was not carried out: %q\n%s", asked, c.shown())
	}
	if got := c.modes(version); strings.Join(got, " ") != "plan default" {
		t.Errorf("modes: %q", got)
	}
	written := func(m object) bool {
		return m["method"] == "session/update" && dig(m, "params", "update", "title") == "Write w.txt"
	}
	changed := func(m object) bool { return dig(m, "params", "update", "sessionUpdate") == "config_option_update" }
	_, first := c.await(0, changed)
	_, second := c.await(first, changed)
	if _, call := c.await(0, written); call < second {
		t.Error("the change is told behind what it allows")
	}
	if err := os.Remove(filepath.Join(p.work, "w.txt")); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	plan, asked = "deny", nil
	c.mu.Unlock()
	c.setMode(version, id, "plan")
	c.ask(version, id, "again")
	if got := p.read("w.txt"); got != "no file" || len(asked) > 1 || len(asked) == 1 &&
		strings.HasPrefix(asked[0], "Write") {
		t.Errorf("in the mode plan: w.txt is %q, asked %q\n%s", got, asked, c.shown())
	}
	if got := c.modes(version); strings.Join(got, " ") != "plan default plan" {
		t.Errorf("modes: %q", got)
	}
}
