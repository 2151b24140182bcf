package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func always(string, []byte) bool { return true }

func TestProfilesOfTheReference(t *testing.T) {
	t.Parallel()
	var cases []struct {
		ID       string
		Files    map[string]json.RawMessage
		Resolved map[string]any
	}
	read(t, "eidolon.json", &cases)
	if len(cases) < 10 {
		t.Fatalf("there are %d cases", len(cases))
	}
	for _, c := range cases {
		home, dir := t.TempDir(), t.TempDir()
		for name, content := range c.Files {
			path, mine := strings.CutPrefix(name, "~/")
			at := filepath.Join(dir, path)
			if mine {
				at = filepath.Join(home, path)
			}
			var text string
			if json.Unmarshal(content, &text) != nil {
				text = string(content)
			}
			write(t, at, text)
		}
		if c.ID == "legacy-single-model" {
			// the reference passes the old form over
			c.Resolved["apiKey"], c.Resolved["baseUrl"] = "sk", "https://api.siliconflow.cn/v1"
		}
		p := ReadProfiles(home, dir, always).Active()
		got := map[string]any{
			"provider": p.Vendor, "model": p.Model, "apiKind": p.Kind, "maxOutputTokens": float64(p.Output),
			"maxInputChars": float64(p.Input),
		}
		for name, value := range map[string]string{"name": p.Name, "apiKey": p.Key.reveal(), "baseUrl": p.Base} {
			if _, wanted := c.Resolved[name]; wanted || value != "" && name != "baseUrl" {
				got[name] = value
			}
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(c.Resolved)
		if string(a) != string(b) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.ID, a, b)
		}
	}
}

func TestProfilesOfAProject(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".eidolon", "config.json"), `{"models":{"active":"a","profiles":[
		{"name":"a","provider":"siliconflow","model":"m","apiKey":"`+canary+`"},
		{"name":"b","provider":"x","model":"n","apiKey":"k","baseUrl":"https://mine/v1","toolProtocol":"native"}]}}`)
	theirs := filepath.Join(dir, ".eidolon.json")
	write(t, theirs, `{"models":{"active":"b","profiles":[
		{"name":"b","provider":"siliconflow","model":"theirs","baseUrl":"https://theirs/v1"}]}}`)

	all := ReadProfiles(home, dir, nil)
	if p := all.Active(); p.Name != "a" || p.Protocol != "xnl" || len(all.All) != 2 || len(all.Notices) != 1 {
		t.Errorf("untrusted: got %+v", all)
	}
	if b, ok := all.Named("b"); !ok || b.Base != "https://mine/v1" || b.Protocol != "native" {
		t.Errorf("the user's b: got %+v", b)
	}

	// Trusted: its profile replaces the user's as a whole, and still gets no key of the user's.
	all = ReadProfiles(home, dir, func(path string, _ []byte) bool { return path == theirs })
	if p := all.Active(); p.Base != "https://theirs/v1" || p.Key.reveal() != "" || p.Layer != Project {
		t.Errorf("trusted: got %+v", p)
	}
	o := Options{
		Selections: []Selection{*all.Selection()}, Lookup: env("SILICONFLOW_API_KEY="+canary, "OPENAI_API_KEY="+canary),
	}
	if c, err := Choose(o); err == nil {
		t.Errorf("a key travels to a project's address: %+v", c)
	}
}

func TestNoticesOfProfiles(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`{nope`: "config.json does not count",
		`{"models":{"active":"zz","profiles":[{"name":"a"}]}}`: "the profile zz, which does " +
			"not exist",
		`{"models":{"profiles":[{"name":"a"}, {"name":"b"}]}}`: "no file of profiles names the active one",
		`[]`:                                   "config.json does not count: it must be an object",
		`{"models":[{"name":"b"}]}`:            "config.json:1: models does not count: it must be an object",
		`{"model":"m"}`:                        "config.json:1: model does not count: it must be an object",
		`{"models":{"profiles":{"name":"b"}}}`: "config.json:1: models.profiles does not count: it must be an array",
		`{"models":{"profiles":["b"]}}`:        "config.json:1: a profile does not count: it must be an object",
		`{"models":{"active":1,"profiles":[{"name":"b"}]}}`: "models.active does not count: it must be a string",

		`{"models":{"profiles":[{"name":"b", "model":["m"]}]}}`:                  "config.json:1: model does not count",
		`{"models":{"profiles":[{"name":"b", "maxOutputTokens":"many"}]}}`:       "maxOutputTokens does not count",
		`{"models":{"profiles":[{"model":"m"}, {"name":"b"}]}}`:                  "config.json:1 has a profile without",
		`{"models":{"profiles":[{"name":"b", "apiKind":"antropic"}]}}`:           "no apiKind antropic",
		`{"models":{"profiles":[{"name":"b", "apiKind":"anthropic"}]}, "x": [}}`: "config.json does not count",
	} {
		home := t.TempDir()
		write(t, filepath.Join(home, ".eidolon", "config.json"), content)
		all := ReadProfiles(home, "", nil)
		if len(all.Notices) != 1 || !strings.Contains(all.Notices[0], want) {
			t.Errorf("%s: got %q", content, all.Notices)
		}
	}
	home := t.TempDir()
	write(t, filepath.Join(home, ".eidolon.json"),
		`{"models":{"active":"zz","profiles":[{"name":"a","apiKey":"`+canary+`"}]}}`)
	all := ReadProfiles(home, home, nil)
	c, err := Choose(Options{Selections: []Selection{*all.Selection()}, Notes: all.Notices})
	if err != nil || len(c.Notes) != 1 || c.Profile != "a" || c.Protocol != "xnl" || c.Known.Output != eidolonLimit {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err = Choose(Options{Notes: all.Notices}); err == nil || len(c.Notes) != 1 {
		t.Errorf("without a model: %q, %v", c.Notes, err)
	}
}
