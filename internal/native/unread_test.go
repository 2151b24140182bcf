package native

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/native/tool"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/guard"
)

// TestASearchHeedsTheRules that a Read of each file would meet, wherever it begins and whatever link leads there.
func TestASearchHeedsTheRules(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"secrets/key.txt", "sub/.env", "sub/env.txt", "asked/a.txt", "open.txt"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte("needle in "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"way": "secrets", "file.txt": "secrets/key.txt", "other": "asked"} {
		if os.Symlink(to, filepath.Join(root, link)) != nil {
			t.Skip("there are no links here")
		}
	}
	var o Options
	for word, text := range map[guard.Decision]string{guard.Deny: "Read(secrets/**)", guard.Ask: "Read(asked/**)"} {
		rule, err := guard.Known(tool.Ours().Specs()).Rule(word, text, "here")
		if err != nil {
			t.Fatal(err)
		}
		o.Rules = append(o.Rules, rule)
	}
	rule, _ := guard.Known(tool.Ours().Specs()).Rule(guard.Deny, "Read(.env)", "here")
	o.Rules = append(o.Rules, rule)
	files, err := workspace.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	files.Restrict(o.unreadable(files, files, guard.Deny), o.unreadable(files, files, guard.Ask))
	env := &tool.Env{Files: files, Seen: &tool.Seen{}}
	for _, c := range []struct {
		tool        tool.Tool
		input       string
		found, kept string
	}{
		{tool.Grep(env), `{"pattern":"needle"}`, "open.txt", "secrets/,asked/,.env"},
		{tool.Grep(env), `{"pattern":"needle","glob":"**/.env"}`, "", "in sub/.env"},
		{tool.Grep(env), `{"pattern":"needle","path":"sub/.env"}`, "", "in sub/.env"},
		{tool.Grep(env), `{"pattern":"needle","path":"secrets"}`, "", "in secrets"},
		{tool.Grep(env), `{"pattern":"needle","path":"way"}`, "", "in secrets"},
		{tool.Grep(env), `{"pattern":"needle","path":"file.txt"}`, "", "in secrets"},
		{tool.Grep(env), `{"pattern":"needle","path":"asked"}`, "in asked", ""},
		{tool.Grep(env), `{"pattern":"needle","path":"other"}`, "Name asked itself", "in asked"},
		{tool.Glob(env), `{"pattern":"**/*.txt"}`, "open.txt", "key.txt,a.txt"},
		{tool.Glob(env), `{"pattern":"secrets/*"}`, "", "key.txt"},
		{tool.LS(env), `{"path":"secrets"}`, "", "key.txt"},
		{tool.LS(env), `{"path":"way"}`, "", "key.txt"},
		{tool.Read(env), `{"file_path":"secrets/key.txt"}`, "", "in secrets"},
		{tool.Read(env), `{"file_path":"file.txt"}`, "a rule of the user", "in secrets"},
		{tool.Read(env), `{"file_path":"other/a.txt"}`, "Name asked/a.txt itself", "in asked"},
		{tool.Read(env), `{"file_path":"asked/a.txt"}`, "in asked", ""},
	} {
		action, err := c.tool.Plan(json.RawMessage(c.input))
		if err != nil {
			t.Fatal(err)
		}
		got := action.Run(t.Context()).Text
		if !strings.Contains(got, c.found) {
			t.Errorf("%s %s: %s", c.tool.Name, c.input, got)
		}
		for kept := range strings.SplitSeq(c.kept, ",") {
			if kept != "" && strings.Contains(got, kept) {
				t.Errorf("%s %s tells %s: %s", c.tool.Name, c.input, kept, got)
			}
		}
	}
}
