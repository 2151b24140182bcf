//go:build unix

package shim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadInput: nothing is started, the exit code is 2, one line says what is wrong and a hint what to type instead.
func TestBadInput(t *testing.T) {
	tests := []struct {
		name  string
		args  string
		stdin string
		want  []string // in stderr
	}{
		{"unknown flag", "--promt x --agent codex", "", []string{"there is no flag --promt", "--prompt"}},
		{"unknown short flag", "-x --agent codex", "", []string{"there is no flag -x"}},
		{
			"approval", "--agent codex -p q --approval atuo-edit", "",
			[]string{`"atuo-edit"`, "deny, ask, plan, prompt, default, auto-edit, yolo", "hint: --approval=auto-edit"},
		},
		{
			"approvals", "--agent codex -p q --yolo --read-only", "",
			[]string{"--yolo and --read-only cannot be combined"},
		},
		{
			"approvals by word", "--agent codex -p q --approval plan --permission-mode auto", "",
			[]string{"--approval plan and --permission-mode yolo cannot be combined"},
		},
		{"too strict", "--agent codex -p q --approval deny", "", []string{
			"codex cannot hold --approval deny",
			"what only reads runs", "codex can: --approval plan",
		}},
		{
			"not strict any more", "--agent claude -p q --read-only -- --permission-mode acceptEdits", "",
			[]string{"claude cannot hold --approval plan", "decides"},
		},
		{"sandbox", "--agent codex -p q --sandbox on", "", []string{`"on"`, "workspace-write, off"}},
		{"output", "--agent codex -p q --output=xml", "", []string{`"xml"`, "text, json, stream-json"}},
		{"web", "--agent codex -p q --web maybe", "", []string{`"maybe"`, "on, off, true, false, 1, 0"}},
		{"agent", "--agent codx -p q", "", []string{`"codx"`, "hint: omniagent --agent codex"}},
		{"delimiter", "-p q -- --x", "", []string{"-- needs --agent"}},
		{"no agent", "-p q", "", []string{
			"installed here: claude, codex", "omniagent --agent claude",
			"config set agent claude --global",
		}},
		{"empty prompt", "--agent codex -p=", "", []string{"the prompt is empty"}},
		{"empty pipe", "--agent codex", "", []string{"the prompt on standard input is empty"}},
		{"blank pipe", "--agent codex", " \n\t ", []string{"the prompt on standard input is empty"}},
		{"no value", "--agent codex --model", "", []string{"--model needs a value"}},
		{"no prompt", "--agent codex -p", "", []string{"--prompt needs a value"}},
		{"prompt that is a flag", "--agent codex -p --yolo", "", []string{"--prompt needs a value", "--prompt=--yolo"}},
		{
			"value that is a flag", "--agent codex --model -p x", "",
			[]string{"--model needs a value, and -p begins with a dash"},
		},
		{"positional", "--agent codex fix", "", []string{`no place for "fix"`, `-p "fix"`}},
		{"directory", "--agent codex -p q --cwd nowhere", "", []string{"there is no directory", "nowhere"}},
		{"directory that is a file", "--agent codex -p q --cwd file", "", []string{"is not a directory"}},
		{"timeout", "--agent codex -p q --timeout 5", "", []string{`--timeout is "5"`, "with its unit"}},
		{"negative timeout", "--agent codex -p q --timeout=-5s", "", []string{"--timeout"}},
		{"report", "--agent codex -p q --report no/where.json", "", []string{"--report: there is no directory"}},
		{"switch", "--agent codex -p q --yolo=maybe", "", []string{`--yolo is "maybe"`}},
		{
			"schema with output", "--agent codex -p q --output-schema {} --json", "",
			[]string{"--output-schema and --json exclude each other"},
		},
		{"invalid schema", `--agent codex -p q --output-schema {"type":7}`, "", []string{"not a JSON schema"}},
		{"schema that is a list", `--agent codex -p q --output-schema []`, "", []string{"not a JSON schema", "object"}},
		{"schema that is torn", `--agent codex -p q --output-schema {`, "", []string{"not a JSON schema"}},
		{"schema that is missing", "--agent codex -p q --output-schema nowhere.json", "", []string{"nowhere.json"}},
		{"retries", "--agent codex -p q --output-schema {} --output-schema-retries 11", "", []string{"from 0 to 10"}},
		{"retries alone", "--agent codex -p q --output-schema-retries 1", "", []string{"needs --output-schema"}},
		{"flag of the commands", "--no-config", "do it", []string{"there is no flag --no-config"}},
		{"flag of the commands, quiet", "--agent codex -p q --quiet", "", []string{"there is no flag --quiet"}},
		{"a command's name", "--agent codex status", "", []string{`no place for "status"`}},
		{
			"a command's name behind a prompt", "-p q agents list", "",
			[]string{`no place for "agents"`, `-p "q agents"`},
		},
		{
			"no word", "--agent codex -p q --approval", "",
			[]string{"--approval needs a value", "hint: --approval=deny, or"},
		},
		{
			"a flag for a word", "--agent codex -p q --sandbox --yolo", "",
			[]string{"hint: --sandbox=workspace-write, or"},
		},
		{"trace", "--agent codex -p q --trace-translate=foo", "", []string{"only, true, false"}},
		{
			"trace with a blank", "--agent codex -p q --trace-translate only", "",
			[]string{"hint: --trace-translate=only"},
		},
		{"script with a blank", "--agent codex -p q --rehearse one.json", "", []string{"hint: --rehearse=one.json"}},
		{"switch with a word", "--agent codex -p q --strict true", "", []string{"hint: --strict=true"}},
		{"a flag for an id", "--agent codex -p q --resume --strange", "", []string{"hint: --resume=ID"}},
		{"script without a name", "--agent codex -p q --rehearse=", "", []string{"--rehearse= needs a file"}},
		{"script", "--agent codex -p q --rehearse=nowhere", "", []string{"--rehearse"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.file("file", "")
			r := w.run(strings.NewReader(tt.stdin), strings.Fields(tt.args)...)
			if r.code != 2 || r.stdout != "" {
				t.Errorf("exit code %d, stdout %q", r.code, r.stdout)
			}
			for _, s := range tt.want {
				if !strings.Contains(r.stderr, s) {
					t.Errorf("stderr lacks %q:\n%s", s, r.stderr)
				}
			}
			if lines := strings.Split(strings.TrimSpace(r.stderr), "\n"); !strings.HasPrefix(lines[0], "omniagent: ") ||
				len(lines) < 2 || !strings.HasPrefix(lines[1], "hint: ") {
				t.Errorf("not one line and a hint:\n%s", r.stderr)
			}
			if calls := w.calls(); len(calls) != 0 {
				t.Errorf("an agent was started: %+v", calls)
			}
		})
	}
}

