package claude_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/wire/claude"
)

func ours(flag string) (known, value bool) {
	return slices.Contains([]string{"--ours", "--dialect", "--provider", "--api-base", "--quiet"},
		flag), flag != "--quiet"
}

// TestArgs: command lines of Claude Code's hosts in our words.
func TestArgs(t *testing.T) {
	const stream = "--input-format=stream-json --output-format=stream-json"
	for _, c := range []struct{ in, want, ignored string }{
		{"-p hi", "--input-format=text --output-format=text --questions=none --prompt=hi", ""},
		{
			"--output-format stream-json --verbose --input-format stream-json --max-turns=3 --model=m1 " +
				"--permission-prompt-tool=stdio --permission-mode=default",
			"--input-format=stream-json --max-turns=3 --model=m1 --output-format=stream-json " +
				"--permission-mode=prompt --questions=host", "",
		},
		{
			"--output-format stream-json --verbose --input-format stream-json --setting-sources=",
			stream + " --questions=none", "",
		},
		{
			"--output-format=stream-json --input-format=stream-json --setting-sources=user,project",
			"--setting-sources=user --setting-sources=project " + stream + " --questions=none", "",
		},
		{
			"-p --permission-mode acceptEdits x",
			"--input-format=text --output-format=text --permission-mode=auto-edit --questions=none --prompt=x", "",
		},
		{
			"-p --permission-mode bypassPermissions x",
			"--allow-bypass=true --input-format=text --output-format=text --permission-mode=auto --questions=none " +
				"--prompt=x", "",
		},
		{
			"-p --dangerously-skip-permissions x",
			"--allow-bypass=true --input-format=text --output-format=text --permission-mode=auto --questions=none " +
				"--prompt=x", "",
		},
		{
			"-p --permission-mode plan --dangerously-skip-permissions x",
			"--allow-bypass=true --input-format=text --output-format=text --permission-mode=plan --questions=none " +
				"--prompt=x", "",
		},
		{
			"-p --dangerously-skip-permissions --permission-mode plan x",
			"--allow-bypass=true --input-format=text --output-format=text --permission-mode=plan --questions=none " +
				"--prompt=x", "",
		},
		{
			"-p --permission-mode dontAsk --permission-prompts none --permission-prompt-tool stdio x",
			"--input-format=text --output-format=text --permission-mode=dont-ask --questions=none --prompt=x", "",
		},
		{"-p x --allowedTools Read,Edit Bash(git *)", "", ""}, // replaced below
		{
			"--dialect claude --agent codex --provider openai --api-base http://h -p x",
			"--dialect claude --agent=codex --provider openai --api-base http://h --input-format=text " +
				"--output-format=text --questions=none --prompt=x", "",
		},
		{"-p -r abc x", "--input-format=text --output-format=text --questions=none --resume=abc --prompt=x", ""},
		{"-p -rabc x", "--input-format=text --output-format=text --questions=none --resume=abc --prompt=x", ""},
		{
			"-p -c --fork-session x",
			"--continue=true --fork-session=true --input-format=text --output-format=text --questions=none --prompt=x",
			"",
		},
		{
			"-p x --effort low --debug --betas a b",
			"--input-format=text --output-format=text --questions=none --prompt=x", "--effort --debug --betas",
		},
		{"-p x --tools ", "--input-format=text --output-format=text --questions=none --prompt=x", ""}, // replaced below
		{"-p -- -x", "--input-format=text --output-format=text --questions=none --prompt=-x", ""},
		{
			"--quiet -p --ours 1 x",
			"--quiet --ours 1 --input-format=text --output-format=text --questions=none --prompt=x", "",
		},
		{
			"-p x --max-budget-usd 0.5 --strict-mcp-config --include-partial-messages --replay-user-messages",
			"--include-partial-messages=true --input-format=text --max-budget-usd=0.5 --output-format=text " +
				"--questions=none --replay-user-messages=true --strict-mcp-config=true --prompt=x", "",
		},
		{
			"-p x --add-dir a b --mcp-config c.json d.json",
			"--add-dir=a --add-dir=b --mcp-config=c.json --mcp-config=d.json --input-format=text " +
				"--output-format=text --questions=none --prompt=x", "",
		},
	} {
		argv, want := strings.Fields(c.in), c.want
		switch {
		case strings.Contains(c.in, "Bash(git"):
			argv, want = []string{"-p", "x", "--allowedTools", "Read,Edit", "Bash(git log:*, x) Glob"},
				"--allowed-tools=Read --allowed-tools=Edit --allowed-tools=Bash(git log:*, x) --allowed-tools=Glob "+
					"--input-format=text --output-format=text --questions=none --prompt=x"
		case strings.HasSuffix(c.in, "--tools "):
			argv, want = []string{"-p", "x", "--tools="},
				"--tools= --input-format=text --output-format=text --questions=none --prompt=x"
		}
		args, ignored, err := claude.Args(argv, ours)
		if err != nil || strings.Join(args, " ") != want || strings.Join(ignored, " ") != c.ignored {
			t.Errorf("%q: %v\n%s\n%s\n%q", argv, err, strings.Join(args, " "), want, ignored)
		}
	}
}

