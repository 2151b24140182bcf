package command

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/native"
	"omniagent/internal/walls/shell"
)

// TestMatrixPages checks that the pages about agents match the tables that translate the flags.
func TestMatrixPages(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the pages tell what holds on Linux; some rows differ by system")
	}
	hold(t, "docs/exit-codes.md", generated(t, "docs/exit-codes.md", "exits", exitTable(Ours().Agents)))
	hold(t, "docs/shim.md", generated(t, "docs/shim.md", "script", "```text\n"+modelserver.ScriptText+"```\n"))
	hold(t, "docs/agents.md", generated(t, "docs/agents.md", "matrix", agentTable(Ours().Agents)))
	pages := []string{}
	for _, d := range Ours().Agents {
		name := d.Name() + ".md"
		pages = append(pages, name)
		hold(t, filepath.Join("docs", "agents", name), agentPage(d))
	}
	files, err := os.ReadDir(filepath.Join(root, "docs", "agents"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(pages, f.Name()) {
			t.Errorf("docs/agents/%s is about no agent", f.Name())
		}
	}
}

// TestMatrixPagesSayAll checks that the page of an agent has every row, with all that the row sends and remarks.
func TestMatrixPagesSayAll(t *testing.T) {
	for _, d := range Ours().Agents {
		page := agentPage(d)
		for _, r := range d.Matrix("").Rows {
			for _, c := range []agent.Cell{r.OneShot, r.Interactive} {
				for _, s := range slices.Concat(c.Args, c.Weak, c.Env, []string{c.Note}) {
					if !strings.Contains(page, cellText(s)) {
						t.Errorf("%s: %s %s lacks %q", d.Name(), r.Feature, r.Value, s)
					}
				}
			}
		}
		if about := d.Describe(); !about.BuiltIn && !strings.Contains(page, about.InstallCommand) ||
			!strings.Contains(page, about.Login) {
			t.Errorf("%s: how to install it, or to log in, is missing", d.Name())
		}
	}
}

// abilityRows returns the rows of the table in docs/agents.md that are not flags.
func abilityRows() [][2]string {
	return [][2]string{
		{agent.Schema, "holds its answer to a schema"},
		{agent.Ask, "can ask a person"},
		{agent.Denials, "a denied tool can be known"},
		{agent.Records, "keeps a transcript that is read"},
		{agent.RepoConfig, "a repository changes what it does"},
	}
}

// generated returns a page with text put between the marks of that name.
func generated(t *testing.T, path, name, text string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- generated:"+name+" -->\n", "<!-- /generated -->"
	before, tail, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(tail, end)
	if !found || !ended {
		t.Fatalf("%s has no place for %s", path, name)
	}
	return before + begin + text + end + after
}

// exitTable returns the table of exit codes, for calls without a command and for commands.
func exitTable(drivers []agent.Driver) string {
	direct, numbers := map[int]string{}, []int{}
	for _, e := range directCalls(drivers).Exits {
		n, _ := strconv.Atoi(e.Number)
		direct[n], numbers = e.When, append(numbers, n)
	}
	shared := map[int]contract.SharedExit{}
	for _, e := range contract.SharedExits() {
		shared[e.Number], numbers = e, append(numbers, e.Number)
	}
	slices.Sort(numbers)
	var b strings.Builder
	b.WriteString(
		"| Exit | An agent: `omniagent -p …` | A command: `omniagent COMMAND` | Name there |\n|---|---|---|---|\n")
	for _, n := range slices.Compact(numbers) {
		name := string(shared[n].Code)
		if name != "" {
			name = "`" + name + "`"
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", n, direct[n], shared[n].Means, name)
	}
	return b.String()
}

// agentTable returns the table of the flags and abilities of every agent.
func agentTable(drivers []agent.Driver) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, d := range drivers {
		fmt.Fprintf(&b, " [%s](agents/%s.md) |", d.Name(), d.Name())
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(drivers)) + "\n")
	line := func(title, feature, value string) {
		fmt.Fprintf(&b, "| %s |", title)
		for _, d := range drivers {
			m := d.Matrix("")
			fmt.Fprintf(&b, " %s |", levels(m.Cell(feature, value, setting.OneShot),
				m.Cell(feature, value, setting.Interactive)))
		}
		b.WriteString("\n")
	}
	for _, r := range matrixRows() {
		line("`"+strings.TrimSpace("--"+r[0]+" "+r[1])+"`", r[0], r[1])
	}
	for _, r := range abilityRows() {
		line(r[1], r[0], "")
	}
	return b.String()
}

// levels returns the levels of both modes, or one if they are the same.
func levels(oneShot, interactive agent.Cell) string {
	if oneShot.Level == interactive.Level {
		return string(oneShot.Level)
	}
	return string(oneShot.Level) + " / " + string(interactive.Level)
}

