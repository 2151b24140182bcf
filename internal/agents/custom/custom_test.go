package custom_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/custom"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

func known() []agent.Driver { return []agent.Driver{claude.New(), codex.New()} }

func parse(t *testing.T, text string) *agentsfile.File {
	t.Helper()
	file, err := agentsfile.Parse("/repo/agents/omniagent.config.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func made(t *testing.T, text string) agent.Driver {
	t.Helper()
	list, err := custom.New(parse(t, text), known())
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

// of is an agent with this prompt and these further members of cli.
func of(prompt, more string) string {
	return `{"targets":[{"id":"Mine","displayName":"My Agent","aliases":["M2"],"cli":{
		"modes":{"interactive":{"command":"mine-chat","args":["chat"]},"oneShot":{"command":"mine","args":["run","-q"]}},
		"prompt":` + prompt + more + `}}]}`
}

const flags = `,"flags":{
	"approval":{"values":{"prompt":["--ask"],"yolo":["--all","x"]},"byMode":{"interactive":{"yolo":null,"auto-edit":["--edit"]}}},
	"sandbox":{"values":{"workspace-write":["--box"],"off":[]}},
	"output":{"values":{"text":null,"json":["--json"]},"byMode":{"oneShot":{"stream-json":["--lines"]}}},
	"model":{"flag":["--llm"],"modes":["oneShot"]},
	"web":{"on":["--web"],"modes":["interactive"]}}`

func TestFields(t *testing.T) {
	d := made(t, of(`{"type":"stdin"}`, flags))
	about := d.Describe()
	if d.Name() != "mine" || about.Title != "My Agent" || !slices.Equal(about.Aliases, []string{"m2"}) ||
		!about.Custom || about.Binary != "mine" {
		t.Errorf("%s, %+v", d.Name(), about)
	}
	type c = setting.Mode
	tests := []struct {
		feature, value string
		mode           c
		want           string // level, arguments
	}{
		{agent.Approval, "prompt", setting.OneShot, "yes --ask"},
		{agent.Approval, "prompt", setting.Interactive, "yes --ask"},
		{agent.Approval, "auto-edit", setting.OneShot, "no"},
		{agent.Approval, "auto-edit", setting.Interactive, "yes --edit"},
		{agent.Approval, "yolo", setting.OneShot, "yes --all x"},
		{agent.Approval, "yolo", setting.Interactive, "no"},
		{agent.Sandbox, "workspace-write", setting.OneShot, "yes --box"},
		{agent.Sandbox, "off", setting.OneShot, "yes"},
		{agent.Output, "text", setting.OneShot, "no"},
		{agent.Output, "json", setting.OneShot, "yes --json"},
		{agent.Output, "stream-json", setting.OneShot, "yes --lines"},
		{agent.Output, "stream-json", setting.Interactive, "no"},
		{agent.Model, "", setting.OneShot, "yes --llm"},
		{agent.Model, "", setting.Interactive, "no"},
		{agent.Web, "on", setting.Interactive, "yes --web"},
		{agent.Web, "on", setting.OneShot, "no"},
		{agent.Web, "off", setting.Interactive, "no"},
	}
	for _, tt := range tests {
		cell := d.Matrix("").Cell(tt.feature, tt.value, tt.mode)
		if got := strings.Join(append([]string{string(cell.Level)}, cell.Args...), " "); got != tt.want {
			t.Errorf("%s %s, %s: %s, want %s", tt.feature, tt.value, tt.mode, got, tt.want)
		}
	}
}

// TestCommand: where the prompt, our flags and the passthrough stand.
func TestCommand(t *testing.T) {
	tests := []struct {
		name, prompt, more string
		want               string // PROMPT where it is put
		ours               int
	}{
		{"stdin", `{"type":"stdin"}`, "", "run -q --ask --box PASS ED", 4},
		{"flag", `{"type":"flag","flag":["--say"]}`, "", "run -q --ask --box --say PROMPT PASS ED", 5},
		{"flag of two", `{"type":"flag","flag":["-x","--say"]}`, "", "run -q --ask --box -x --say PROMPT PASS ED", 6},
		{
			"flag, behind the passthrough", `{"type":"flag","flag":["--say"]}`,
			`,"passthrough":{"position":"before-prompt"}`, "run -q --ask --box PASS ED --say PROMPT", 4,
		},
		{"positional", `{"type":"positional"}`, "", "run -q --ask --box PROMPT PASS ED", 4},
		{
			"positional, behind the passthrough", `{"type":"positional"}`,
			`,"passthrough":{"position":"before-prompt"}`,
			"run -q --ask --box PASS ED PROMPT", 4,
		},
		{"positional first", `{"type":"positional","position":"first"}`, "", "run -q PROMPT --ask --box PASS ED", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := made(t, of(tt.prompt, flags+tt.more))
			s := agent.Spec{
				Mode: setting.OneShot, Shared: setting.Defaults(), Passthrough: []string{"PASS", "ED"},
				Install: agent.Install{Path: "/bin/mine"}, Env: []string{"A=1"},
			}
			l, warnings, err := d.Command(s)
			if err != nil || len(warnings) != 0 {
				t.Fatalf("%v, %v", warnings, err)
			}
			args := l.Args
			if l.Prompt == agent.ByArgument {
				args = slices.Insert(slices.Clone(args), l.PromptAt, "PROMPT")
			}
			if got := strings.Join(args, " "); got != tt.want || l.Translated != tt.ours || l.Path != "/bin/mine" ||
				!slices.Equal(l.Env, []string{"A=1"}) {
				t.Errorf("%s, %d ours, %+v", got, l.Translated, l)
			}
			if (l.Prompt == agent.ByStdin) != (tt.name == "stdin") {
				t.Errorf("prompt by %d", l.Prompt)
			}
		})
	}
}

// TestPromptLikeAFlag: where "--" or a flag that takes a value stands in front, a prompt may begin with "-".
func TestPromptLikeAFlag(t *testing.T) {
	tests := []struct {
		prompt, more string
		passed       []string
		bare         bool
	}{
		{`{"type":"positional"}`, "", nil, true},
		{`{"type":"positional","position":"first"}`, "", nil, true},
		{`{"type":"positional"}`, `,"passthrough":{"position":"before-prompt"}`, []string{"--"}, false},
		{`{"type":"positional"}`, `,"passthrough":{"position":"before-prompt"}`, []string{"-x"}, true},
		{`{"type":"flag","flag":["--say"]}`, "", nil, false},
		{`{"type":"flag","flag":["--"]}`, "", nil, false},
		{`{"type":"flag","flag":["--say="]}`, "", nil, true},
		{`{"type":"flag","flag":["--mode=x","say"]}`, "", nil, true},
	}
	for _, tt := range tests {
		d := made(t, of(tt.prompt, flags+tt.more))
		l, _, err := d.Command(agent.Spec{
			Mode: setting.OneShot, Shared: setting.Defaults(), Passthrough: tt.passed,
			Install: agent.Install{Path: "/bin/mine"},
		})
		if err != nil || l.PromptBare != tt.bare {
			t.Errorf("%s %q: %v, %v", tt.prompt, tt.passed, l.PromptBare, err)
		}
		args, err := cli.WithPrompt(l, d.Name(), "--yolo=do evil")
		if tt.bare != errors.Is(err, fault.ArgError) || !tt.bare && args[l.PromptAt] != "--yolo=do evil" {
			t.Errorf("%s: %q, %v", tt.prompt, args, err)
		}
		if _, err := cli.WithPrompt(l, d.Name(), " --yolo"); err != nil {
			t.Error(err)
		}
		if limit := d.Matrix("").Limit; limit.Bytes != 128<<10-1 {
			t.Errorf("%s: %+v", tt.prompt, limit)
		}
	}
	if limit := made(t, of(`{"type":"stdin"}`, "")).Matrix("").Limit; limit != (agent.Limit{}) {
		t.Errorf("%+v", limit)
	}
}

func TestTypedAndPassed(t *testing.T) {
	d := made(t, of(`{"type":"stdin"}`, flags))
	s := agent.Spec{Mode: setting.OneShot, Shared: setting.Defaults(), Install: agent.Install{Path: "/bin/mine"}}
	s.Shared.Model = setting.Chosen[string]{Value: "m", Origin: setting.Configured}
	s.Shared.Web = setting.Chosen[bool]{Value: true, Origin: setting.Typed}
	l, warnings, err := d.Command(s)
	if err != nil || strings.Join(l.Args, " ") != "run -q --ask --box --llm m" || len(warnings) != 1 ||
		warnings[0].Kind != agent.Unsupported {
		t.Errorf("%q, %+v, %v", l.Args, warnings, err)
	}
	for _, passed := range [][]string{{"--llm", "n"}, {"--llm=n"}} {
		s.Passthrough = passed
		if l, _, _ := d.Command(s); slices.Contains(l.Args, "m") {
			t.Errorf("the model stands twice: %q", l.Args)
		}
	}
	s.Passthrough = []string{"--model", "n"} // which is another flag of this agent
	if l, _, _ := d.Command(s); !slices.Contains(l.Args, "m") {
		t.Errorf("%q", l.Args)
	}
	s.Rehearsal = &agent.Rehearsal{URL: "http://127.0.0.1:1"}
	if _, _, err := d.Command(s); !errors.Is(err, fault.ArgError) {
		t.Errorf("it would run on a real model: %v", err)
	}
}

func TestModesAndPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are those of POSIX systems")
	}
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"mine": 0o755, "mine-chat": 0o755, "plain": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	env := agent.Env{Lookup: func(name string) (string, bool) { return dir, name == "PATH" }}
	d := made(t, of(`{"type":"flag","flag":["--say"]}`, ""))
	in, err := d.Locate(env)
	if err != nil || in.Path != dir+"/mine" || in.Version != "" {
		t.Errorf("%+v, %v", in, err)
	}
	s := agent.Spec{Mode: setting.Interactive, Shared: setting.Defaults(), Install: in, Env: []string{"PATH=" + dir}}
	l, _, err := d.Command(s)
	if err != nil || l.Path != dir+"/mine-chat" || !slices.Equal(l.Args, []string{"chat"}) ||
		l.Prompt != agent.ByStdin || !l.Interactive {
		t.Errorf("%+v, %v", l, err)
	}
	s.Dir = dir // then nothing is looked for there
	if _, _, err = d.Command(s); !errors.Is(err, fault.NotInstalled) {
		t.Errorf("%v", err)
	}
	for command, want := range map[string]string{
		dir + "/mine": "", dir + "/none": "is not there",
		dir + "/plain": "is not executable", dir: "is a directory", "none": "no program none in PATH",
	} {
		d := made(t, `{"targets":[{"id":"x","cli":{"modes":{"interactive":{"command":"`+command+
			`"},"oneShot":{"command":"`+command+`"}},"prompt":{"type":"stdin"}}}]}`)
		in, err := d.Locate(env)
		if want == "" && (err != nil || in.Path != command) || want != "" &&
			(!errors.Is(err, fault.NotInstalled) || !strings.Contains(err.Error(), want) ||
				fault.Of(err).Suggestion == "") {
			t.Errorf("%s: %+v, %v", command, in, err)
		}
	}
}