// TestTakenBack: of a switch that is repeated the last counts, against the configuration as well.
func TestTakenBack(t *testing.T) {
	const loose = "danger-full-access"
	for _, row := range []struct {
		configured, args string
		loose            bool
	}{
		{"", "--yolo", true},
		{"", "--yolo --yolo=false", false},
		{"", "--yolo=false --yolo", true},
		{"", "--approval yolo --yolo=false", false},
		{"", "--yolo --auto-edit=false", true},
		{"yolo", "", true},
		{"yolo", "--yolo=false", false},
		{"yolo", "--auto-edit=false", true},
		{"yolo", "--yolo=false --yolo", true},
	} {
		w := newWorld(t)
		if row.configured != "" {
			if err := os.MkdirAll(w.home+"/.config/omniagent", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.home+"/.config/omniagent/config.toml",
				[]byte("[shim]\napproval = \""+row.configured+"\"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r := w.run(nil, append([]string{"--agent", "codex", "-p", "q"}, strings.Fields(row.args)...)...)
		calls := w.calls()
		if r.code != 0 || len(calls) != 1 {
			t.Fatalf("%+v: exit code %d: %s", row, r.code, r.stderr)
		}
		if got := strings.Contains(strings.Join(calls[0].Args, " "), loose); got != row.loose {
			t.Errorf("%+v: %q", row, calls[0].Args)
		}
	}
}

// TestAccepted: spellings that mean what they say.
func TestAccepted(t *testing.T) {
	for _, args := range []string{
		"--agent claude -phello", "--agent claude -p=hello", "--agent=claude --prompt=hello",
		"--agent CLAUDE --prompt hello",
		"--agent claude -p hello --web", "--agent claude --web -p hello", "--agent claude --web on -p hello",
		"--agent claude -mgpt -p hello",
		"--agent claude -p hello --approval YOLO", "--agent claude -p hello --auto-edit=false",
		"--agent claude -p hello --timeout 1h",
		"--agent claude -p hello --agents-dir=agents/..",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.file("agents/readme", "")
			r := w.run(nil, strings.Fields(args)...)
			calls := w.calls()
			if r.code != 0 || len(calls) != 1 {
				t.Fatalf("exit code %d, %d calls: %s", r.code, len(calls), r.stderr)
			}
			if calls[0].Stdin != "hello" {
				t.Errorf("the agent read %q", calls[0].Stdin)
			}
			for _, a := range calls[0].Args {
				if strings.Contains(a, "hello") {
					t.Errorf("the prompt stands in an argument: %q", calls[0].Args)
				}
			}
		})
	}
}

// TestPromptThatLooksLikeFlags goes through as it is.
func TestPromptThatLooksLikeFlags(t *testing.T) {
	for _, prompt := range []string{"-x", "--help-me", "--", "- a\n- b", "ü\x00\xff", strings.Repeat("long ", 30_000)} {
		w := newWorld(t)
		arg := []string{"--agent", "claude", "--prompt=" + prompt}
		if strings.ContainsRune(prompt, 0) {
			prompt = strings.ReplaceAll(prompt, "\x00", "")
			arg[2] = "--prompt=" + prompt
		}
		if len(prompt) > 100_000 { // longer than one argument may be
			r := w.run(strings.NewReader(prompt), "--agent", "claude")
			if r.code != 0 {
				t.Fatal(r)
			}
		} else if r := w.run(nil, arg...); r.code != 0 {
			t.Fatalf("%q: %+v", prompt, r)
		}
		if calls := w.calls(); len(calls) != 1 || calls[0].Stdin != strings.ToValidUTF8(prompt, "\ufffd") {
			t.Errorf("%.40q: %d calls", prompt, len(calls))
		}
	}
}

func TestBareCallWithoutAnything(t *testing.T) {
	w := newWorld(t)
	if r := w.run(nil); r.code != 0 || !strings.Contains(r.stdout, `"ok":true`) || len(w.calls()) != 0 {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{
		{"--help"},
		{"-h"},
		{"--agent", "codex", "--help"},
		{"--version"},
		{"-V"},
		{"-p", "x", "--version"},
	} {
		if r := w.run(nil, args...); r.code != 0 || r.stdout == "" || len(w.calls()) != 0 {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestNotInstalled(t *testing.T) {
	w := newWorld(t, "codex")
	r := w.run(nil, "--agent", "codex", "-p", "q")
	if r.code != 1 || !strings.Contains(r.stderr, "hint: npm install -g @openai/codex@") {
		t.Errorf("%+v", r)
	}
}

// TestOrderOfChoice: the flag, the variable, the file of the agents directory, the configuration.
func TestOrderOfChoice(t *testing.T) {
	w := newWorld(t)
	if err := os.MkdirAll(filepath.Join(w.home, ".config/omniagent"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(w.home, ".config/omniagent/config.toml")
	if err := os.WriteFile(config, []byte("agent = \"opencode\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	expect := func(name string, args ...string) string {
		t.Helper()
		before := len(w.calls())
		r := w.run(nil, append(args, "-p", "q")...)
		calls := w.calls()
		if r.code != 0 || len(calls) != before+1 || calls[before].Agent != name {
			t.Fatalf("want %s, got %+v, %d calls", name, r, len(calls))
		}
		return r.stderr
	}
	expect("opencode")
	w.file("agents/omniagent.config.ts", "import x from 'y';\nexport default { defaultAgent: 'gemini' } satisfies X;\n")
	if said := expect("gemini"); !strings.Contains(said, "using gemini, the default of agents/omniagent.config.ts") {
		t.Errorf("not announced: %s", said)
	}
	w.env = []string{"OMNIAGENT_AGENT=copilot"}
	expect("copilot")
	expect("claude", "--agent", "claude")
	if err := os.WriteFile(config, []byte("agent = \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := w.run(nil, "--agent", "claude", "-p", "q")
	if r.code != 2 || !strings.Contains(r.stderr, "config.toml:1:") {
		t.Errorf("torn configuration: %+v", r)
	}
}

// TestRepositoryCannotDefineAgents until its file is trusted.
func TestRepositoryCannotDefineAgents(t *testing.T) {
	w := newWorld(t)
	w.file("agents/omniagent.config.json",
		`{"targets":[{"id":"mine","cli":{"prompt":{"type":"stdin"},"modes":{"interactive":{"command":"`+w.root+
			`/evil"},"oneShot":{"command":"`+w.root+`/evil"}}}}]}`)
	evil := w.file("evil", "#!/bin/sh\necho evil > "+w.root+"/ran\n")
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	r := w.run(nil, "--agent", "mine", "-p", "q")
	if r.code != 2 || !strings.Contains(r.stderr, "not trusted") {
		t.Errorf("%+v", r)
	}
	if r = w.run(nil, "--agent", "claude", "-p", "q"); r.code != 0 || !strings.Contains(r.stderr, "ignored") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(w.root + "/ran"); err == nil {
		t.Error("the repository's program ran")
	}
	if r = w.run(nil, "trust", "agents/omniagent.config.json"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	// The definition is trusted. The program that it names lies in the repository, and may be another tomorrow.
	if r = w.run(nil, "--agent", "mine", "-p", "q"); r.code != 2 ||
		!strings.Contains(r.stderr, "--allow-workspace-agent") {
		t.Errorf("%+v", r)
	}
	if r = w.run(nil, "--agent", "mine", "-p", "q", "--allow-workspace-agent"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(w.root + "/ran"); err != nil {
		t.Error("the trusted program did not run")
	}
}

func TestTraceAndReport(t *testing.T) {
	w := newWorld(t)
	w.env = []string{"MY_SECRET_TOKEN=abc"}
	r := w.run(nil, "--agent", "claude", "-p", "the prompt", "--trace-translate=only", "--", "--extra")
	line, ok := strings.CutPrefix(r.stderr, "OA_TRANSLATION=")
	if r.code != 0 || !ok || len(w.calls()) != 0 || strings.Count(r.stderr, "\n") != 1 ||
		strings.Contains(line, "the prompt") {
		t.Fatalf("%+v", r)
	}
	var trace map[string]any
	if err := json.Unmarshal([]byte(line), &trace); err != nil || trace["agent"] != "claude" ||
		trace["mode"] != "one-shot" {
		t.Errorf("%v %v", trace, err)
	}
	w.behave.Exits = []int{7}
	r = w.run(nil, "--agent", "claude", "-p", "the prompt", "--trace-translate", "--report", "out.json")
	if r.code != 1 || len(w.calls()) != 1 {
		t.Fatalf("%+v", r)
	}
	data, err := os.ReadFile(filepath.Join(w.root, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Agent     string
		ExitCode  int `json:"exit_code"`
		AgentExit int `json:"agent_exit_code"`
		Argv      []string
	}
	if err := json.Unmarshal(data, &report); err != nil || report.Agent != "claude" || report.ExitCode != 1 ||
		report.AgentExit != 7 || report.Argv[0] != "claude" {
		t.Errorf("%s %v", data, err)
	}
	if strings.Contains(string(data), "the prompt") {
		t.Error("the prompt is in the report")
	}
}

// TestStrict: what would be ignored is an error.
func TestStrict(t *testing.T) {
	w := newWorld(t)
	r := w.run(nil, "--agent", "opencode", "-p", "q", "--sandbox", "workspace-write")
	if r.code != 0 || !strings.Contains(r.stderr, "warning: opencode: --sandbox workspace-write is ignored") {
		t.Errorf("%+v", r)
	}
	r = w.run(nil, "--agent", "opencode", "-p", "q", "--sandbox", "workspace-write", "--strict")
	if r.code != 2 || len(w.calls()) != 1 {
		t.Errorf("%+v", r)
	}
}