func agentPage(d agent.Driver) string {
	about, m := d.Describe(), d.Matrix("")
	var b strings.Builder
	fmt.Fprintf(&b,
		"# %s\n\nWhat `--agent %s` can do, as run with version %s on Linux. This page is made from the table that "+
			"translates the flags; do not edit it\n"+
			"by hand. `omniagent agents show %s` prints it for the version that is installed here, and "+
			"`--trace-translate=only` a whole command line.\n\n",
		about.Title, d.Name(), m.Measured, d.Name())
	if about.BuiltIn {
		b.WriteString("- It is a part of this program.\n")
	} else {
		fmt.Fprintf(&b, "- Program: `%s`, of the npm package `%s`\n- To install it: `%s`\n", about.Binary,
			about.Package, about.InstallCommand)
	}
	fmt.Fprintf(&b, "- To log in: %s\n- Longest one-shot prompt: %s\n", about.Login, limitText(m.Limit))
	b.WriteString(
		"\n## Shared flags\n\n*Untyped* is what is sent where nobody chose the value, so that the agent's own flags " +
			"behind `--` can\n" +
			"replace it. Level `nearest` is something close to the flag; `no` is ignored, with a warning where it " +
			"was typed;\n" +
			"but an approval that is stricter than `prompt` is refused unless it is `yes`.\n\n")
	head := "| What | Mode | Level | Sent | Remarks |\n|---|---|---|---|---|\n"
	b.WriteString(head)
	flags := matrixRows()
	for _, r := range flags {
		rowText(&b, m, "`"+strings.TrimSpace("--"+r[0]+" "+r[1])+"`", r[0], r[1])
	}
	b.WriteString("\n## Other abilities\n\n" + head)
	for _, r := range m.Rows {
		if r.Feature != agent.RepoConfig && !slices.Contains(flags, [2]string{r.Feature, r.Value}) {
			rowText(&b, m, ability(r.Feature), r.Feature, r.Value)
		}
	}
	b.WriteString(
		"\n## A repository's own configuration\n\nLevel `yes` in the first row: what lies in a repository changes " +
			"what the agent does there. A call without a command leaves that as the\n" +
			"agent has it; the approval is sent all the same. A row *off* is what would close it.\n\n" + head)
	rowText(&b, m, "counts", agent.RepoConfig, "")
	if slices.ContainsFunc(m.Rows, func(r agent.Row) bool {
		return r.Feature == agent.RepoConfig &&
			r.Value == "off"
	}) {
		rowText(&b, m, "off", agent.RepoConfig, "off")
	}
	if d.Name() == native.Name {
		b.WriteString(nativePage())
	}
	return b.String()
}

// nativePage returns the section that only the page of the native agent has.
func nativePage() string {
	var b strings.Builder
	b.WriteString("\n## What commands see\n\n" +
		"Commands and MCP servers get these variables of the environment, where they are set, and no others. An MCP " +
		"server also gets what its own\n" +
		"entry in `mcp.json` names (`\"env\": {\"NAME\": \"${NAME}\"}`), and the variables of the screen. A value " +
		"in which a password is recognised is kept back,\n" +
		"and so is each address with an `@`.\n\n" +
		"| Variables | Why |\n|---|---|\n")
	for _, h := range shell.InheritedVariables() {
		fmt.Fprintf(&b, "| %s | %s |\n", codes(h.Names), h.Why)
	}
	b.WriteString(
		"\nA program may need others: name them in your own configuration, and exactly these are handed on; a " +
			"repository's file cannot:\n\n" +
			"```toml\n[native]\nenv = [\"SSH_AUTH_SOCK\", \"NPM_TOKEN\"]\n```\n\n" +
			"Never handed on, whatever is named: `BASH_ENV`, `ENV`, `LD_PRELOAD`, `LD_AUDIT`, " +
			"`DYLD_INSERT_LIBRARIES` and others that make every program run\n" +
			"something first. Set for commands: `TERM=dumb`, `NO_COLOR=1`, and pagers, editors and prompts that " +
			"answer by themselves.\n")
	return b.String()
}

func ability(feature string) string {
	switch feature {
	case agent.Schema:
		return "holds its answer to a JSON schema"
	case agent.Resume:
		return "continues an earlier session"
	case agent.SessionID:
		return "takes the id of its session from us"
	case agent.Ask:
		return "can ask a person"
	case agent.Denials:
		return "a denied tool can be known afterwards"
	case agent.Records:
		return "keeps a transcript that is read"
	case agent.ACP:
		return "speaks the Agent Client Protocol"
	}
	return feature
}

func limitText(l agent.Limit) string {
	parts := []string{}
	if l.Characters > 0 {
		parts = append(parts, fmt.Sprintf("%d characters", l.Characters))
	}
	if l.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("%d bytes", l.Bytes))
	}
	if len(parts) == 0 {
		return "no limit of its own; " + l.Note
	}
	return strings.Join(parts, " and ") + "; " + l.Note
}

// rowText writes one line, or one for each mode if they differ.
func rowText(b *strings.Builder, m agent.Matrix, title, feature, value string) {
	cell := func(mode string, c agent.Cell) {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", title, mode, c.Level, sentText(c), remarks(c))
	}
	oneShot, interactive := m.Cell(feature, value, setting.OneShot), m.Cell(feature, value, setting.Interactive)
	if fmt.Sprintf("%#v", oneShot) == fmt.Sprintf("%#v", interactive) {
		cell("both", oneShot)
		return
	}
	cell("one-shot", oneShot)
	cell("interactive", interactive)
}

func sentText(c agent.Cell) string {
	text := codes(slices.Concat(c.Args, c.Env))
	if c.Weak == nil {
		return text
	}
	weak := codes(c.Weak)
	if weak == "" {
		weak = "nothing"
	}
	return text + "; untyped: " + weak
}

func codes(words []string) string {
	if len(words) == 0 {
		return ""
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "`" + cellText(w) + "`"
	}
	return strings.Join(out, " ")
}

func remarks(c agent.Cell) string {
	parts := []string{}
	for i, need := range c.Needs {
		if need = strings.ReplaceAll(need, "|", " or "); i == 0 {
			need = "needs " + need
		}
		parts = append(parts, need)
	}
	if len(parts) > 1 {
		parts = []string{strings.Join(parts, ", ")}
	}
	if c.Note != "" {
		parts = append(parts, cellText(c.Note))
	}
	return strings.Join(parts, "; ")
}

// cellText escapes a text for a cell of a table.
func cellText(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