// TestRefusedArgs: what limits and cannot be kept ends the call, and is named.
func TestRefusedArgs(t *testing.T) {
	for in, want := range map[string]string{
		"-p x --permission-mode auto":             "--permission-mode auto is refused",
		"-p x --max-turns 0":                      "--max-turns 0 is refused",
		"-p x --max-budget-usd 0.00":              "--max-budget-usd 0.00 is refused",
		"-p x --max-turns 1 --max-turns=5":        "--max-turns is refused: it is given twice",
		"-p x --settings a --settings b":          "--settings is refused: it is given twice",
		"-p x --permission-mode bogus":            "the modes are default",
		"-p x --permission-prompt-tool mcp__a__b": "only stdio is supported",
		"-p x --permission-prompts bogus":         "must be host or none",
		"-p x --plugin-dir y":                     "--plugin-dir is refused",
		"-p x --managed-settings {}":              "--managed-settings is refused",
		"-p x --restricted":                       "--restricted is refused",
		"-p x --resume-session-at y":              "--resume-session-at is refused",
		"-p x --agent codex --agent reviewer":     "--agent reviewer is refused",
		"-p x --resume":                           "--resume needs the id",
		"-p x y":                                  `"y" is one argument too many`,
		"--input-format stream-json x":            `"x" is one too many`,
		"-p x --model":                            "--model needs a value",
		"-p x --allowedTools":                     "--allowedTools needs a value",
		"-p=1 x":                                  "-p takes no value",
		"-p x --nosuch=1":                         "--nosuch is refused: neither",
		"-p x --worktree":                         "--worktree is refused",
	} {
		if args, _, err := claude.Args(strings.Fields(in), ours); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q %v", in, args, err)
		}
	}
}

// TestFlags: the table has each name once, and says of what is refused why.
func TestFlags(t *testing.T) {
	names := map[string]bool{}
	for _, f := range claude.Flags() {
		if names[f.Name] {
			t.Errorf("%s is there twice", f.Name)
		}
		names[f.Name] = true
		if f.Fate == claude.Refused && f.Reason == "" {
			t.Errorf("%v is refused without a reason", f.Name)
		}
	}
	table, err := os.ReadFile("flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	understood := regexp.MustCompile(`^(#.*` +
		`|(honoured (nothing|one|maybe|several) (-|same|[a-z-]+(=[a-z]+)?):( --?[A-Za-z-]+)+` +
		`|ignored (nothing|one|maybe|several) -:( --?[a-z-]+)+` +
		`|refused (nothing|one|maybe|several) -:( --?[a-z-]+)+: .+))\n$`)
	for line := range strings.Lines(string(table)) {
		if !understood.MatchString(line) {
			t.Errorf("%q", line)
		}
	}
	for argv, want := range map[string]bool{
		"--dialect claude": true, "--dialect=claude -p": true,
		"--dialect yume": false, "-- --dialect claude": false, "-p x": false,
	} {
		if claude.Speaks(strings.Fields(argv)) != want {
			t.Errorf("%s: not %v", argv, want)
		}
	}
}