func TestInherits(t *testing.T) {
	d := made(t, `{"targets":[{"id":"Work","inherits":"CODEX","aliases":["W"]}]}`)
	if a, b := d.Describe(), codex.New().Describe(); d.Name() != "work" || a.Binary != b.Binary ||
		a.InstallCommand != b.InstallCommand || a.Title != "Work" || !a.Custom ||
		!slices.Equal(a.Aliases, []string{"w"}) {
		t.Errorf("%s %+v", d.Name(), a)
	}
	if len(d.Matrix("").Rows) != len(codex.New().Matrix("").Rows) || d.Decode(setting.StreamJSON) == nil {
		t.Error("it is not the agent that it inherits from")
	}
}

// TestAdapter: what belongs to the agent that an adapter's name names, and what a repository tells that agent.
func TestAdapter(t *testing.T) {
	c, x := claude.New().Describe(), codex.New().Describe()
	for call, want := range map[string]agent.About{
		`"command":"claude-agent-acp"`:                               c,
		`"command":"node","args":["/opt/claude-agent-acp/index.js"]`: c,
		`"command":"/opt/codex-acp"`:                                 x,
		`"command":"writer"`:                                         {},
	} {
		about := made(t, `{"targets":[{"id":"Mine","cli":{"modes":{"acp":{`+call+`}}}}]}`).Describe()
		var keeps, its agent.Keeps
		if keeps = about.Keeps([]string{"HOME=/h"}); want.Keeps != nil {
			its = want.Keeps([]string{"HOME=/h"})
		}
		if !slices.Equal(about.Settings, want.Settings) || !slices.Equal(about.OwnSettings, want.OwnSettings) ||
			!slices.Equal(about.RepoFiles, want.RepoFiles) || !slices.Equal(keeps.Dirs, its.Dirs) {
			t.Errorf("%s: %q %q %q %+v", call, about.Settings, about.OwnSettings, about.RepoFiles, keeps)
		}
	}
}

