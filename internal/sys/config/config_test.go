package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniagent/internal/kit/fault"
)

func testKeys() []Key {
	return []Key{
		{
			Name: "output", Type: Enum, Enum: []string{"json", "human"}, Default: "human", Env: "OMNIAGENT_OUTPUT",
			Flag: "format",
		},
		{Name: "audit.keep", Type: Duration, Default: "30d", Env: "OMNIAGENT_AUDIT_KEEP"},
		{Name: "audit.max_size", Type: Bytes, Default: "1MiB"},
		{Name: "retries", Type: Int, Default: "3", Env: "OMNIAGENT_RETRIES"},
		{Name: "color", Type: Bool, Env: "OMNIAGENT_COLOR"},
		{Name: "model", Type: String, Env: "OMNIAGENT_MODEL"},
		{Name: "scopes", Type: List, Env: "OMNIAGENT_SCOPES"},
	}
}

// place is a home, a repository and what an Options needs.
type place struct {
	t                   testing.TB
	home, repo, dir     string
	user, project, list string
	env                 map[string]string
}

func newPlace(t testing.TB) *place {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, home: filepath.Join(base, "home"), repo: filepath.Join(base, "repo"), env: map[string]string{}}
	p.dir = filepath.Join(p.repo, "a", "b")
	p.user = filepath.Join(p.home, ".config", "omniagent", "config.toml")
	p.project = projectPath(p.repo)
	p.list = filepath.Join(p.home, "state", "trust.json")
	for _, dir := range []string{p.dir, filepath.Join(p.repo, ".git")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.env["HOME"] = p.home
	return p
}

