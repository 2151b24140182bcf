package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/native/tool"
	"omniagent/internal/walls/guard"
)

// TestLinksInCommands: what a link leads to is judged like a path that was written, however the link is met.
func TestLinksInCommands(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	for _, name := range []string{"ws/sub/deep/a", "ws/b", "home/.ssh/key", "home/plain/file", "home/plain/sub/x"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"ws/key": at("home/.ssh/key"), "ws/note.txt": at("home/plain/file"), "ws/dir": at("home/plain/sub"),
		"ws/chain": "note.txt", "ws/own": "sub/deep", "ws/loop": "loop", "named": "ws", "ws/gone": "/none",
	} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{"ws", "named"} {
		place := PlaceOf([]string{at(root)}, at("home"), nil, nil)
		for command, want := range map[string]guard.Decision{
			"cat key": guard.Deny, "cat ./key": guard.Deny, "cat k*": guard.Deny, "head < key": guard.Deny,
			"grep x key b": guard.Deny, "cat note.txt": guard.Ask, "cat *.txt": guard.Ask, "cat chain": guard.Ask,
			"cat dir/x": guard.Ask, "cat dir/../file": guard.Ask, "cd dir && cat ../file": guard.Ask,
			"ls dir/": guard.Ask, "cat d?r/x": guard.Ask, "diff -r own sub": guard.Ask, "grep -r x dir": guard.Ask,
			"cat b": guard.Allow, "cat own/a": guard.Allow, "cat sub/../b": guard.Allow, "cat s*/*/a": guard.Ask,
			"cat loop": guard.Allow, "cat gone": guard.Allow, "ls": guard.Allow, "cd sub && cat deep/a": guard.Allow,
			"sed -n p key": guard.Deny, "sed -n p k*": guard.Deny, "timeout 5 jq . key": guard.Deny,
			"echo key": guard.Allow,
		} {
			if v := guard.Tools.Command(command, place); v.Decision != want {
				t.Errorf("%s in %s: %s, want %s: %+v", command, root, v.Decision, want, v.Reasons)
			}
		}
	}
	if got := leads(at("ws/*")); slices.Contains(got, at("ws/b")) || !slices.Contains(got, at("home/.ssh/key")) {
		t.Errorf("%v", got)
	}
}

// TestPatternsInCommands: each of these lines shows a file in real bash without naming it. A deny of the file covers
// it, and credentials are always denied.
func TestPatternsInCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: ", err)
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ws/secrets/x": "CANARY", "ws/sub/x": "plain", "ws/.hidden/x": "CANARY", "home/.ssh/id_rsa": "CANARY",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("secrets", filepath.Join(top, "ws", "link")); err != nil {
		t.Fatal(err)
	}
	place := PlaceOf([]string{filepath.Join(top, "ws")}, filepath.Join(top, "home"), nil, nil)
	held := place
	held.Containment = guard.Containment{Walls: true, Cover: guard.Cover{Roots: []string{place.Root}}}
	known := guard.Known(tool.Ours().Specs())
	judge := func(place guard.Place, line string, rules ...string) guard.Verdict {
		j := guard.Judge{Known: known, Place: place}
		for _, text := range rules {
			decision := guard.Deny
			if text == "Bash" {
				decision = guard.Allow
			}
			r, err := known.Rule(decision, text, "here")
			if err != nil {
				t.Fatal(err)
			}
			j.Rules = append(j.Rules, r)
		}
		return j.Call(guard.Call{Tool: "Bash", Kind: "command", Command: line})
	}
	for line, rule := range map[string]string{
		"cat s?crets/x": "Read(secrets/**)", "cat */x": "Read(secrets/**)", "cat s[e]crets/x": "Read(secrets/**)",
		"cat [!a]ecrets/x": "Read(secrets/**)", "cat [[:alpha:]]ecrets/x": "Read(secrets/**)",
		"cat l[i]nk/x":     "Read(secrets/**)",
		"cat secret{s,}/x": "Read(secrets/**)", "cat secret{r..t}/x": "Read(secrets/**)",
		"cat < s?crets/x":     "Read(secrets/**)",
		"cd s?crets && cat x": "Read(secrets/**)", "cd sub && cat ../s*s/?": "Read(secrets/**)",
		"python3 -c 'import sys; print(open(sys.argv[1]).read())' s?crets/x": "Read(secrets/**)",
		"x=s?crets; cat $x/x":                "Read(secrets/**)",
		"for f in s*/x; do cat \"$f\"; done": "Read(secrets/**)", "shopt -s dotglob; cat */x": "Read(.hidden/**)",
		"shopt -s nocaseglob; cat SECRET?/x": "Read(secrets/**)", "bash -c 'cat s?crets/x'": "Read(secrets/**)",
		"shopt -s extglob\ncat @(secrets)/x": "Read(secrets/**)",
		"cat ~/.s?h/id_rsa":                  "", "cat ~/.[s]sh/id_rsa": "", "cd ~ && cat .s?h/id_rsa": "",
		"cat ~/.s{s,x}h/id_rsa": "",
		"cat $HOME/.s*/id_*":    "", "cat < ~/.s?h/id_rsa": "", "cat ../*/.ssh/id_rsa": "",
		"cat ~/.{r..t}sh/id_rsa":             "",
		"for f in ~/.s?h/*; do cat $f; done": "", "shopt -s dotglob; cat ~/*/id_rsa": "",
		"cat ~/{.ssh,.s}/id_rsa": "",
	} {
		c := exec.Command("bash", "-c", line)
		c.Dir, c.Env = place.Root, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + place.Home}
		if out, _ := c.Output(); !strings.Contains(string(out), "CANARY") {
			t.Errorf("%q shows %q", line, out)
		}
		for _, p := range []guard.Place{place, held} {
			rules := []string{"Bash", rule}[:1+min(1, len(rule))]
			if v := judge(p, line, rules...); v.Decision != guard.Deny {
				t.Errorf("%q with %q: %s: %+v", line, rule, v.Decision, v.Reasons)
			}
		}
	}
	for _, line := range []string{
		"cat sub/*", "cat su?/x", "cat *b/x", "cat {sub,none}/x", "ls *.txt", "cat */none",
		"for f in sub/*; do cat $f; done",
		"cat .h*/x", "ls ~/.s*/none",
	} {
		if v := judge(held, line, "Bash", "Read(secrets/**)"); v.Decision != guard.Allow {
			t.Errorf("%q: %s: %+v", line, v.Decision, v.Reasons)
		}
	}
}