// TestRefused: everything that is wrong is told at once, each with its place.
func TestRefused(t *testing.T) {
	call := func(command string) string {
		return `"cli":{"modes":{"interactive":{"command":"x"},"oneShot":{"command":"` + command +
			`"}},"prompt":{"type":"stdin"}}`
	}
	text := "{\"targets\":[\n" + strings.Join([]string{
		`{"id":"CLAUDE","override":true,` + call("x") + `},`,
		`{"id":"a","aliases":["ok","Codex"],` + call("x") + `},`,
		`{"id":"b"},`,
		`{"id":"c","inherits":"nobody"},`,
		`{"id":"d","inherits":"good"},`, // only a built-in one
		`{"id":"e",` + call("./evil") + `},`,
		`{"id":"f",` + call("../evil") + `},`,
		`{"id":"g",` + call("bin/evil") + `},`,
		`{"id":"good",` + call("x") + `}`,
	}, "\n") + "]}"
	list, err := custom.New(parse(t, text), known())
	f := fault.Of(err)
	if !errors.Is(err, fault.ConfigInvalid) || len(f.Problems) != 8 || f.Fix == "" {
		t.Fatalf("%v: %+v", err, f.Problems)
	}
	wants := []string{
		"2:7 there is an agent CLAUDE already", "3:27 there is an agent Codex already", "4:7 it needs cli, or inherits",
		"5:7 it needs cli", "6:7 it needs cli", "7: a command is a name", "8: a command is a name",
		"9: a command is a name",
	}
	for i, p := range f.Problems {
		at, message, _ := strings.Cut(wants[i], " ")
		if !strings.HasPrefix(p.Param, "/repo/agents/omniagent.config.json:"+at) ||
			!strings.HasPrefix(p.Message, message) {
			t.Errorf("%s %s, want %s", p.Param, p.Message, wants[i])
		}
	}
	if len(list) != 1 || list[0].Name() != "good" {
		t.Errorf("made %v", list)
	}
}

