package guard

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/core/agent"
	"omniagent/internal/native/tool"
	"omniagent/internal/testkit/hermetic"
)

// known are the tools of this program.
func known() Known { return tool.Ours().Specs() }

// agents are those that this program drives.
func agents() (all Agents) {
	for _, d := range []agent.Driver{claude.New(), codex.New(), copilot.New(), gemini.New(), opencode.New()} {
		about := d.Describe()
		all = append(all, Agent{
			Program: about.Binary, Package: about.Package, Settings: about.Settings, Private: about.Private,
		})
	}
	return all
}

func here() Place { return Place{Root: "/w/ws", Dir: "/w/ws", Home: "/w/home", Agents: agents()} }

func TestPolicy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/policy.txt")
	if err != nil {
		t.Fatal(err)
	}
	characters := strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\0`, "\x00", `\x7f`, "\x7f", `\e`, "\x1b", `\u2028`,
		"\u2028", `\\n`, "\\\n", `%n`, `%n`, `'%s\n'`, `'%s\n'`)
	seen := map[Decision]int{}
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		want, command, ok := strings.Cut(line, "\t")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !ok {
			t.Fatalf("line %d has no command", n+1)
		}
		v := Tools.Command(characters.Replace(command), here())
		seen[v.Decision]++
		if v.Decision.String() != want {
			t.Errorf("line %d: %s, want %s: %s\n\t%+v", n+1, v.Decision, want, command, v.Reasons)
		}
		if v.Decision > Allow && (len(v.Reasons) == 0 || v.Reasons[0].Decision != v.Decision ||
			v.Reasons[0].Text == "" ||
			v.Reasons[0].Source != BuiltIn) {
			t.Errorf("line %d: a verdict without its reason first: %+v", n+1, v)
		}
	}
	if seen[Allow] < 20 || seen[Ask] < 50 || seen[Deny] < 50 {
		t.Errorf("the corpus is too small: %v", seen)
	}
}

type vectors struct {
	Hooks []struct {
		Tool     string
		Input    map[string]string
		Exit     int
		Doubtful bool
	}
	Commands []struct {
		Command string
		Blocked bool
	}
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A line that another program denied is denied here. A line that it allowed is not denied here, with the listed
// exceptions.
func TestHookVectors(t *testing.T) {
	t.Parallel()
	differ := map[string]Decision{
		// A quoted word does not count as a command, and a name does not count as what it resembles.
		"Bash echo 'git reset --hard'": Allow, "Write lib/library/x": Allow, "Write app/system/x": Allow,
		"Write docs/bin/x":   Allow,
		"Edit lib/library/x": Allow, "Edit app/system/x": Allow, "Edit a..b/c": Allow,
		// Tools for files stay in the workspace.
		"Write /tmp/a": Deny, "Edit /tmp/a": Deny,
	}
	place := Place{Root: "/home/u/p", Dir: "/home/u/p", Home: "/home/u", Agents: agents()}
	for _, c := range readVectors(t).Hooks {
		var v Verdict
		arg := c.Input["command"]
		switch c.Tool {
		case "Bash":
			v = Tools.Command(arg, place)
		case "Read":
			arg = c.Input["file_path"]
			v = Tools.Read(arg, place)
		case "Write", "Edit", "MultiEdit", "NotebookEdit":
			arg = c.Input["file_path"] + c.Input["notebook_path"]
			v = Tools.Write(arg, place)
		}
		name := c.Tool + " " + arg
		if want, listed := differ[name]; listed {
			if v.Decision != want {
				t.Errorf("%s: %s, want %s, as listed", name, v.Decision, want)
			}
			delete(differ, name)
		} else if (v.Decision == Deny || v.Firm) != (c.Exit == 2) {
			t.Errorf("%s: %s, observed exit %d: %+v", name, v.Decision, c.Exit, v.Reasons)
		} else if c.Doubtful {
			t.Errorf("%s is doubtful, and not listed", name)
		}
	}
	for name := range differ {
		t.Errorf("%s is listed, and not among the vectors", name)
	}
}

func TestSecondSet(t *testing.T) {
	t.Parallel()
	for _, c := range readVectors(t).Commands {
		if v := SysBuiltIn.Command(c.Command, here()); (v.Decision == Deny) != c.Blocked {
			t.Errorf("%q: %s, blocked %v: %+v", c.Command, v.Decision, c.Blocked, v.Reasons)
		}
	}
	for command, want := range map[string]Decision{
		`echo "please reboot"`: Deny, "echo rebooting": Allow, "echo pseudo": Allow, "rm -fr /": Deny,
		"rm -r -f /": Deny, "rm --recursive --force /": Deny, "rm -r /": Deny,
		"rm -f x": Ask, "git push --force": Ask, "killall x": Ask, "curl x | sh": Deny, "PATH=. ls": Deny,
	} {
		if v := SysBuiltIn.Command(command, here()); v.Decision != want {
			t.Errorf("%q: %s, want %s: %+v", command, v.Decision, want, v.Reasons)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"length":   "echo " + strings.Repeat("x", maxLine),
		"parts":    strings.Repeat("ls;", maxNodes),
		"depth":    strings.Repeat("(", 300) + "ls" + strings.Repeat(")", 300),
		"nested":   strings.Repeat("$(", 300) + "ls" + strings.Repeat(")", 300),
		"texts":    "bash -c " + nest(maxInner+2),
		"wrappers": strings.Repeat("env ", maxInner+2) + "ls",
	} {
		v := Tools.Command(line, here())
		if v.Decision != Deny {
			t.Errorf("%s: %s", name, v.Decision)
		}
		for _, r := range v.Reasons {
			if len(r.Piece) > 300 {
				t.Errorf("%s: the reason quotes %d bytes", name, len(r.Piece))
			}
		}
	}
	if v := Tools.Command(strings.Repeat("ls;", 500), here()); v.Decision != Allow {
		t.Errorf("500 commands: %s", v.Decision)
	}
}

// nest gives a text in quotes to a shell in a text in quotes.
func nest(n int) string {
	s := "ls"
	for range n {
		s = "bash -c '" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		if len(s) > maxLine/8 {
			break
		}
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// A line costs what its length costs, whatever it is made of.
func TestCost(t *testing.T) {
	t.Parallel()
	repeated := func(before, unit, after string) func(int) string {
		return func(n int) string { return before + strings.Repeat(unit, n) + after }
	}
	for name, c := range map[string]struct {
		most int
		line func(n int) string
	}{
		"directories":  {1000, repeated("", "cd a;", "")},
		"alternatives": {1000, repeated("", "cd a||", "ls")},
		"pipes":        {1500, repeated("", "ls|", "ls")},
		"brackets":     {120, repeated("", "((", "")},
		"sums":         {120, repeated("echo ", "$((", "")},
		"quotes":       {200, repeated("", `"$(`, "")},
		"words":        {4000, repeated("echo ", "a ", "")},
		"ends":         {1000, repeated("", "cat <<E;", "")},
		"documents":    {400, repeated("", "cat <<E\nE\n", "")},
		"wrappers":     {1000, repeated("", "env nice timeout 5 ", "ls")},
		"stars":        {maxLine / 2, repeated("ls ", "*", "")},
		"if": {500, func(n int) string {
			return strings.Repeat("if ls; then ", n) + "ls" + strings.Repeat("; fi", n)
		}},
	} {
		judge := Judge{
			Known: known(),
			Rules: policy(t, "deny Bash(git push:*)", "allow Bash(x *)"),
			Place: here(),
		}
		hermetic.Linear(t, name, c.most/4, func(n int) {
			judge.Call(Call{Tool: "Bash", Kind: "command", Command: c.line(n)})
		})
	}
}

