package cli_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/process"
)

func chosen[T any](v T, from setting.Origin) setting.Chosen[T] {
	return setting.Chosen[T]{Value: v, Origin: from}
}

func rowsOf(approval, sandbox agent.Cell) agent.Matrix {
	return agent.Matrix{Rows: []agent.Row{
		agent.Both(agent.Approval, "prompt", agent.Cell{
			Level: agent.Full, Args: []string{"--ask"}, Weak: []string{"-c", "ask=1"}, Env: []string{"A=1"},
		}),
		agent.Both(agent.Approval, "auto-edit", approval),
		agent.Both(agent.Sandbox, "workspace-write", sandbox),
		agent.Both(agent.Output, "text", agent.Cell{Level: agent.Full, Args: []string{"--text"}, Weak: []string{}}),
		agent.Both(agent.Model, "", agent.Cell{Level: agent.Full, Args: []string{"--model"}}),
		{Feature: agent.Web, Value: "on", OneShot: agent.Cell{
			Level: agent.Full, Args: []string{"--web"}, Needs: []string{"curl", "docker|podman"},
		}},
	}}
}

func TestTranslate(t *testing.T) {
	m := rowsOf(agent.Cell{Level: agent.Nearest, Args: []string{"--edit"}, Note: "files only"},
		agent.Cell{Level: agent.None, Note: "it has none"})
	has := agent.Machine{Has: func(p string) bool { return p == "curl" || p == "podman" }}
	hasNot := agent.Machine{Has: func(p string) bool { return p == "curl" }}
	tests := []struct {
		name     string
		shared   setting.Shared
		machine  agent.Machine
		mode     setting.Mode
		args     string
		warnings string
		policies string
	}{
		{
			"defaults are weak", setting.Defaults(), has, setting.OneShot, "-c ask=1", "",
			"approval=prompt default yes|sandbox=workspace-write default no|web=off default no",
		},
		{
			"typed is strong, and its losses are told",
			setting.Shared{
				Approval: chosen(setting.AutoEdit, setting.Typed), Sandbox: chosen(setting.WorkspaceWrite,
					setting.Typed),
				Output: chosen(setting.Text, setting.Typed),
				Model:  chosen("m", setting.Typed), Web: chosen(true, setting.Typed),
			},
			has, setting.OneShot, "--edit --text --model m --web",
			"nearest: --approval auto-edit becomes the closest that there is: files only|unsupported: --sandbox " +
				"workspace-write is ignored: it has none",
			"approval=auto-edit typed nearest|sandbox=workspace-write typed no|web=on typed yes",
		},
		{
			"configured is strong and silent, but for what nothing guards",
			setting.Shared{
				Approval: chosen(setting.AutoEdit, setting.Configured), Sandbox: chosen(setting.WorkspaceWrite,
					setting.Configured), Output: chosen(setting.JSON, setting.Configured),
			},
			has, setting.OneShot, "--edit",
			"unguarded: no sandbox holds what the agent does without asking: it has none",
			"approval=auto-edit configured nearest|sandbox=workspace-write configured no|web=off default no",
		},
		{
			"what it needs is not there",
			setting.Shared{
				Approval: chosen(setting.Prompt, setting.Typed),
				Web:      chosen(true, setting.Typed),
			},
			hasNot, setting.OneShot, "--ask",
			"unsupported: --web on is ignored: it needs docker or podman, not found in PATH",
			"approval=prompt typed yes|sandbox= default no|web=on typed no",
		},
		{
			"nothing is known of the machine",
			setting.Shared{Web: chosen(true, setting.Configured)},
			agent.Machine{},
			setting.OneShot, "", "", "approval= default no|sandbox= default no|web=on configured no",
		},
		{
			"not in this mode",
			setting.Shared{Web: chosen(true, setting.Typed), Model: chosen("m", setting.Unchosen)},
			has, setting.Interactive, "--model m", "unsupported: --web on is ignored",
			"approval= default no|sandbox= default no|web=on typed no",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := cli.Translate(m, agent.Spec{Mode: tt.mode, Shared: tt.shared, Machine: tt.machine})
			if err != nil {
				t.Fatal(err)
			}
			var warnings, policies []string
			for _, w := range got.Warnings {
				warnings = append(warnings, string(w.Kind)+": "+w.Message)
			}
			for _, p := range got.Policies {
				policies = append(policies, p.Feature+"="+p.Wanted+" "+p.Origin+" "+string(p.Enforced))
			}
			if args := strings.Join(got.Args, " "); args != tt.args {
				t.Errorf("args %s, want %s", args, tt.args)
			}
			if w := strings.Join(warnings, "|"); w != tt.warnings {
				t.Errorf("warnings %s\nwant %s", w, tt.warnings)
			}
			if p := strings.Join(policies, "|"); p != tt.policies {
				t.Errorf("policies %s\nwant %s", p, tt.policies)
			}
			if slices.Contains(got.Env, "A=1") != (tt.shared.Approval.Value == setting.Prompt) {
				t.Errorf("environment %q", got.Env)
			}
		})
	}
}