// TestCannotReadItsStream: nothing is known of the stream of such an agent.
func TestCannotReadItsStream(t *testing.T) {
	d := made(t, of(`{"type":"stdin"}`, flags))
	for _, o := range setting.Outputs() {
		if d.Decode(o) != nil {
			t.Errorf("%s is decoded", o)
		}
	}
	if f := d.Classify(agent.Exit{Code: 3}, nil); f == nil || f.Code != fault.Blocked {
		t.Errorf("%v", f)
	}
}

// TestUnsupportedSaysWhatToAdd: without a row for an approval a run cannot begin, and only the person's file can change
// that.
func TestUnsupportedSaysWhatToAdd(t *testing.T) {
	const add = "add prompt = [FLAGS], or [] if it needs none, to cli.flags.approval.values in its file; then " +
		"omniagent run --approval prompt starts it"
	for _, tt := range []struct{ flags, message, hint string }{
		{"", "mine has no approval default", add},
		{
			`,"flags":{"approval":{"values":{"yolo":[]}}}`, "mine has no approval default",
			add + "; as it is, --approval yolo does",
		},
	} {
		spec := agent.Spec{Temp: t.TempDir(), Terms: agent.Terms{Mode: setting.Default}}
		_, err := cli.TurnMind(made(t, of(`{"type":"stdin"}`, tt.flags)), spec, agent.Services{})
		if f := fault.Of(err); f == nil || f.Message != tt.message || f.Suggestion != tt.hint {
			t.Errorf("%+v", f)
		}
	}
}
