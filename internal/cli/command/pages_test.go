package command

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
)

var update = flag.Bool("update", false, "write the pages that follow from the declarations")

const root = "../../.."

// TestPages checks that the generated pages match the declarations. With -update it writes them.
func TestPages(t *testing.T) {
	p := Program()
	hold(t, "docs/errors.md", errorsPage())
	hold(t, "docs/commands.md", commandsPage(t, p))
	hold(t, "AGENTS.md", agentsPage(t, p))
	for _, skill := range p.SkillPages() {
		hold(t, filepath.Join("skills", skill.Name), skill.Text)
	}
	files, err := os.ReadDir(filepath.Join(root, "skills"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(p.SkillPages()) {
		t.Errorf("skills/ holds %d files, the program has %d", len(files), len(p.SkillPages()))
	}
}

func hold(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(root, name)
	got, err := os.ReadFile(path)
	if err == nil && string(got) == want {
		return
	}
	if !*update {
		t.Errorf("%s differs from what the declarations say; go test ./internal/cli/command -update", name)
		return
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func errorsPage() string {
	var b strings.Builder
	b.WriteString(
		"# Error codes\n\nEvery failure carries one of these codes in `error.code`. A code never changes its " +
			"meaning, so programs may branch on it.\n" +
			"The kind decides the exit code, unless the help of a command says otherwise. This page is made from\n" +
			"`omniagent errors list`; do not edit it by hand.\n")
	list := fault.Catalogue()
	slices.SortFunc(list, func(a, b fault.Entry) int { return strings.Compare(string(a.Code), string(b.Code)) })
	for _, e := range list {
		again := map[bool]string{true: "yes", false: "no"}[e.Retryable]
		fmt.Fprintf(&b,
			"\n## %s\n\n%s\n\n- Code: `%s`\n- Kind: %s, exit code %d\n- Same call again: %s\n- Next step: %s\n",
			strings.ToLower(string(e.Code)), e.Summary, e.Code, e.Kind, contract.ExitFor(e.Kind), again, e.NextStep)
	}
	return b.String()
}

func commandsPage(t *testing.T, p *contract.Program) string {
	var b strings.Builder
	b.WriteString(
		"# Commands\n\nThe help of the program and of every command, as `--help` prints it. This page is made from " +
			"it; do not edit it by hand.\n")
	fmt.Fprintf(&b, "\n## omniagent\n\n```text\n%s```\n", helpOf(t, p))
	for _, c := range p.All() {
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s```\n", strings.ReplaceAll(c.Path, " ", "-"),
			helpOf(t, p, strings.Fields(c.Path)...))
	}
	return b.String()
}

func helpOf(t *testing.T, p *contract.Program, words ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	host := contract.Host{
		Args: append(words, "--help"), Lookup: func(string) (string, bool) { return "", false },
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Dir: t.TempDir(),
	}
	if status := p.Run(context.Background(), host, nil); status != 0 {
		t.Fatalf("%v --help: exit %d", words, status)
	}
	_, page, _ := strings.Cut(stderr.String(), "\n\n") // the first line is about the pipe
	for line := range strings.Lines(page) {
		if columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns > 80 {
			t.Errorf("%v --help has a line of %d columns, such as an example: %s", words, columns, line)
		}
	}
	return page
}

// agentsPage returns AGENTS.md with the current version and table of commands.
func agentsPage(t *testing.T, p *contract.Program) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "AGENTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "\n")
	before, tail, found := strings.Cut(rest, "<!-- generated:commands -->\n")
	_, after, ended := strings.Cut(tail, "<!-- /generated -->")
	if !found || !ended {
		t.Fatal("AGENTS.md has no place for the table of commands")
	}
	table := "| Command | Danger | What it does |\n|---|---|---|\n"
	for _, c := range p.All() {
		table += fmt.Sprintf("| `%s` | %s | %s |\n", c.Path, c.Danger, c.Summary)
	}
	return fmt.Sprintf("<!-- cli-version: %s -->\n%s<!-- generated:commands -->\n%s<!-- /generated -->%s", p.Version,
		before, table, after)
}