func TestSettings(t *testing.T) {
	s, err := claude.ReadSettings("x", []byte(`{"$schema":"x","permissions":{"allow":["Bash(ls:*)"],"ask":["Write"],"deny":["Read(.env)"],"additionalDirectories":["../lib"],"defaultMode":"acceptEdits","disableBypassPermissionsMode":"disable"},
		"sandbox":{"enabled":true,"network":{"allowedDomains":["a.example"]},"excludedCommands":["docker"]},"model":"m","env":{"A":"b"},"hooks":{"Stop":[{}],"PreToolUse":[]}}`))
	if err != nil || strings.TrimSpace(fmt.Sprintln(s.Allow, s.Ask, s.Deny, s.Dirs, s.Mode.Word, s.NoBypass, s.Walls,
		s.Hosts,
		s.Model)) != "[Bash(ls:*)] [Write] [Read(.env)] [../lib] acceptEdits true true [a.example] m" {
		t.Errorf("%+v %v", s, err)
	}
	for _, name := range []string{"$schema", "env", "sandbox.excludedCommands", "hooks.Stop"} {
		if !slices.Contains(s.Ignored, name) {
			t.Errorf("%s is passed over without a word", name)
		}
	}
	if strict := s.Stricter(); strict.Allow != nil || strict.Dirs != nil || strict.Mode != nil || strict.Hosts != nil ||
		fmt.Sprint(strict.Deny, strict.Ask) != "[Read(.env)] [Write]" || !strict.NoBypass || !strict.Walls {
		t.Errorf("%+v", strict)
	}
	for body, want := range map[string]string{
		`[]`:                                                    "must be an object",
		`{"forbidEverything":true}`:                             "forbidEverything is unknown here",
		`{"permissions":{"only":[]}, "x":1}`:                    "x is unknown here",
		`{"permissions":{"only":["a"]}}`:                        "permissions.only is unknown here",
		`{"permissions":{"deny":"Bash"}}`:                       "permissions.deny is invalid",
		`{"permissions":{"defaultMode":"bogus"}}`:               "defaultMode bogus",
		`{"sandbox":{"filesystem":{"denyRead":["~"]}}}`:         "sandbox.filesystem is unknown here",
		`{"sandbox":{"enabled":true,"failIfUnavailable":true}}`: "failIfUnavailable would not be kept",
		`{"sandbox":{"network":{"allowedDomains":["a"]}}}`:      "limits nothing where",
		`{"sandbox":{"network":{"deniedDomains":["a"]}}}`:       "deniedDomains is unknown",
		`{"hooks":{"PreToolUse":[{"hooks":[]}]}}`:               "hooks.PreToolUse may forbid something",
		`{"disabledMcpjsonServers":["a"]}`:                      "disabledMcpjsonServers is unknown here",
	} {
		if _, err := claude.ReadSettings("x", []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
	ours, without := claude.OurRules([]string{
		"Agent", "Agent(x)", "CronCreate", "Skill(a)", "Bash(ls:*)",
		"AskUserQuestion",
	}, func(rule string) bool { return rule == "AskUserQuestion" })
	if fmt.Sprint(ours, without) != "[Task Task(x) Bash(ls:*) AskUserQuestion] [CronCreate Skill(a)]" {
		t.Error(ours, without)
	}
}

// FuzzArgs: no command line makes it panic; a limit that is typed is in what comes out, or the call is refused.
func FuzzArgs(f *testing.F) {
	f.Add("-p x --disallowedTools Bash(rm:*),Write --permission-mode plan")
	f.Add("--output-format stream-json --verbose --input-format stream-json --max-turns=3")
	f.Fuzz(func(t *testing.T, line string) {
		argv := append(strings.Fields(line), "--disallowedTools=Canary")
		if slices.Contains(argv, "--") {
			return
		}
		args, _, err := claude.Args(argv, ours)
		// as the value of the flag before
		swallowed := len(argv) > 1 && !strings.Contains(argv[len(argv)-2], "=") &&
			strings.HasPrefix(argv[len(argv)-2], "-")
		if err == nil && !swallowed && !slices.Contains(args, "--disallowed-tools=Canary") {
			t.Errorf("%q: %q", argv, args)
		}
	})
}

// TestPage: the page for users names every flag, and says what becomes of it.
func TestPage(t *testing.T) {
	data, err := os.ReadFile("../../../docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(data), "\nHonoured:\n")
	honoured, page, _ := strings.Cut(page, "\nRefused,")
	refused, page, _ := strings.Cut(page, "\nIgnored,")
	ignored, _, _ := strings.Cut(page, "\n\n")
	for _, f := range claude.Flags() {
		part := map[claude.Fate]string{
			claude.Honoured: honoured, claude.Refused: refused,
			claude.Ignored: ignored,
		}[f.Fate]
		if !strings.Contains(part, "`"+f.Name+"`") {
			t.Errorf("%s is %s, and the page does not say so", f.Name, f.Fate)
		}
	}
	for _, m := range claude.Modes() {
		if !strings.Contains(string(data), "| `"+m.Word+"` | ") &&
			!strings.Contains(string(data), "`"+m.Word+"` | `"+m.Flag+"`") &&
			!strings.Contains(string(data), "`"+m.Word+"`, `manual` | `"+m.Flag+"`") {
			t.Errorf("the mode %s is not on the page", m.Word)
		}
	}
}
