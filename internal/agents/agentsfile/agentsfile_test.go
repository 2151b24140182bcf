package agentsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
		os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// in returns the content of a file of the given name that names a default agent.
func in(name, agent string) string {
	switch filepath.Ext(name) {
	case ".json":
		return fmt.Sprintf(`{"defaultAgent": %q}`, agent)
	case ".toml":
		return fmt.Sprintf(`defaultAgent = %q`, agent)
	case ".cjs", ".cts":
		return fmt.Sprintf(`module.exports = {defaultAgent: %q}`, agent)
	}
	return fmt.Sprintf(`export default {defaultAgent: %q}`, agent)
}

func TestResolve(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "repo/.git/HEAD"), "")
	write(t, filepath.Join(root, "repo/sub/package.json"), "{}")
	write(t, filepath.Join(root, "worktree/.git"), "gitdir: elsewhere")
	write(t, filepath.Join(root, "package/package.json"), "{}")
	for _, dir := range []string{"repo/sub/deep", "worktree/deep", "package/deep/er", "plain/deep"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := above(root, ".git"); ok {
		t.Skip("the temporary directory lies in a repository")
	}
	if _, ok := above(root, "package.json"); ok {
		t.Skip("the temporary directory lies in a package")
	}
	for _, c := range []struct{ cwd, dir, want string }{
		{"repo", "", "repo/agents"},
		{"repo/sub/deep", "", "repo/agents"},
		{"repo/sub/deep", " \t", "repo/agents"},
		{"repo/sub/deep", "x/../y", "repo/y"},
		{"repo/sub", "../out", "out"},
		{"worktree/deep", "", "worktree/agents"},
		{"package/deep/er", "mine", "package/mine"},
		{"plain/deep", "", "plain/deep/agents"},
		{"plain/deep", filepath.Join(root, "abs/./x"), "abs/x"},
	} {
		if got, want := Resolve(filepath.Join(root, c.cwd), c.dir), filepath.Join(root, c.want); got != want {
			t.Errorf("%s, %q: got %s, want %s", c.cwd, c.dir, got, want)
		}
	}
}

func TestFirstNameCounts(t *testing.T) {
	want := "ts mts cts js mjs cjs json toml"
	if got := strings.ReplaceAll(strings.Join(Names(), " "), "omniagent.config.", ""); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	dir := t.TempDir()
	for i := len(Names()) - 1; i >= 0; i-- { // each new file comes before those that are there
		name := Names()[i]
		content := in(name, name)
		write(t, filepath.Join(dir, name), content)
		f, err := Read(dir, true)
		if err != nil || f.DefaultAgent != name || f.Path != filepath.Join(dir, name) || string(f.Content) != content ||
			f.DefaultAgentPos.Line != 1 {
			t.Errorf("%s: got %+v, %v", name, f, err)
		}
	}
}

func TestNothing(t *testing.T) {
	dir := t.TempDir()
	if f, err := Read(dir, true); f != nil || err != nil {
		t.Errorf("empty directory: %v, %v", f, err)
	}
	file := filepath.Join(dir, "file")
	write(t, file, "x")
	for _, absent := range []string{filepath.Join(dir, "missing"), file, filepath.Join(file, "beneath")} {
		if f, err := Read(absent, false); f != nil || err != nil {
			t.Errorf("%s: %v, %v", absent, f, err)
		}
	}
	for _, content := range []string{
		"export default null", "export default undefined",
		"module.exports = null as Config",
	} {
		write(t, filepath.Join(dir, "omniagent.config.ts"), content)
		write(t, filepath.Join(dir, "omniagent.config.toml"), `defaultAgent = "never"`)
		if f, err := Read(dir, true); f != nil || err != nil {
			t.Errorf("%s: %v, %v", content, f, err)
		}
	}
}

func TestUnusableDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	write(t, file, "x")
	for _, c := range []struct{ dir, want string }{
		{filepath.Join(dir, "missing"), "does not exist"},
		{file, "is not a directory"},
		{filepath.Join(file, "beneath"), "is not a directory"},
	} {
		_, err := Read(c.dir, true)
		wantFault(t, err, fault.ArgError, c.dir, c.want, "--agentsDir")
	}
	err := unusable(dir, false, &fs.PathError{Op: "stat", Path: dir, Err: fs.ErrPermission})
	wantFault(t, err, fault.ArgError, dir, "refuses access", "permissions")
}

func TestNotReadable(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("the administrator may read everything, and Windows has no such modes")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "omniagent.config.ts")
	write(t, path, "export default {}")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := Read(dir, false)
	wantFault(t, err, fault.ConfigInvalid, path, "does not allow", "permissions")
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	_, err = Read(dir, false)
	wantFault(t, err, fault.ArgError, dir, "refuses access", "permissions")
}

func wantFault(t *testing.T, err error, code fault.Code, path, message, hint string) {
	t.Helper()
	f := fault.Of(err)
	if f == nil || f.Code != code || f.Kind() != fault.Input || !strings.Contains(f.Error(), path) ||
		!strings.Contains(f.Error(), message) || !strings.Contains(f.Suggestion, hint) {
		t.Errorf("got %v (%+v), want %s with %q, %q and the hint %q", err, f, code, path, message, hint)
	}
}

func TestUnusableFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "omniagent.config.ts")
	for _, c := range []struct {
		name, want string
		make       func() error
	}{
		{"directory", "not a regular file", func() error { return os.Mkdir(path, 0o700) }},
		{"dangling link", "leads nowhere", func() error { return os.Symlink("missing", path) }},
		{"circle", "circle", func() error { return os.Symlink("omniagent.config.ts", path) }},
		{"huge", "larger than 1 MiB", func() error { return os.WriteFile(path, make([]byte, 1<<20+1), 0o600) }},
		{"garbage", ":1:1: ", func() error { return os.WriteFile(path, []byte{0, 0xff, 0xfe}, 0o600) }},
		{"UTF-16", ":1:1: ", func() error { return os.WriteFile(path, []byte("\xff\xfe{\x00}\x00"), 0o600) }},
	} {
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "omniagent.config.toml"), `defaultAgent = "never"`)
		f, err := Read(dir, false)
		wantFault(t, err, fault.ConfigInvalid, path, c.want, "")
		if f != nil {
			t.Errorf("%s: got %+v", c.name, f)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "elsewhere"), in("x.ts", "codex"))
	if err := os.Symlink("elsewhere", path); err != nil {
		t.Fatal(err)
	}
	if f, err := Read(dir, false); err != nil || f.DefaultAgent != "codex" || f.Path != path {
		t.Errorf("link: got %+v, %v", f, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	content := in("x.ts", "codex")
	write(t, path, content+strings.Repeat(" ", 1<<20-len(content)))
	if f, err := Read(dir, false); err != nil || f.DefaultAgent != "codex" {
		t.Errorf("exactly 1 MiB: %v", err)
	}
}

const whole = `import type { Config } from "omniagent"

export default {
  defaultAgent: "mine",
  somebodyElses: { x: 1 },
  hooks: { preSync: "somewhere" },
  disableTargets: ["gemini"],
  targets: [{
    id: "mine", displayName: "Mine", aliases: ["my"], inherits: "codex", override: true,
    hooks: { a: [] }, outputs: null, elseKnown: 1,
    cli: {
      modes: { interactive: { command: "mine" }, oneShot: { command: "mine", args: ["run", ""] } },
      prompt: { type: "flag", flag: ["-p"] },
      flags: {
        approval: { values: { prompt: [], yolo: ["--yes"] } },
        sandbox: null,
        output: { values: { text: [], json: ["--json"], "stream-json": null }, byMode: { interactive: { json: null, text: ["-t"] } } },
        model: { flag: ["-m"], modes: ["oneShot"] },
        web: { on: ["--web"], off: [] },
      },
      passthrough: { position: "before-prompt" },
    },
  }, { id: "bare" }],
} satisfies Config
`

func TestWhole(t *testing.T) {
	want := &File{
		DefaultAgent: "mine",
		Targets: []Target{{
			ID: "mine", DisplayName: "Mine", Aliases: []Name{{Text: "my"}}, Inherits: Name{Text: "codex"},
			CLI: &CLI{
				Interactive: Call{Command: "mine", Args: []string{}}, OneShot: Call{
					Command: "mine",
					Args:    []string{"run", ""},
				},
				Prompt:   Prompt{Type: PromptFlag, Flag: []string{"-p"}},
				Approval: Flag{Values: map[string][]string{"prompt": {}, "yolo": {"--yes"}}},
				Output: Flag{
					Values: map[string][]string{"text": {}, "json": {"--json"}, "stream-json": nil},
					ByMode: map[string]map[string][]string{"interactive": {"json": nil, "text": {"-t"}}},
				},
				Model: Model{Flag: []string{"-m"}, Modes: []string{"oneShot"}}, Web: Web{
					On:  []string{"--web"},
					Off: []string{},
				},
				Passthrough: PassBeforePrompt,
			},
		}, {ID: "bare"}},
	}
	for _, content := range []string{whole, strings.ReplaceAll(whole, "\n", "\r\n"), "\uFEFF" + whole} {
		f, err := Parse("/x/omniagent.config.ts", []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f, cmpopts.IgnoreTypes(literal.Pos{}),
			cmpopts.IgnoreFields(File{}, "Path", "Content")); diff != "" {
			t.Error(diff)
		}
		target := f.Targets[0]
		for what, got := range map[string]literal.Pos{
			"4:17": f.DefaultAgentPos, "9:9": target.Pos, "9:48": target.Aliases[0].Pos, "9:65": target.Inherits.Pos,
			"12:40": target.CLI.Interactive.CommandPos,
		} {
			if got.String() != what {
				t.Errorf("got %v, want %s", got, what)
			}
		}
	}
	out := want.Targets[0].CLI.Output
	for _, c := range []struct {
		mode, value string
		want        []string
		ok          bool
	}{
		{Interactive, "text", []string{"-t"}, true},
		{Interactive, "json", nil, false},
		{OneShot, "json", []string{"--json"}, true},
		{OneShot, "text", []string{}, true},
		{OneShot, "stream-json", nil, false},
		{OneShot, "other", nil, false},
	} {
		if got, ok := out.Args(c.mode, c.value); ok != c.ok || !cmp.Equal(got, c.want) {
			t.Errorf("%s %s: got %v %v", c.mode, c.value, got, ok)
		}
	}
}

func TestTOMLAndJSONSayTheSame(t *testing.T) {
	toml := "\uFEFFdefaultAgent = \"a\"\r\n[[targets]]\r\nid = \"a\"\r\n[targets.cli.modes]\r\ninteractive.command = " +
		"\"a\"\r\noneShot.command = \"a\"\r\n[targets.cli.prompt]\r\ntype = \"stdin\"\r\n"
	json := `{"defaultAgent": "a", "targets": [{"id": "a", "cli": {"modes": {"interactive": {"command": "a"}, "oneShot": {"command": "a"}}, "prompt": {"type": "stdin"}}}]}`
	a, err := Parse("omniagent.config.toml", []byte(toml))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parse("omniagent.config.json", []byte(json))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b, cmpopts.IgnoreTypes(literal.Pos{}),
		cmpopts.IgnoreFields(File{}, "Path", "Content")); diff != "" || a.Targets[0].CLI.Prompt.Type != PromptStdin {
		t.Errorf("%+v\n%s", a, diff)
	}
}

