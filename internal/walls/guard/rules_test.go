package guard

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"omniagent/internal/kit/fault"
)

func rule(t interface{ Fatal(args ...any) }, w Decision, text string) Rule {
	r, err := known().Rule(w, text, "test:"+text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func policy(t interface{ Fatal(args ...any) }, lines ...string) (rules Rules) {
	words := map[string]Decision{"allow": Allow, "ask": Ask, "deny": Deny}
	for _, line := range lines {
		w, text, _ := strings.Cut(line, " ")
		rules = append(rules, rule(t, words[w], text))
	}
	return rules
}

func TestRulesThatDoNotParse(t *testing.T) {
	t.Parallel()
	for text, offset := range map[string]int{
		"": 0, "(x)": 0, "Bash(": 5, "Bash()": 5, "Bash( )": 5, "Bash(ls": 7, "Bash(ls) x": 8, "Bash)": 4, "Bsh(ls)": 0,
		"bash": 0, "Ba sh": 2, "Bash(git:*:*)": 8, "Bash(:*)": 5, "Bash('x)": 5,
		"Bash(ls $x)": 8, "Bash(ls; rm:*)": 5, "WebFetch(example.com)": 9, "WebFetch(domain:)": 16,
		"WebFetch(domain:http://x)": 16, "Task(x)": 4, "mcp__a(x)": 6, "Read([ab])": 5, "Nothing": 0, "Bash(a\nb)": 6,
		"Bash(a:*b)": 6, "Bash(~/x)": 5,
	} {
		_, err := known().Rule(Deny, text, "file:3")
		var f *fault.Fault
		if !errors.As(err, &f) || f.Code != fault.ArgError {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if f.Detail["offset"] != offset || f.Suggestion == "" || !strings.Contains(f.Message, "file:3") {
			t.Errorf("%q: offset %v, want %d; hint %q; %s", text, f.Detail["offset"], offset, f.Suggestion, f.Message)
		}
	}
}

func TestStricter(t *testing.T) {
	t.Parallel()
	for text, tool := range map[string]string{
		"Bash(": "Bash", "bash(rm": "Bash", "Bash(x) y": "Bash", "Bsh(rm)": "*", "(": "*", "": "*",
		"mcp__x__y(": "mcp__x", "Read(a": "Read", "rm -rf": "*", "SysBuiltIn.(": "SysBuiltIn",
	} {
		r, ok := known().Stricter(Deny, text, "f:1")
		if !ok || r.tool != tool || !r.bare {
			t.Errorf("%q: %q, want %q", text, r.tool, tool)
		}
		if _, ok := known().Stricter(Allow, text, "f:1"); ok {
			t.Errorf("%q: a broken allow rule counts", text)
		}
		if v := (Judge{Known: known(), Rules: Rules{r}, Place: here()}).Call(Call{
			Tool: "Bash", Kind: "command", Command: "ls",
		}); (v.Decision == Deny) != (tool == "*" || tool == "Bash") {
			t.Errorf("%q: ls is %s", text, v.Decision)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	bash := func(line string) Call { return Call{Tool: "Bash", Kind: "command", Command: line} }
	write := func(path string) Call { return Call{Tool: "Write", Kind: "write", Paths: []string{path}} }
	read := func(path string) Call { return Call{Tool: "Read", Kind: "read", Paths: []string{path}} }
	web := func(url string) Call { return Call{Tool: "WebFetch", Kind: "web", URL: url} }
	mcp := func(tool string) Call { return Call{Tool: tool, Kind: "mcp"} }
	for _, c := range []struct {
		rules []string
		call  Call
		want  Decision
	}{
		// Allow matches word for word, and every command of the line.
		{nil, bash("npm test"), Ask},
		{[]string{"allow Bash(npm test)"}, bash("npm test"), Allow},
		{[]string{"allow Bash(npm test)"}, bash(`np"m" 'test'`), Allow},
		{[]string{"allow Bash(npm test)"}, bash("npm test x"), Ask},
		{[]string{"allow Bash(npm test)"}, bash("npm testx"), Ask},
		// A builtin of bash runs what is in a subscript, quoted or not.
		{[]string{"allow Bash(printf:*)", "allow Bash(test:*)"}, bash("printf -v 'a[$(x)]' y"), Ask},
		{[]string{"allow Bash(printf:*)", "allow Bash(test:*)"}, bash("test -v 'a[`x`]'"), Ask},
		{[]string{"allow Bash(printf:*)", "allow Bash(test:*)"}, bash("printf %q 'a[1]' '$x'"), Allow},
		{[]string{"allow Bash(grep:*)"}, bash("grep '[a-z]$' -f f"), Allow},
		{[]string{"allow Bash"}, bash("env PATH=x ls"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test x"), Allow},
		{[]string{"allow Bash(npm test:*)"}, bash("npm testx"), Ask},
		{[]string{"allow Bash(npm test *)"}, bash("npm test x y"), Allow},
		{[]string{"allow Bash(npm run test-*)"}, bash("npm run test-a"), Allow},
		{[]string{"allow Bash(npm run test-*)"}, bash("npm run test-a b"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test $x"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test $(evil)"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test *.js"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test | tail -5"), Allow},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test 2>&1 | tail -5"), Allow},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test | tee x"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test; evil"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("npm test > out"), Ask},
		{[]string{"allow Bash(npm test:*)", "allow Edit(out)"}, bash("npm test > out"), Allow},
		{[]string{"allow Bash(npm test:*)", "allow Edit(out)"}, bash("npm test > out2"), Ask},
		{[]string{"allow Bash(npm test > out)"}, bash("npm test > out"), Allow},
		{[]string{"allow Bash(npm test:*)"}, bash("A=b npm test"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("/tmp/npm test"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("npm() { evil; }; npm test"), Ask},
		{[]string{"allow Bash(npm test:*)"}, bash("rm -rf x; npm test"), Ask},
		{[]string{"allow Bash(rm:*)"}, bash("rm -rf x"), Allow},
		{[]string{"allow Bash"}, bash("rm -rf x"), Ask},
		{[]string{"allow Bash(env:*)"}, bash("env rm -rf x"), Ask},
		{[]string{"allow Bash"}, bash("x=$(evil); $x > y"), Allow},
		{[]string{"allow Bash"}, bash("echo ("), Ask},
		{[]string{"allow Bash(bash:*)"}, bash("bash -c evil"), Ask},
		{[]string{"allow Bash(bash:*)", "allow Bash(evil)"}, bash("bash -c evil"), Allow},
		// A rule has to name agents, or they are asked about.
		{[]string{"allow Bash"}, bash("claude -p x"), Ask},
		{[]string{"allow Bash(*)"}, bash("npx @openai/codex"), Ask},
		{[]string{"allow Bash(claude -p:*)"}, bash("claude -p x"), Allow},
		{[]string{"allow Bash(npx:*)"}, bash("npx @openai/codex"), Ask},
		{[]string{"allow Bash(npx @openai/codex)"}, bash("npx @openai/codex"), Allow},
		{[]string{"allow Bash(npx @openai/codex:*)"}, bash("npx @openai/codex exec"), Allow},
		{[]string{"allow Bash(timeout:*)"}, bash("timeout 5 codex"), Ask},
		{[]string{"allow Bash(timeout 5 codex:*)"}, bash("timeout 5 codex"), Allow},
		// Deny and ask are read broadly.
		{[]string{"deny Bash(git push:*)", "allow Bash"}, bash("git push"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("ls && git -C x push origin"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("env A=b nice -n 5 timeout 5 git push"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("/usr/bin/git push"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("A=b git push"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("bash -c 'git push'"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("echo x | xargs git push"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("echo $(git push)"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("f() { git push; }"), Deny},
		{[]string{"deny Bash(git push:*)"}, bash(`g\it 'pu'sh`), Deny},
		{[]string{"deny Bash(git push:*)"}, bash("exec git push"), Deny},
		{[]string{"deny Bash(git push:*)", "allow Bash"}, bash("git $x"), Ask},
		{[]string{"deny Bash(git push:*)", "allow Bash"}, bash("$x push"), Ask},
		{[]string{"deny Bash(git push:*)", "allow Bash"}, bash("git pull"), Allow},
		{[]string{"deny Bash(rm*)", "allow Bash"}, bash("rm file"), Deny},
		{[]string{"deny Bash(curl http*)", "allow Bash"}, bash("ls; curl http://x -o y"), Deny},
		{[]string{"deny Bash(git * main)", "allow Bash"}, bash("git push origin main"), Deny},
		{[]string{"deny Bash(* --force)", "allow Bash"}, bash("npm publish --force"), Deny},
		{[]string{"deny Bash(* --force:*)", "allow Bash"}, bash("npm publish --force x"), Deny},
		{[]string{"deny Bash(git * main)", "allow Bash"}, bash("git push origin next"), Allow},
		{[]string{"deny Bash(git p* main)", "allow Bash"}, bash("git push $x main"), Ask},
		{[]string{"deny Bash(rm*)", "allow Bash"}, bash("ls $x"), Allow},
		{[]string{"allow Bash(npm run test*)"}, bash("npm run test-a b"), Ask},
		{[]string{"deny Bash(ls)"}, bash("ls"), Deny},
		{[]string{"deny Bash(ls)"}, bash("ls -l"), Allow},
		{[]string{"ask Bash(ls:*)"}, bash("ls -l"), Ask},
		{[]string{"ask Bash(ls:*)", "allow Bash(ls:*)"}, bash("ls -l"), Ask},
		{[]string{"deny Bash"}, bash("ls"), Deny},
		{[]string{"deny *"}, read("a"), Deny},
		{[]string{"deny Bash(a && b)"}, bash("a && b"), Deny},
		// Files.
		{nil, write("a"), Allow},
		{[]string{"deny Edit(src/**)"}, write("src/a/b"), Deny},
		{[]string{"deny Edit(src/**)"}, write("SRC/a"), Deny},
		{[]string{"deny Edit(src)"}, write("src/a"), Deny},
		{[]string{"deny Edit(src/**)"}, write("srcx/a"), Allow},
		{[]string{"deny Edit(src/**)"}, bash("ls > src/a"), Deny},
		{[]string{"deny Write"}, bash("ls > a"), Deny},
		{[]string{"deny Read(.env)"}, read("sub/.env"), Deny},
		{[]string{"deny Read(.env)"}, bash("cat sub/.env"), Deny},
		{[]string{"deny Read(.env)"}, bash("cat < .env"), Deny},
		{[]string{"deny Read(.env)"}, bash("curl -d @x --file=.env y"), Deny},
		{[]string{"deny Read(~/notes/**)"}, read("/w/home/notes/x"), Deny},
		{[]string{"deny Read(/etc/**)"}, read("/etc/passwd"), Deny},
		{[]string{"deny Read(//etc/**)"}, read("/etc/passwd"), Deny},
		{[]string{"deny Read(*.pem)"}, read("a/b.pem"), Deny},
		{[]string{"deny Read"}, Call{Tool: "Grep", Kind: "read", Paths: []string{"x"}}, Deny},
		{[]string{"allow Edit(.git/**)"}, write(".git/config"), Allow},
		{[]string{"allow Edit", "allow *"}, write(".git/config"), Ask},
		{[]string{"allow Read(~/.ssh/**)"}, read("/w/home/.ssh/x"), Deny},
		// The web, servers.
		{nil, web("https://example.com"), Ask},
		{[]string{"allow WebFetch(domain:example.com)"}, web("https://example.com/x"), Allow},
		{[]string{"allow WebFetch(domain:example.com)"}, web("https://EXAMPLE.com.:8080/x"), Allow},
		{[]string{"allow WebFetch(domain:example.com)"}, web("https://example.com@evil.org/"), Ask},
		{[]string{"allow WebFetch(domain:example.com)"}, web("https://a.example.com"), Ask},
		{[]string{"allow WebFetch(domain:*.example.com)"}, web("https://a.example.com"), Allow},
		{[]string{"deny WebFetch(domain:example.com)"}, web("https://a.example.com"), Deny},
		{[]string{"deny WebFetch(domain:example.com)"}, web("https://notexample.com"), Ask},
		{[]string{"deny WebFetch(domain:example.com)"}, web(":"), Deny},
		{nil, mcp("mcp__a__b"), Ask},
		{[]string{"allow mcp__a"}, mcp("mcp__a__b"), Allow},
		{[]string{"allow mcp__a__b"}, mcp("mcp__a__b"), Allow},
		{[]string{"allow mcp__a__b"}, mcp("mcp__a__c"), Ask},
		{[]string{"allow mcp__a"}, mcp("mcp__ab__b"), Ask},
		{[]string{"allow mcp__a", "deny mcp__a__b"}, mcp("mcp__a__b"), Deny},
		{[]string{"deny Task"}, Call{Tool: "Task", Kind: "other"}, Deny},
	} {
		v := Judge{Known: known(), Rules: policy(t, c.rules...), Place: here()}.Call(c.call)
		if v.Decision != c.want {
			t.Errorf("%q, %+v: %s, want %s\n\t%+v", c.rules, c.call, v.Decision, c.want, v)
		}
		for _, r := range v.Reasons {
			if r.Source == "" || r.Text == "" {
				t.Errorf("%q: a reason without text or source: %+v", c.rules, r)
			}
		}
	}
}

func TestExplicitAndBothRules(t *testing.T) {
	t.Parallel()
	call := Call{Tool: "Bash", Kind: "command", Command: "npm test"}
	for _, c := range []struct {
		rules    []string
		word     Decision
		explicit bool
	}{
		{nil, Ask, false},
		{[]string{"allow Bash(npm test)"}, Allow, true},
		{[]string{"ask Bash(npm test)"}, Ask, true},
		{[]string{"deny Bash(npm test)"}, Deny, true},
		{[]string{"allow Bash(other)"}, Ask, false},
	} {
		if v := (Judge{Known: known(), Rules: policy(t, c.rules...), Place: here()}).Call(call); v.Decision != c.word ||
			v.Explicit != c.explicit {
			t.Errorf("%q: %s explicit %v", c.rules, v.Decision, v.Explicit)
		}
	}
	v := Judge{Known: known(), Rules: policy(t, "allow Bash(npm:*)", "deny Bash(npm test)"), Place: here()}.Call(call)
	var sources []string
	for _, r := range v.Reasons {
		sources = append(sources, r.Source)
	}
	if v.Decision != Deny || sources[0] != "test:Bash(npm test)" || !slices.Contains(sources, "test:Bash(npm:*)") {
		t.Errorf("a policy that contradicts itself shows %q", sources)
	}
	v = Judge{Known: known(), Rules: policy(t, "deny Bash(foo:*)"), Place: here()}.Call(Call{
		Tool: "Bash", Kind: "command", Command: "x=$(date); $x",
	})
	if v.Decision != Ask || v.Reasons[0].Source != "test:Bash(foo:*)" {
		t.Errorf("the first reason is not the rule: %v", v.Reasons)
	}
	v = Judge{Known: known(), Rules: policy(t, "ask Bash(ls:*)"), Place: here()}.Call(Call{
		Tool: "Bash", Kind: "command", Command: "git push --force origin main && ls",
	})
	if v.Decision != Ask || !v.Firm || v.Reasons[0].Source != BuiltIn {
		t.Errorf("the first reason is not what every mode asks about: %v", v.Reasons)
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules []string
		want  int
	}{
		{[]string{"allow Bash(git:*)", "deny Bash(git push:*)"}, 0},
		{[]string{"allow Bash(git push:*)", "deny Bash(git:*)"}, 1},
		{[]string{"allow Bash(git push)", "ask Bash(git push)"}, 1},
		{[]string{"allow Bash(git push)", "deny Bash"}, 1},
		{[]string{"allow Write(src/a)", "deny Edit(src/**)"}, 1},
		{[]string{"allow Write(src/a)", "deny Read(src/**)"}, 0},
		{[]string{"allow mcp__a__b", "deny mcp__a"}, 1},
		{[]string{"allow mcp__a", "deny mcp__a__b"}, 0},
		{[]string{"allow Task", "deny *"}, 1},
		{[]string{"allow WebFetch(domain:a.example.com)", "deny WebFetch(domain:example.com)"}, 1},
		{[]string{"deny Bash(x)", "ask Bash(x)"}, 0},
	} {
		if got := policy(t, c.rules...).Contradictions(); len(got) != c.want {
			t.Errorf("%q: %d contradictions", c.rules, len(got))
		}
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	var m Memory
	call := func(line, input string) Call {
		return Call{Tool: "Bash", Kind: "command", Command: line, Input: json.RawMessage(input)}
	}
	m.Remember(call("npm test", `{"command":"npm test","timeout":12345678901234567890}`), Allow)
	m.Remember(call("rm -rf x", `{}`), Allow)
	m.Remember(call("cat /etc/shadow", `{}`), Allow)
	m.Remember(call("ls", `{}`), Deny)
	m.Remember(call("bad", `{`), Allow)
	j := Judge{Known: known(), Memory: &m, Place: here()}
	for _, c := range []struct {
		call Call
		want Decision
	}{
		{call("npm test", `{ "timeout":12345678901234567890, "command":"npm test" }`), Allow},
		{call("npm test", `{"command":"npm test","timeout":12345678901234567891}`), Ask},
		{call("npm test", `{"command":"npm test"}`), Ask},
		{call("npm test ", `{"command":"npm test","timeout":12345678901234567890}`), Ask},
		{call("rm -rf x", `{}`), Allow},
		{call("cat /etc/shadow", `{}`), Deny},
		{call("ls", `{}`), Deny},
		{call("bad", `{`), Ask},
	} {
		if v := j.Call(c.call); v.Decision != c.want {
			t.Errorf("%+v: %s, want %s", c.call, v.Decision, c.want)
		}
	}
	j.Rules = policy(t, "ask Bash(npm:*)")
	if v := j.Call(call("npm test", `{"command":"npm test","timeout":12345678901234567890}`)); v.Decision != Ask ||
		!v.Explicit {
		t.Errorf("an answer outweighs a rule that always asks: %+v", v)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			m.Remember(call("x", `{}`), Allow)
			j.Call(call("x", `{}`))
		})
	}
	wait.Wait()
}

// The lattice: deny is above ask is above allow, whatever the order and the sources.
func TestLattice(t *testing.T) {
	t.Parallel()
	texts := []string{
		"Bash", "Bash(npm:*)", "Bash(npm test)", "Bash(ls:*)", "Bash(git push:*)", "Bash(bash:*)", "Bash(claude:*)",
		"Read", "Read(src/**)", "Edit(src/**)", "Edit", "Write(out)", "*", "WebFetch", "WebFetch(domain:example.com)",
		"mcp__a", "mcp__a__b", "Bash(npm run x-*)", "Bash(rm:*)",
	}
	calls := []Call{}
	for _, line := range []string{
		"ls", "npm test", "npm test && ls", "npm test > out", "git push", "git -C x push; npm test", "rm -rf x",
		"bash -c 'npm test'", "claude -p x", "npm $x", "$x", "cat src/a", "ls > src/b", "sudo npm test", "npm run x-1",
		"echo (", "cat /etc/passwd",
	} {
		calls = append(calls, Call{Tool: "Bash", Kind: "command", Command: line})
	}
	calls = append(calls, Call{Tool: "Write", Kind: "write", Paths: []string{"src/a"}},
		Call{Tool: "Read", Kind: "read", Paths: []string{"src/a"}}, Call{
			Tool: "Edit", Kind: "write", Paths: []string{".git/config"},
		},
		Call{Tool: "WebFetch", Kind: "web", URL: "https://example.com"}, Call{Tool: "mcp__a__b", Kind: "mcp"},
		Call{Tool: "TodoWrite", Kind: "other"}, Call{Tool: "What", Kind: "other"})
	words := []Decision{Allow, Ask, Deny}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) Rule {
			r, err := known().Rule(rapid.SampledFrom(words).Draw(t, label+" word"),
				rapid.SampledFrom(texts).Draw(t, label), rapid.SampledFrom([]string{"a:1", "b:2", "--flag"}).Draw(t,
					label+" source"))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		rules := Rules{}
		for range rapid.IntRange(0, 6).Draw(t, "rules") {
			rules = append(rules, draw("rule"))
		}
		call := rapid.SampledFrom(calls).Draw(t, "call")
		j := Judge{
			Known: known(), Rules: rules, Place: here(),
			Set: rapid.SampledFrom([]Set{Tools, SysBuiltIn}).Draw(t, "set"),
		}
		bare := Judge{Known: known(), Place: j.Place, Set: j.Set}.Call(call)
		if said := rapid.IntRange(0, 3).Draw(t, "memory"); said > 0 {
			j.Memory = &Memory{}
			j.Memory.Remember(call, words[said-1])
		}
		v := j.Call(call)

		shuffled := j
		shuffled.Rules = rapid.Permutation(rules).Draw(t, "order")
		if got := shuffled.Call(call); got.Decision != v.Decision || got.Explicit != v.Explicit {
			t.Fatalf("the order matters: %s and %s", v.Decision, got.Decision)
		}
		if bare.Decision == Deny && v.Decision != Deny {
			t.Fatalf("a built-in denial became %s", v.Decision)
		}
		extra := draw("extra")
		more := j
		more.Rules = append(slices.Clone(rules), extra)
		got := more.Call(call)
		if extra.decision > Allow && got.Decision < v.Decision {
			t.Fatalf("a %s rule made %s to %s", extra.decision, v.Decision, got.Decision)
		}
		if extra.decision == Allow && got.Decision > v.Decision {
			t.Fatalf("an allow rule made %s to %s", v.Decision, got.Decision)
		}
		if extra.decision == Allow && got.Decision == Allow && (v.Decision == Deny || v.Decision == Ask && v.Explicit) {
			t.Fatalf("an allow rule lifted an explicit %s", v.Decision)
		}
		if j.Memory != nil {
			without := j
			without.Memory = nil
			if w := without.Call(call); w.Decision == Deny && v.Decision != Deny {
				t.Fatal("an answer outweighs a denial")
			}
		}
		if len(v.Reasons) == 0 && v.Decision > Allow {
			t.Fatal("no reason")
		}
	})
}

// TestAnAllowedToolIsThatTool and no other whose name is longer.
func TestAnAllowedToolIsThatTool(t *testing.T) {
	for _, c := range []struct {
		rule, tool string
		allow      bool
	}{
		{"mcp__w__get", "mcp__w__get", true},
		{"mcp__w__get", "mcp__w__get__all", false},
		{"mcp__w__get", "mcp__w__getall", false},
		{"mcp__w", "mcp__w__get__all", true},
		{"mcp__w", "mcp__w2__get", false},
	} {
		for _, w := range []Decision{Allow, Deny} {
			r, err := known().Rule(w, c.rule, "here")
			if err != nil {
				t.Fatal(err)
			}
			if got := coversTool(r, c.tool); got != c.allow && !(w == Deny && c.tool == "mcp__w__get__all") {
				t.Errorf("%s %+v: %v", w, c, got)
			}
		}
	}
}

// TestWhatWasSaidElsewhere: no tool reads other conversations, whether of this program or of another.
func TestWhatWasSaidElsewhere(t *testing.T) {
	p := Place{Root: "/h", Dir: "/h", Home: "/h", Agents: agents()}
	for _, path := range []string{"/h/.yume/sessions/a.jsonl", "/h/.eidolon/x", "/h/.claude/projects/x", "/h/.YUME"} {
		if v := Tools.Read(path, p); v.Decision != Deny {
			t.Errorf("%s: %+v", path, v)
		}
	}
}

func TestBarred(t *testing.T) {
	t.Parallel()
	known := known()
	var rules Rules
	for _, text := range []string{
		"Read(secret.txt)", "Read(/keys/**)", "Read(/)", "Read", "Read(*.pem)", "Read(a/*/b)", "Read(~/x)",
		"Read(//etc)", "Read(//w/deep/)", "Read(../other)", "Read(//w)", "Read(//more/a)", "Grep(found)",
		"Edit(./dist/**)", "Write(locked/)", "Edit(**)", "Edit(**/x)", "NotebookEdit(book)", "Bash(cat x)",
		"Read(.)", "Read(./.)", "Read(a/..)", "Edit(dist/../ci)", "Edit(..)",
		"Edit(*)", "Edit(?*)", "Edit(*.pem)", "Write(.env)",
	} {
		rule, err := known.Rule(Deny, text, "test")
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	ask, _ := known.Rule(Ask, "Read(asked)", "test")
	place := Place{Root: "/w", More: []string{"/more"}, Dir: "/w", Home: "/home/u"}
	b := append(rules, ask).Barred(place)
	for _, c := range []struct {
		what string
		list []string
		want string
	}{
		{"unread", b.Unread, "/more/a /w/deep /w/keys /w/secret.txt"},
		{"unchanged", b.Unchanged, "/w/.env /w/book /w/ci /w/dist /w/locked"},
		{"unread anywhere", b.UnreadNames, "*.pem secret.txt"},
		{"unchanged anywhere", b.UnchangedNames, "*.pem .env book locked"},
	} {
		slices.Sort(c.list)
		if got := strings.Join(slices.Compact(c.list), " "); got != c.want {
			t.Errorf("%s: %s", c.what, got)
		}
	}
}