// TestModelOfThePassthrough: for every agent, a model that nobody typed gives way to one that the passthrough names; a
// typed one does not.
func TestModelOfThePassthrough(t *testing.T) {
	for _, d := range drivers() {
		if _, ok := d.(interface{ Matrix(string) agent.Matrix }); !ok {
			continue
		}
		for _, mode := range []setting.Mode{setting.OneShot, setting.Interactive} {
			for _, passed := range [][]string{
				{"--model", "p/theirs"},
				{"--model=p/theirs"},
				{"-m", "p/theirs"},
				{"-mp/theirs"},
				{"-m=p/theirs"},
				{"--x", "--model=a/b", "--model", "p/theirs"},
			} {
				for _, from := range []setting.Origin{setting.Unchosen, setting.Configured, setting.Typed} {
					s := agent.Spec{
						Mode: mode, Shared: setting.Defaults(), Passthrough: passed,
						Machine: agent.Machine{OS: "linux"}, Temp: t.TempDir(), Fresh: "f",
						Install: agent.Install{Path: "/x"},
					}
					s.Shared.Model = chosen("p/ours", from)
					l, _, err := d.Command(s)
					if err != nil {
						t.Fatal(err)
					}
					ours := slices.ContainsFunc(l.Args[:l.Translated],
						func(a string) bool { return strings.Contains(a, "p/ours") })
					if ours != (from == setting.Typed) {
						t.Errorf("%s, %s, %v before %q: %q", d.Name(), mode, from, passed, l.Args)
					}
					if !slices.Equal(l.Args[l.Translated:], passed) {
						t.Errorf("%s: the passthrough became %q", d.Name(), l.Args[l.Translated:])
					}
				}
			}
		}
		s := agent.Spec{
			Mode: setting.OneShot, Shared: setting.Defaults(), Passthrough: []string{"--", "--model"},
			Machine: agent.Machine{OS: "linux"}, Temp: t.TempDir(),
		}
		s.Shared.Model = chosen("p/ours", setting.Configured)
		if l, _, err := d.Command(s); err != nil || !slices.Contains(l.Args, "p/ours") {
			t.Errorf("%s: behind -- stands no flag: %q, %v", d.Name(), l.Args, err)
		}
	}
}

func TestPassed(t *testing.T) {
	tests := []struct {
		words []string
		value string
		ok    bool
	}{
		{nil, "", false},
		{[]string{"--flag", "v"}, "v", true},
		{[]string{"--flag=v"}, "v", true},
		{[]string{"--flag=v=w"}, "v=w", true},
		{[]string{"--flag="}, "", true},
		{[]string{"-f", "v"}, "v", true},
		{[]string{"-fv"}, "v", true},
		{[]string{"-f=v"}, "v", true},
		{[]string{"--flag"}, "", true},
		{[]string{"--flag", "a", "-f", "b", "--flag=c"}, "c", true},
		{[]string{"--flag=c", "--flag", "d"}, "d", true},
		{[]string{"--flags", "v"}, "", false},
		{[]string{"--flag2=v"}, "", false},
		{[]string{"-F", "v"}, "", false},
		{[]string{"flag", "=v"}, "", false},
		{[]string{"--", "--flag=v"}, "", false},
		{[]string{"-f", "a", "--", "-f", "b"}, "a", true},
		{[]string{"--x", "--flag"}, "", true},
	}
	for _, tt := range tests {
		value, ok := cli.PassedValue(tt.words, "--flag", "-f")
		if value != tt.value || ok != tt.ok || cli.Passed(tt.words, "--flag", "-f") != ok {
			t.Errorf("%q: %q, %v", tt.words, value, ok)
		}
	}
	if cli.Passed([]string{"--", "x"}, "--") || cli.Passed([]string{"-"}, "-f") {
		t.Error("a delimiter counts as a flag")
	}
}