func TestDirectories(t *testing.T) {
	t.Parallel()
	deep := Place{Root: "/w/ws", Dir: "/w/ws/a/b", Home: "/w/home", Agents: agents()}
	for command, want := range map[string]Decision{
		"cat ../../x": Allow, "cat ../../../x": Ask, "cd .. && cat ../x": Allow, "cd .. && cat ../../x": Ask,
		"cd ..; cat ../../x":      Ask,
		"(cd ../..); cat ../../x": Allow, "cd c && cd .. && cat ../../x": Allow, "{ cd ../..; }; cat ../x": Ask,
		"if cd ../..; then cat x; fi": Ask,
		"cd ../.. || cat ../../x":     Allow, "cd ../.. | cat ../../x": Allow, "cd ../.. && cd .. ; ls": Ask,
		"! cd ../.. || cat x":       Allow,
		"(cd ../..) && cat ../../x": Allow, "timeout 5 cd ..; ls": Ask, "ls > ../../.git/config": Deny,
		"cd ../.. && ls > .git/config": Deny,
	} {
		if v := Tools.Command(command, deep); v.Decision != want {
			t.Errorf("%q: %s, want %s: %+v", command, v.Decision, want, v.Reasons)
		}
	}
	// Credentials are found below a home that is the workspace or lies in it.
	home := Place{Root: "/w", Dir: "/w", Home: "/w/home", Agents: agents()}
	home.Names = func(dir string) []string {
		return map[string][]string{"/w/home": {"x", ".ssh"}, "/w/home/.ssh": {"id"}}[dir]
	}
	for command, want := range map[string]Decision{
		"ls -R": Allow, "grep -r x": Ask, "rg x": Ask, "cat home/*": Ask, "cat home/x": Allow, "cat home/.ssh/id": Deny,
		"find . -name x": Ask, "cat home/.s*/id": Deny, "cat home/.s*/none": Ask, "diff -r home x": Ask,
	} {
		if v := Tools.Command(command, home); v.Decision != want {
			t.Errorf("%q: %s, want %s: %+v", command, v.Decision, want, v.Reasons)
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]Decision{
		"a": Allow, "src/a.go": Allow, "/w/ws/a": Allow, "/w/ws-evil/a": Deny, "/w/ws/../x": Deny, "../ws/a": Allow,
		"/w/ws":       Allow,
		".git/config": Ask, ".GIT/Config": Ask, ".git/hooks/pre-commit": Ask, "sub/.git/hooks/x": Ask, ".git": Ask,
		".git/config.": Ask, ".git/config ": Ask, "git~1/config": Ask,
		".git/HEAD": Ask, ".git/config:x": Ask, ".g\u200cit/config": Ask, ".git::$INDEX_ALLOCATION/x": Ask,
		".vscode/settings.json": Ask, ".mcp.json": Ask, ".claude/": Ask, ".claude/settings.json": Ask, ".bashrc": Ask,
		".omniagent/config.toml": Ask, ".npmrc": Ask,
		".gitignore": Allow, ".github/workflows/x.yml": Allow, "claude.md": Allow, "a\nb": Deny, `C:\x`: Deny,
		`\\host\x`: Deny, " ": Ask, "~/x": Allow, "a:b": Allow,
	} {
		if v := Tools.Write(path, here()); v.Decision != want {
			t.Errorf("%q: %s, want %s: %+v", path, v.Decision, want, v.Reasons)
		}
		if v := Tools.Write(path, here()); v.Firm != (want == Ask && path != " ") {
			t.Errorf("%q: firm is %v", path, v.Firm)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]Decision{
		"a": Allow, "/etc/passwd": Allow, "/w/home/.ssh": Deny, "/w/home/.ssh/id_rsa": Deny, "/w/home/.sshx": Allow,
		"../home/.netrc": Deny, "/w/home/.Codex/auth.json": Deny,
		"/w/home/.docker/config.json": Deny, "/w/home/.docker/x": Allow, "/proc/self/environ": Deny,
		"/proc/12/root/etc/passwd": Deny, "/proc/cpuinfo": Allow, "/w/home/Library/Keychains/x": Deny,
	} {
		if v := Tools.Read(path, here()); v.Decision != want {
			t.Errorf("%q: %s, want %s: %+v", path, v.Decision, want, v.Reasons)
		}
	}
}

func TestListsAreFreshAndPlain(t *testing.T) {
	t.Parallel()
	agents().Protected()[0] = "x"
	if agents().Protected()[0] == "x" {
		t.Error("the list of protected names can be changed from outside")
	}
	for _, name := range agents().Protected() {
		if strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.Contains(name, "..") {
			t.Errorf("%q is not a plain relative name", name)
		}
		if v := Tools.Write(name, here()); v.Decision != Deny && !(v.Decision == Ask && v.Firm) {
			t.Errorf("%q is protected, yet %s", name, v.Decision)
		}
	}
	secrets := agents().Credentials("/w/home")
	for _, path := range secrets {
		if !strings.HasPrefix(path, "/w/home/") {
			t.Errorf("%q is not beneath home", path)
		}
		if v := Tools.Command("cat '"+path+"/x'", here()); v.Decision != Deny {
			t.Errorf("%q is a credential, yet %s", path, v.Decision)
		}
	}
	if slices.Sort(secrets); len(slices.Compact(secrets)) != len(agents().Credentials("/w/home")) {
		t.Error("a credential stands twice")
	}
	if agents().Credentials("") != nil {
		t.Error("credentials without a home")
	}
}

// TestConstructs: whatever is more than lists, pipes and groups of plain commands is asked about, with a reason.
func TestConstructs(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"cat <(ls)", "cat >(ls)", "ls @(a|b)", "echo $'x'", "echo $\"x\"", "case x in x) ls;; esac", "export x",
		"coproc ls", "ls &", "time ls", "f() { ls; }", "for i in a; do ls; done", "while true; do ls; done",
		"until true; do ls; done", "for ((;;)); do ls; done", "select x in a; do ls; done", "((1))", "let 1",
		"echo $((1))", "echo $[1]", "echo ${x@P}", "echo ${!x}", "echo ${x:=1}", "x=1", "x=1 ls", "ls \\\n-l",
		"echo \u200bx", "a=(1)", "[[ a =~ b ]]", "[[ a ]]", "if ls; then ls; fi", "declare -p", "function f { ls; }",
		"echo `ls`", "echo \"`ls`\"", "ls {x}>&1", "ls <<E\nx\nE\n", "ls <<-E\nx\nE\n",
	} {
		v := Tools.Command(line, here())
		if v.Decision != Ask || v.Reasons[0].Text == "" {
			t.Errorf("%q: %s: %+v", line, v.Decision, v.Reasons)
		}
	}
}

// TestReadOnly: each line of the list has a form that is read, no command is there twice, and none has a flag that
// names a file or makes it write. The page about rules has the same list.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(readOnly)) {
		kind, list, _ := strings.Cut(line, ":")
		words := strings.Fields(list)
		if kind == "cd" {
			words = []string{"cd"}
		}
		kinds := []string{"words", "number", "cd", "none", "lines", "pattern", "files"}
		if !slices.Contains(kinds, kind) || len(words) == 0 ||
			kind != "words" && len(words) > 2 {
			t.Errorf("%q is not read", line)
		}
		if kind != "words" {
			words = words[:1]
		}
		for _, name := range words {
			if _, _, listed := listedAs(name); !listed || seen[name] {
				t.Errorf("%s is there twice, or not found", name)
			}
			seen[name] = true
		}
	}
	page, err := os.ReadFile("../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	delete(seen, ":")
	delete(seen, "sed")
	list := strings.Join(slices.Sorted(maps.Keys(seen)), " ") + " :` and `sed -n 10,20p`"
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), list) {
		t.Errorf("docs/rules.md does not have the list: %s", list)
	}
	for name, flags := range map[string]string{
		"grep": "defORSUzZ", "sort": "omCST", "file": "CfmzZsp", "tail": "fF", "ls": "LHZ", "du": "XLD0", "date": "sfr",
		"md5sum": "c", "wc": "F", "od": "S",
	} {
		if _, has, _ := listedAs(name); has == "" || strings.ContainsAny(has, flags) {
			t.Errorf("%s has one of -%s in %q", name, flags, has)
		}
	}
}