// cliOf returns a target whose command line has the given members besides those that must be there.
func cliOf(more string) string {
	return `export default {targets: [{id: "a", cli: {modes: {interactive: {command: "a"}, oneShot: {command: "a"}}, prompt: {type: "stdin"}, ` + more + `}}]}`
}

func TestEverythingWrongIsReported(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{`export default 1`, []string{`1:16: the configuration must be an object, not a number`}},
		{
			`export default make()`,
			[]string{
				`1:16: this is code, not a literal (make()); configuration is read without running it`,
			},
		},
		{
			`export default {defaultAgent: pick()}`,
			[]string{
				`1:31: this is code, not a literal (pick()}); configuration is read without running it`,
			},
		},
		{`export default {defaultAgent: " "}`, []string{`1:31: defaultAgent must not be blank`}},
		{`export default {defaultAgent: 5, targets: {}, disableTargets: ["a", 1]}`, []string{
			`1:31: defaultAgent must be a string, not a number`,
			`1:43: targets must be a list of objects, not an object`,
			`1:69: disableTargets[1] must be a string, not a number`,
		}},
		{`export default {defaultAgent: "a", defualtAgent: 1, targets: null}`, nil},
		{`export default {targets: [1, {}]}`, []string{
			`1:27: targets[0] must be an object, not a number`,
			`1:30: targets[1] needs the key id`,
		}},
		{`export default {targets: [{id: "a", aliases: ["A", "b c", "-d", "d"]}, {id: "D"}]}`, []string{
			`1:47: targets[0].aliases[0] is "A", which is already the name of an agent at 1:32`,
			`1:52: targets[0].aliases[1] must be letters, digits, '.', '_' and '-', at most 64, and begin with none of the last two, not "b c"`,
			`1:59: targets[0].aliases[2] must be letters, digits, '.', '_' and '-', at most 64, and begin with none of the last two, not "-d"`,
			`1:77: targets[1].id is "D", which is already the name of an agent at 1:65`,
		}},
		{`export default {targets: [{id: "a", inherit: "b", overide: true, displayname: "c", zzz: 1}]}`, []string{
			`1:37: targets[0] has no key "inherit"; did you mean inherits?`,
			`1:51: targets[0] has no key "overide"; did you mean override?`,
			`1:66: targets[0] has no key "displayname"; did you mean displayName?`,
		}},
		{`export default {targets: [{id: "a", override: "yes", cli: {mode: {}, prompt: {type: "flg"}}}]}`, []string{
			`1:47: targets[0].override must be true or false, not a string`,
			`1:60: targets[0].cli has no key "mode"; did you mean modes?`,
			`1:85: targets[0].cli.prompt.type must be flag, positional or stdin, not "flg"; did you mean flag?`,
		}},
		{`export default {targets: [{id: "a", cli: {}}]}`, []string{
			`1:42: targets[0].cli needs the key modes`,
			`1:42: targets[0].cli needs the key prompt`,
		}},
		{`export default {targets: [{id: "a", cli: {modes: {interactive: {args: "x"}, oneShot: {command: 1}}, prompt: {type: "flag", flag: []}}}]}`, []string{
			`1:64: targets[0].cli.modes.interactive needs the key command`,
			`1:71: targets[0].cli.modes.interactive.args must be a list of strings, not a string`,
			`1:96: targets[0].cli.modes.oneShot.command must be a string, not a number`,
			`1:130: targets[0].cli.prompt.flag must not be empty`,
		}},
		{
			cliOf(`translate: "x"`),
			[]string{
				`1:142: targets[0].cli.translate has no effect here: say the same with modes, prompt and flags`,
			},
		},
		{cliOf(`flags: {approval: {values: {yollo: [], prompt: "x"}}, sandbox: {byMode: {oneshot: {}}}, output: {values: {json: [1]}}}`), []string{
			`1:159: targets[0].cli.flags.approval.values has "yollo", which is not prompt, auto-edit or yolo; did you mean yolo?`,
			`1:178: targets[0].cli.flags.approval.values.prompt must be a list of strings, not a string`,
			`1:204: targets[0].cli.flags.sandbox.byMode has "oneshot", which is not interactive or oneShot; did you mean oneShot?`,
			`1:244: targets[0].cli.flags.output.values.json[0] must be a string, not a number`,
		}},
		{cliOf(`flags: {model: {}, web: {on: true, modes: ["both"]}}, passthrough: {position: "before"}`), []string{
			`1:146: targets[0].cli.flags.model needs the key flag`,
			`1:160: targets[0].cli.flags.web.on must be a list of strings, not a boolean`,
			`1:174: targets[0].cli.flags.web.modes[0] must be interactive or oneShot, not "both"`,
			`1:209: targets[0].cli.passthrough.position must be after or before-prompt, not "before"`,
		}},
		{cliOf(`flags: {model: {flag: ["a\0b"], modes: []}}`), []string{
			`1:154: targets[0].cli.flags.model.flag[0] must not contain a zero byte`,
			`1:170: targets[0].cli.flags.model.modes must not be empty; leave it out for every mode`,
		}},
		{
			"export default {\n  defaultAgent: 'a'\n  targets: []\n}",
			[]string{`3:3: expected ',' or '}' after a member, found 't'`},
		},
	} {
		_, err := Parse("dir/omniagent.config.ts", []byte(c.in))
		var got []string
		if f := fault.Of(err); f != nil {
			if f.Code != fault.ConfigInvalid || f.Suggestion == "" ||
				!strings.HasPrefix(f.Message, f.Problems[0].Message) {
				t.Errorf("%s: %+v", c.in, f)
			}
			for _, p := range f.Problems {
				place, message := strings.TrimPrefix(p.Param, "dir/omniagent.config.ts:"), strings.TrimPrefix(p.Message,
					"dir/omniagent.config.ts:")
				if !strings.HasPrefix(message, place+": ") {
					t.Errorf("%s: the place of %q is %q", c.in, p.Message, p.Param)
				}
				got = append(got, message)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.in, diff)
		}
	}
}