func TestEnviron(t *testing.T) {
	tests := []struct{ base, set, unset, want string }{
		{"A=1 B=2", "", "", "A=1 B=2"},
		{"A=1 B=2 A=3", "A=4", "", "B=2 A=4"},
		{"A=1", "A=2 B=3 A=4", "", "B=3 A=4"}, // the first of several is the one that C programs read
		{"A=1", "A=2 A=2", "", "A=2"},
		{"A=1 B=2", "", "A", "B=2"},
		{"A=1", "A=2", "A", "A=2"},
		{"AB=1 =C:=x odd", "A=2", "", "AB=1 =C:=x odd A=2"},
		{"A=1=2", "B=", "", "A=1=2 B="},
	}
	for _, tt := range tests {
		base := strings.Fields(tt.base)
		got := cli.Environ(base, strings.Fields(tt.set), strings.Fields(tt.unset)...)
		if strings.Join(got, " ") != tt.want || !reflect.DeepEqual(base, strings.Fields(tt.base)) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
	if v, ok := process.Value([]string{"A=1", "AB=3", "A=2"}, "A"); v != "2" || !ok {
		t.Errorf("%q, %v", v, ok)
	}
	if v, ok := process.Value([]string{"AB=3"}, "A"); v != "" || ok {
		t.Errorf("%q, %v", v, ok)
	}
}

// TestWorkingDirectoryInPath: the directory where the agent works is as good as ".", however it is written; what lies
// below it is not.
func TestWorkingDirectoryInPath(t *testing.T) {
	root := tree{"repo/codex*": "", "repo/bin/codex*": "", "link": "->repo"}.grow(t)
	find := func(path, dir string) string {
		env := environ(path)
		env.Dir = dir
		in, err := drivers()[1].Locate(env)
		if err != nil {
			return hint(err)
		}
		return strings.TrimPrefix(in.Path, root)
	}
	const refused = "Passed over: the directory where the agent works, which is in PATH."
	for _, tt := range []struct{ path, dir, want string }{
		{root + "/repo", root + "/repo", refused},
		{root + "/repo/", root + "/repo", refused},
		{root + "/repo/../repo", root + "/repo", refused},
		{root + "/link", root + "/repo", refused},
		{root + "/repo", root + "/link", refused},
		{root + "/repo:" + root + "/repo/bin", root + "/repo", "/repo/bin/codex"},
		{root + "/repo", "", "/repo/codex"},
		{root + "/repo", root, "/repo/codex"},
		{root + "/repo", root + "/none", "/repo/codex"},
	} {
		if got := find(tt.path, tt.dir); got != tt.want {
			t.Errorf("PATH=%s in %s: %q", strings.ReplaceAll(tt.path, root, ""), strings.TrimPrefix(tt.dir, root), got)
		}
	}
}

// TestNamelessPackage: the package.json of a bundle has no name, and says nothing of an agent that is in no package.
func TestNamelessPackage(t *testing.T) {
	root := tree{"in/package.json": `{"version":"9.9.9"}`, "in/x*": ""}.grow(t)
	p := cli.Program{ID: "x", About: agent.About{Title: "X", Binary: "x"}}
	if in, err := p.Locate(environ(root + "/in")); err != nil || in.Version != "" {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestRepositoryInPath: its root is as good as ".", wherever in it the agent works. A home directory in git keeps its
// bin.
func TestRepositoryInPath(t *testing.T) {
	root := tree{"home/.git/HEAD": "", "home/codex*": "", "home/bin/codex*": "", "home/src/deep/x": ""}.grow(t)
	home := root + "/home"
	for _, dir := range []string{home, home + "/src", home + "/src/deep"} {
		env := environ(home + ":" + home + "/src/..:" + home + "/bin")
		env.Dir = dir
		if in, err := drivers()[1].Locate(env); err != nil || in.Path != home+"/bin/codex" {
			t.Errorf("in %s: %s, %v", dir, in.Path, err)
		}
		env = environ(home)
		env.Dir = dir
		if _, err := drivers()[1].Locate(env); err == nil || !strings.HasSuffix(hint(err), ", which is in PATH.") {
			t.Errorf("in %s: %v", dir, err)
		}
	}
}

// TestPathOfTheAgent: an interpreter is looked for in no directory that a repository fills. What is left out is told
// once.
func TestPathOfTheAgent(t *testing.T) {
	root := tree{"repo/.git/HEAD": "", "repo/bin/x": "", "repo/src/x": "", "bin/x": ""}.grow(t)
	repo := root + "/repo"
	for _, tt := range []struct{ path, want, without string }{
		{root + "/bin:/none", root + "/bin:/none", ""},
		{root + "/bin:" + repo + "/bin", root + "/bin:" + repo + "/bin", ""},
		{".:" + root + "/bin", root + "/bin", `"."`},
		{":" + root + "/bin:", root + "/bin", `""`},
		{"node_modules/.bin:" + root + "/bin::./x\x1b[1m", root + "/bin", `"node_modules/.bin", "", "./x\x1b[1m"`},
		{repo + ":" + root + "/bin:" + repo + "/src/", root + "/bin", `"` + repo + `", "` + repo + `/src/"`},
		{".", "/usr/bin:/bin", `"."`},
		{"", "/usr/bin:/bin", `""`},
	} {
		for _, d := range drivers() {
			l, warnings, err := d.Command(agent.Spec{
				Mode: setting.OneShot, Shared: setting.Defaults(), Dir: repo + "/src", Fresh: "f", Temp: root + "/temp",
				Env: []string{"HOME=" + root, "PATH=/wrong", "PATH=" + tt.path}, Machine: agent.Machine{OS: "linux"},
				Install: agent.Install{Path: "/bin/x"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := process.Value(l.Env, "PATH"); got != tt.want {
				t.Errorf("%s, PATH=%s: %s", d.Name(), tt.path, got)
			}
			var about []string
			for _, w := range warnings {
				if w.Flag == "PATH" {
					about = append(about, w.Value)
				}
			}
			if (tt.without == "") != (about == nil) || len(about) > 1 || about != nil && about[0] != tt.without {
				t.Errorf("%s, PATH=%s: %q", d.Name(), tt.path, about)
			}
		}
	}
}