func (p *place) write(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) trust(path, text string) {
	p.t.Helper()
	p.write(path, text)
	if err := OpenTrust(p.list).Add(path, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) options() Options {
	return Options{
		Keys: testKeys(), Dir: p.dir, UserFile: p.user, TrustFile: p.list,
		Getenv: func(name string) (string, bool) { v, ok := p.env[name]; return v, ok },
	}
}

func (p *place) load() *Set {
	p.t.Helper()
	set, err := Load(p.options())
	if err != nil {
		p.t.Fatal(err)
	}
	return set
}

func TestHigherLayersWinAndShadow(t *testing.T) {
	p := newPlace(t)
	p.write(p.user, "output = 'json'\nretries = 4\naudit.keep = '1d'\n")
	p.trust(p.project, "# project\nretries = 5\n[audit]\nkeep = '48h'\n")
	p.env["OMNIAGENT_RETRIES"] = "6"
	p.env["OMNIAGENT_COLOR"] = "" // empty counts as not set
	o := p.options()
	o.Overrides = map[string]string{"retries": "7", "output": "human"}
	set, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Value{
		"output": {
			Raw: "human", Text: "human", Source: "flag:--format", Shadowed: []string{"file:" + p.user + ":1:10"},
		},
		"audit.max_size": {Raw: int64(1 << 20), Text: "1048576", Source: "default"},
		"color":          {Source: "default"}, "model": {Source: "default"}, "scopes": {Source: "default"},
		"retries": {Raw: int64(7), Text: "7", Source: "flag:--retries", Shadowed: []string{
			"env:OMNIAGENT_RETRIES", "file:" + p.project + ":2:11", "file:" + p.user + ":2:11",
		}},
	}
	keep, ok := set.Lookup("audit.keep")
	if !ok || keep.Raw != 48*time.Hour || keep.Source != "file:"+p.project+":4:8" || keep.File != p.project ||
		keep.Pos.Line != 4 {
		t.Errorf("got %+v", keep)
	}
	var names []string
	for _, e := range set.All() {
		names = append(names, e.Key.Name)
		if e.Key.Name == "audit.keep" {
			continue
		}
		if diff := cmp.Diff(want[e.Key.Name], e.Value); diff != "" {
			t.Errorf("%s: %s", e.Key.Name, diff)
		}
	}
	if !slices.IsSorted(names) || len(names) != len(o.Keys) {
		t.Errorf("All() gives %v", names)
	}
	if diff := cmp.Diff([]string{p.project, p.user}, set.Sources()); diff != "" {
		t.Error(diff)
	}
	if set.projectRoot != p.repo || set.ProjectFile() != p.project || len(set.Warnings()) != 0 {
		t.Errorf("root %s, file %s, warnings %v", set.projectRoot, set.ProjectFile(), set.Warnings())
	}
	if set.Int("retries") != 7 || set.Int("audit.max_size") != 1<<20 || set.Duration("audit.keep") != 48*time.Hour ||
		set.String("output") != "human" {
		t.Error("the accessors disagree")
	}
}

func TestForAnySubsetOfLayersTheHighestWins(t *testing.T) {
	p := newPlace(t)
	rapid.Check(t, func(rt *rapid.T) {
		// flag, env, project context, project, user context, user
		in := rapid.SliceOfN(rapid.Bool(), 6, 6).Draw(rt, "layers")
		set := func(i int) string {
			if in[i] {
				return fmt.Sprintf("retries = %d\n", 100+i)
			}
			return ""
		}
		p.trust(p.project, set(3)+"[context.c]\n"+set(2))
		p.write(p.user, set(5)+"[context.c]\n"+set(4)+"[context.d]\nretries = 1\n")
		delete(p.env, "OMNIAGENT_RETRIES")
		o := p.options()
		o.Context = "c"
		if in[0] {
			o.Overrides = map[string]string{"retries": "100"}
		}
		if in[1] {
			p.env["OMNIAGENT_RETRIES"] = "101"
		}
		got, err := Load(o)
		if err != nil {
			rt.Fatal(err)
		}
		want, shadowed := int64(3), 0
		for i := len(in) - 1; i >= 0; i-- {
			if in[i] {
				want = int64(100 + i)
				shadowed++
			}
		}
		v, _ := got.Lookup("retries")
		if v.Raw != want || len(v.Shadowed) != max(0, shadowed-1) {
			rt.Fatalf("%v: got %+v, want %d", in, v, want)
		}
	})
}

func TestHashFollowsTheValuesOnly(t *testing.T) {
	p := newPlace(t)
	p.write(p.user, "audit.keep = '2d'\n")
	first := p.load()
	p.write(p.user, "# moved\n[audit]\nkeep = \"48h\"\n")
	if second := p.load(); second.Hash() != first.Hash() {
		t.Error("another notation is another hash")
	}
	p.write(p.user, "audit.keep = '3d'\n")
	if third := p.load(); third.Hash() == first.Hash() || len(third.Hash()) != 12 {
		t.Error("another value is the same hash")
	}
	p.write(p.user, "audit.keep = '2d'\nmodel = ''\n")
	if fourth := p.load(); fourth.Hash() == first.Hash() {
		t.Error("a value that is empty is like one that is not set")
	}
}

func TestContexts(t *testing.T) {
	p := newPlace(t)
	p.write(p.user,
		"current_context = 'work'\nmodel = 'small'\n[context.work]\nmodel = 'large'\n[context.'at home']\naudit.keep "+
			"= '1h'\n")
	if set := p.load(); set.ContextName() != "work" || set.String("model") != "large" {
		t.Errorf("context %q, model %q", set.ContextName(), set.String("model"))
	}
	o := p.options()
	o.Context = "at home"
	set, err := Load(o)
	if err != nil || set.String("model") != "small" || set.Duration("audit.keep") != time.Hour {
		t.Errorf("%v, model %q", err, set.String("model"))
	}
	o.Context = "wrok"
	set, err = Load(o)
	if !errors.Is(err, fault.ConfigInvalid) ||
		err.Error() != `--context: there is no context "wrok"; there is: at home, work` {
		t.Errorf("got %v", err)
	}
	o.None = true
	if _, none := Load(o); !errors.Is(none, fault.ConfigInvalid) {
		t.Errorf("without files: %v", none)
	}
	o.Unchecked = true
	if set, none := Load(o); none != nil || set.ContextName() != "wrok" {
		t.Errorf("without files: %q, %v", set.ContextName(), none)
	}
	if f := fault.Of(err); f.Problems[0].Corrected != "work" || set.String("model") != "small" {
		t.Errorf("got %+v, model %q", f.Problems, set.String("model"))
	}
	p.write(p.user, "current_context = 'gone'\n")
	if _, err = Load(p.options()); err == nil ||
		err.Error() != p.user+`:1:19: there is no context "gone"; there is none` {
		t.Errorf("got %v", err)
	}
}

func TestEverythingWrongIsReportedAndTheRestHolds(t *testing.T) {
	p := newPlace(t)
	p.write(p.user,
		"retries = '5'\ncolor = true\noutput = 'jsno'\n[audit]\nkeep = 30\nmax_size = -1\n[context.x]\nscopes = [1]\n")
	p.env["OMNIAGENT_RETRIES"] = "many"
	o := p.options()
	o.Overrides = map[string]string{"audit.keep": "soon", "nonsense": "1"}
	set, err := Load(o)
	f := fault.Of(err)
	if !errors.Is(err, fault.ConfigInvalid) || f.Suggestion == "" {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, problem := range f.Problems {
		got = append(got, strings.ReplaceAll(problem.Message, p.user, "FILE"))
	}
	want := []string{
		`--audit-keep: audit.keep must be a duration with its unit, such as 90s, 1h30m or 30d, not "soon"`,
		`there is no key "nonsense"`,
		`OMNIAGENT_RETRIES: retries must be a whole number of at least 0, not "many"`,
		`FILE:1:11: retries must be a whole number of at least 0, not a string`,
		`FILE:3:10: output must be one of json, human, not "jsno"`,
		`FILE:5:8: audit.keep must be a duration with its unit, in quotes, such as "90s", not a number`,
		`FILE:6:12: audit.max_size must be a number of bytes, such as 4096 or "4KiB", not a negative number`,
		`FILE:8:10: scopes must be a list of strings, and item 1 is a number`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if f.Problems[4].Corrected != "json" {
		t.Errorf("corrected %q", f.Problems[4].Corrected)
	}
	if !set.Bool("color") || set.Int("retries") != 3 || set.String("output") != "human" {
		t.Error("what is sound does not hold")
	}
}

func TestTornFile(t *testing.T) {
	p := newPlace(t)
	text := "color = true\n\nmodel = \n"
	p.write(p.user, text)
	p.env["OMNIAGENT_MODEL"] = "m"
	o := p.options()
	o.Context = "unknown" // may be in the torn file: no second complaint
	set, err := Load(o)
	f := fault.Of(err)
	if err == nil || err.Error() != p.user+":3:9: expected a value, found end of line" || len(f.Problems) != 1 {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(map[string]any{"path": p.user, "line": 3, "column": 9}, f.Detail); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(f.Suggestion, "omniagent config path") || set.String("model") != "m" ||
		len(set.Sources()) != 0 {
		t.Errorf("hint %q, sources %v", f.Suggestion, set.Sources())
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	p := newPlace(t)
	for _, c := range []struct {
		name string
		make func(path string)
		want string
	}{
		{"directory", func(path string) { _ = os.MkdirAll(path, 0o700) }, "it is not a regular file"},
		{"large", func(path string) { p.write(path, strings.Repeat("#", maxFile+1)) }, "the file is larger than 1 MiB"},
		{"NUL", func(path string) { p.write(path, "\x00") }, "1:1: expected a key, found U+0000"},
		{"missing", func(string) {}, "the file does not exist"},
	} {
		path := filepath.Join(p.home, c.name)
		c.make(path)
		o := p.options()
		o.Explicit = path
		if _, err := Load(o); !errors.Is(err, fault.ConfigInvalid) || !strings.Contains(err.Error(), path+":") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		o.Explicit, o.UserFile = "", path
		if _, err := Load(o); (err == nil) != (c.name == "missing") {
			t.Errorf("%s as user file: %v", c.name, err)
		}
	}
}

func TestExplicitAndNone(t *testing.T) {
	p := newPlace(t)
	p.write(p.user, "model = 'user'\nretries = 9\n")
	p.trust(p.project, "model = 'project'\n")
	p.write(filepath.Join(p.dir, "only.toml"), "model = 'only'\n")
	o := p.options()
	o.Explicit = "only.toml"
	set, err := Load(o)
	if err != nil || set.String("model") != "only" || set.Int("retries") != 3 ||
		set.Sources()[0] != filepath.Join(p.dir, "only.toml") {
		t.Errorf("%v %v", err, set.All())
	}
	o.None = true
	set, err = Load(o)
	if err != nil || len(set.Sources()) != 0 || set.String("model") != "" || set.ProjectFile() != p.project {
		t.Errorf("%v %v", err, set.Sources())
	}
}

func TestUnknownKeysAreWarnings(t *testing.T) {
	p := newPlace(t)
	p.write(p.user, "modle = 'x'\n\"audit.keep\" = '1h'\n[audit]\nkep = '1h'\n[other]\nx = 1\n")
	set := p.load()
	var got []string
	for _, w := range set.Warnings() {
		if w.Code != UnknownConfigKey || !strings.HasPrefix(w.Message, p.user+":") || w.Line == 0 || w.Col == 0 {
			t.Errorf("got %+v", w)
		}
		got = append(got, strings.TrimPrefix(w.Message, p.user+":"))
	}
	want := []string{
		`1:1: there is no key "modle"; did you mean model?`,
		`2:1: there is no key "audit.keep"; write it without quotes`,
		`4:1: there is no key "audit.kep"; did you mean audit.keep?`,
		`5:2: there is no key "other"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextReadsBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfN(rapid.String(), 0, 4).Draw(rt, "list")
		back, err := parseList(showRaw(list, ""))
		if err != nil || !slices.Equal(back.([]string), list) {
			rt.Fatalf("%q -> %q -> %q, %v", list, showRaw(list, ""), back, err)
		}
	})
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0": 0} {
		if got, err := (Key{}).parseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "30", "d", "-1s", "1.5d", "-1d", "1d-2h", "999999999d", "106751d999h"} {
		if got, err := (Key{}).parseDuration(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
	short := Key{Name: "wait", Type: Duration, Max: "10m"}
	if got, err := short.parse("10m"); err != nil || got != 10*time.Minute {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := short.parse("11m"); err == nil || !strings.Contains(err.Error(), "at most 10m") {
		t.Error(err)
	}
	for _, text := range []string{"-1", "1.5", "x", ""} {
		if got, err := (Key{Type: Int}).parse(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	for text, want := range map[string]int64{"4096": 4096, "4 KiB": 4096, "1MB": 1e6, "2GiB": 2 << 30, "5B": 5} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5MB", "9999999999GiB", "KiB", "1kb"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}