func TestProblemsAreFitToPrint(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	_, err := Parse("omniagent.config.js",
		[]byte("export default {targets: [{id: '\\u001b[31mx'}, {id: '"+token+" '}], defaultAgent: ['\\u001b[2J']}"))
	f := fault.Of(err)
	for _, p := range f.Problems {
		if all := p.Message + p.Value; strings.ContainsFunc(all, unicode.IsControl) || strings.Contains(all, token) {
			t.Errorf("got %q", all)
		}
	}
	if len(f.Problems) != 3 {
		t.Errorf("got %d problems", len(f.Problems))
	}
	_, err = Parse("omniagent.config.json", []byte(`{"targets": [`+strings.Repeat("1,", 5000)+`]}`))
	if f := fault.Of(err); len(f.Problems) != maxProblems || !strings.HasSuffix(f.Message, "(and 4999 more)") {
		t.Errorf("got %d problems, %s", len(f.Problems), f.Message)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("ts", whole)
	f.Add("json", `{"targets": [{"id": "a", "cli": {"modes": {}, "prompt": {"type": "flag"}}}]}`)
	f.Add("toml", "defaultAgent = 'a'\n[[targets]]\nid = 'a'\n")
	f.Fuzz(func(t *testing.T, ending, data string) {
		file, err := Parse("omniagent.config."+ending, []byte(data))
		if err == nil {
			if file != nil && string(file.Content) != data {
				t.Fatalf("%q: other content", data)
			}
			return
		}
		fail := fault.Of(err)
		if file != nil || fail.Code != fault.ConfigInvalid || len(fail.Problems) == 0 ||
			strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(fail.Error()), unicode.IsControl) {
			t.Fatalf("%q: got %v and %q", data, file, err)
		}
	})
}
