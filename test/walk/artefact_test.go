//go:build unix

package walk

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// version is what the program says of itself.
func version(t *testing.T) string {
	t.Helper()
	o := newBox(t).run(t, call{args: []string{"--version"}})
	v := strings.TrimSuffix(o.stdout, "\n")
	if o.code != 0 || !regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(v) {
		t.Fatalf("that is not a version\n%s", o)
	}
	return v
}

// words knows every name that help tells of: commands, flags, variables.
type words struct {
	text     string // the help of the program and of each command
	commands []string
}

func known(t *testing.T) words {
	t.Helper()
	b := newBox(t)
	w := words{text: b.run(t, call{args: []string{"--help"}}).stderr}
	for _, c := range commands(t) {
		w.text += b.run(t, call{args: append(c.words(), "--help")}).stderr
		w.commands = append(w.commands, strings.Join(c.words(), " "))
	}
	return w
}

func (w words) has(name string) bool {
	return regexp.MustCompile(`(^|[^A-Za-z0-9-])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9_-])`).MatchString(w.text)
}

// unknown are the names in a text that no help tells of, with their lines.
func (w words) unknown(page, text string) []string {
	var found []string
	flags, variables := regexp.MustCompile(`(?:^|[^A-Za-z0-9-])(--?[A-Za-z][a-z-]*)`),
		regexp.MustCompile(`\b(OMNIAGENT_[A-Z_]+)\b`)
	calls := regexp.MustCompile("(?:^|[`| ])omniagent((?: [a-z][a-z-]*)+)")
	for i, line := range strings.Split(text, "\n") {
		say := func(what string) {
			found = append(found, fmt.Sprintf("%s:%d: - %s: no help names it", page, i+1, what))
		}
		if strings.Contains(line, "printf") || strings.Contains(line, "go install") {
			// flags of other programs
			line = regexp.MustCompile(`(printf|go install).*(\||$)`).ReplaceAllString(line, "")
		}
		for span := range codeIn(line) {
			for _, m := range flags.FindAllStringSubmatch(span, -1) {
				if !w.has(m[1]) {
					say(m[1])
				}
			}
			for _, m := range calls.FindAllStringSubmatch(span, -1) {
				typed := strings.TrimSpace(m[1])
				if !slices.ContainsFunc(w.commands, func(c string) bool {
					return typed == c || strings.HasPrefix(typed, c+" ") || strings.HasPrefix(c, typed+" ")
				}) {
					say("omniagent " + typed)
				}
			}
		}
		for _, m := range variables.FindAllStringSubmatch(line, -1) {
			if !w.has(m[1]) {
				say(m[1])
			}
		}
	}
	return found
}

// codeIn yields the code of a line of Markdown: what stands between backquotes, or a whole line of a block.
func codeIn(line string) func(func(string) bool) {
	return func(yield func(string) bool) {
		if !strings.Contains(line, "`") {
			if strings.HasPrefix(line, "omniagent ") || strings.Contains(line, "| omniagent ") {
				yield(line)
			}
			return
		}
		for i, part := range strings.Split(line, "`") {
			if i%2 == 1 && !yield(part) {
				return
			}
		}
	}
}

func committed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	must(t, err)
	return string(text)
}

// sections are the parts of a page by their headings.
func sections(page string) map[string]string {
	parts := map[string]string{}
	for _, part := range strings.Split("\n"+page, "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		parts[heading] = body
	}
	return parts
}

// blocks are the shell commands of a page.
func blocks(page string) []string {
	var list []string
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		list = append(list, m[1])
	}
	return list
}

func TestAgentsFile(t *testing.T) {
	page := committed(t, "AGENTS.md")
	parts := sections(page)
	for _, heading := range []string{
		"Installation", "Canonical Invocation", "Non-Interactive Flags",
		"Environment Variables", "Input Conventions", "CI Validation",
	} {
		if strings.TrimSpace(parts[heading]) == "" {
			t.Errorf("AGENTS.md: the section %q is missing or empty", heading)
		}
	}
	t.Run("version", func(t *testing.T) {
		if first, _, _ := strings.Cut(page, "\n"); first != "<!-- cli-version: "+version(t)+" -->" {
			t.Errorf("AGENTS.md:1: %s, but this is %s", first, version(t))
		}
	})
	t.Run("names", func(t *testing.T) {
		for _, line := range known(t).unknown("AGENTS.md", page) {
			t.Error(line)
		}
		for _, c := range commands(t) {
			row := fmt.Sprintf("| `%s` | %s | %s |\n", strings.Join(c.words(), " "), c.Danger, c.Summary)
			if !strings.Contains(page, row) {
				t.Errorf("AGENTS.md: + %s", row)
			}
		}
	})
	t.Run("drift", func(t *testing.T) { testDrift(t, page) })
	t.Run("ci_section", func(t *testing.T) {
		m := regexp.MustCompile(`(?m)^exec (\S+)$`).FindStringSubmatch(committed(t, ".ci/run"))
		if m == nil {
			t.Fatal(".ci/run does not end with exec COMMAND")
		}
		if !strings.Contains(parts["CI Validation"], "`"+m[1]+"`") {
			t.Errorf("AGENTS.md: the section CI Validation does not name %s, which CI runs", m[1])
		}
	})
	t.Run("workflows", func(t *testing.T) {
		for heading, part := range parts {
			own := heading == "Installation" || heading == "Recipes" // the latter in order, in test/manual
			for _, block := range blocks(part) {
				if !own && !strings.Contains(block, "COMMAND") {
					runBlock(t, furnished(t), block)
				}
			}
		}
	})
	t.Run("install", func(t *testing.T) { testInstall(t, parts["Installation"]) })
}

// testDrift changes names in a copy of the page and wants each told with its line.
func testDrift(t *testing.T, page string) {
	w := known(t)
	for _, change := range [][2]string{
		{"`--dry-run`", "`--dry-rum`"},
		{"OMNIAGENT_OUTPUT", "OMNIAGENT_FORM"},
		{"omniagent audit-log", "omniagent log"},
		{"omniagent config set", "omniagent configure set"},
	} {
		if !strings.Contains(page, change[0]) {
			t.Fatalf("AGENTS.md does not name %s, so this test has nothing to change", change[0])
		}
		at := strings.Count(page[:strings.Index(page, change[0])], "\n") + 1
		want := fmt.Sprintf("AGENTS.md:%d: - %s", at, strings.Trim(change[1], "`"))
		found := w.unknown("AGENTS.md", strings.Replace(page, change[0], change[1], 1))
		if len(found) != 1 || !strings.HasPrefix(found[0], want) {
			t.Errorf("%s instead of %s is told as %q, not as %q", change[1], change[0], found, want)
		}
	}
}

// runBlock runs shell commands of a page, with the built program first on the path.
func runBlock(t *testing.T, b *box, block string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-eu", "-c", block)
	cmd.Dir, cmd.Env = b.project, b.environment(call{
		unset: []string{"PATH"},
		set:   []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH")},
	})
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s%s", err, block, out)
	}
}

// testInstall does what the page says, twice, in a Go path of its own, and then the check.
func testInstall(t *testing.T, section string) {
	steps := blocks(section)
	if len(steps) != 2 {
		t.Fatalf("AGENTS.md: the section Installation has %d blocks, not the installation and its check", len(steps))
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	must(t, err)
	places := strings.Fields(string(cache))
	cmd := exec.Command("/bin/sh", "-eu", "-c", steps[0]+steps[0]+"cd /\n"+steps[1])
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "GOPATH="+t.TempDir(), "GOBIN=", "GOMODCACHE="+places[0], "GOCACHE="+places[1],
		"GOFLAGS=-buildvcs=false -trimpath", "CGO_ENABLED=0", "HOME="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the installation fails: %v\n%s", err, out)
	}
	e := envelope{}
	must(t, json.Unmarshal(out, &e))
	if got := e.Data.(map[string]any)["version"]; got != version(t) {
		t.Errorf("installed is version %v, not %s", got, version(t))
	}
}

func TestSkills(t *testing.T) {
	b := furnished(t)
	if o := b.run(t, call{args: []string{"generate-skills", "skills"}}); o.code != 0 {
		t.Fatalf("it fails\n%s", o)
	}
	names, err := filepath.Glob(filepath.Join(b.project, "skills", "*.md"))
	must(t, err)
	if len(names) != len(commands(t))+1 {
		t.Fatalf("there are %d files for %d commands", len(names), len(commands(t)))
	}
	front := regexp.MustCompile(`^---\nname: [a-z-]+\ndescription: [^\n]+\nversion: ` + regexp.QuoteMeta(version(t)) +
		`\n---\n\n# `)
	w := known(t)
	for _, path := range names {
		text, err := os.ReadFile(path)
		must(t, err)
		name := filepath.Base(path)
		if !front.Match(text) {
			t.Errorf("%s does not begin with name, description and this version:\n%.200s", name, text)
		}
		if name != "CONTEXT.md" && len(blocks(string(text))) < 3 {
			t.Errorf("%s has less than three examples", name)
		}
		for _, block := range blocks(string(text)) {
			runBlock(t, b, harmless(t, name, strings.TrimSpace(block)))
		}
		for _, problem := range w.unknown(name, string(text)) {
			t.Error(problem)
		}
	}
	for _, path := range names { // what lies in the repository is what the program writes
		text, err := os.ReadFile(path)
		must(t, err)
		if old, err := os.ReadFile(filepath.Join(repository, "skills",
			filepath.Base(path))); string(old) != string(text) {
			t.Errorf("skills/%s is out of date (%v): go run ./cmd/omniagent generate-skills skills",
				filepath.Base(path), err)
		}
	}
	if kept, _ := filepath.Glob(filepath.Join(repository, "skills", "*")); len(kept) != len(names) {
		t.Errorf("skills/ has %d files, the program writes %d", len(kept), len(names))
	}
}

// harmless is a line of a card that is looked at and not done.
func harmless(t *testing.T, card, line string) string {
	t.Helper()
	if strings.HasSuffix(line, "--schema") {
		return line
	}
	flag := "--validate-only"
	for _, c := range commands(t) {
		if card == "SKILL-"+strings.Join(c.words(), "-")+".md" {
			flag = c.parseOnly()
		}
	}
	if strings.Contains(line, " --validate-only") && flag == "--validate-only" {
		return line
	}
	if before, behind, another := strings.Cut(line, " -- "); another {
		return before + " " + flag + " -- " + behind
	}
	return line + " " + flag
}

func TestManPages(t *testing.T) {
	b := newBox(t)
	if o := b.run(t, call{args: []string{"generate-man", "man1"}}); o.code != 0 {
		t.Fatalf("it fails\n%s", o)
	}
	whole, err := os.ReadFile(filepath.Join(b.project, "man1", "omniagent.1"))
	must(t, err)
	for _, c := range commands(t) {
		name := "omniagent-" + strings.Join(c.words(), "-") + ".1"
		if !strings.Contains(strings.ReplaceAll(string(whole), `\-`, "-"), "\n.BR "+strings.TrimSuffix(name, ".1")+
			" (1)\n") {
			t.Errorf("omniagent.1 does not name %s", name)
		}
		raw, err := os.ReadFile(filepath.Join(b.project, "man1", name))
		if err != nil {
			t.Errorf("%s has no page: %v", c.key, err)
			continue
		}
		text := strings.ReplaceAll(string(raw), `\-`, "-")
		if !strings.HasPrefix(text, ".TH ") || !strings.Contains(text[:strings.Index(text, "\n")], version(t)) {
			t.Errorf("%s does not begin with a title and the version", name)
		}
		named := []string{}
		for _, m := range regexp.MustCompile(`(?m)^\.B (?:-[a-zA-Z], )?--([a-z-]+)`).FindAllStringSubmatch(text, -1) {
			named = append(named, m[1])
		}
		slices.Sort(named)
		flags := []string{}
		for f := range c.Flags {
			flags = append(flags, f)
		}
		slices.Sort(flags)
		if !slices.Equal(named, flags) {
			t.Errorf("%s names the options %v, the command has %v", name, named, flags)
		}
	}
	testManReads(t, filepath.Join(b.project, "man1"))
}

// testManReads lets a formatter read every page, if there is one.
func testManReads(t *testing.T, dir string) {
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	must(t, err)
	for tool, args := range map[string][]string{
		"mandoc": {"-T", "lint", "-W", "error"},
		"groff":  {"-man", "-ww", "-Tutf8", "-z"},
	} {
		path, err := exec.LookPath(tool)
		if err != nil {
			continue
		}
		if out, err := exec.Command(path, append(args, pages...)...).CombinedOutput(); err != nil || tool == "groff" &&
			len(out) > 0 {
			t.Errorf("%s cannot read the pages: %v\n%s", tool, err, out)
		}
	}
}

func TestCompletions(t *testing.T) {
	b := furnished(t)
	for shell, check := range map[string][]string{
		"bash": {"bash", "-n"}, "zsh": {"zsh", "-n"},
		"fish": {"fish", "--no-execute"}, "powershell": nil,
	} {
		o := b.run(t, call{args: []string{"completion", shell}})
		if lines := strings.SplitN(o.stdout, "\n", 3); o.code != 0 || len(lines) < 3 ||
			lines[1] != "# omniagent "+version(t) {
			t.Fatalf("the script for %s does not carry the version\n%s", shell, o)
		}
		script := b.write(t, "project/"+shell, o.stdout)
		if check == nil {
			continue
		}
		if path, err := exec.LookPath(check[0]); err == nil {
			if out, err := exec.Command(path, check[1], script).CombinedOutput(); err != nil {
				t.Errorf("%s cannot read its script: %v\n%s", shell, err, out)
			}
		}
	}
	complete := func(words ...string) []string { // what every script asks
		o := b.run(t, call{args: append([]string{"__complete"}, words...)})
		names := []string{}
		for line := range strings.Lines(o.stdout) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if !strings.HasPrefix(name, ":") {
				names = append(names, name)
			}
		}
		return names
	}
	for _, c := range commands(t) {
		words := c.words()
		last := words[len(words)-1]
		if got := complete(append(words[:len(words)-1:len(words)-1], last[:1])...); !slices.Contains(got, last) {
			t.Errorf("%v is not completed: %v", words, got)
		}
		got := complete(append(c.words(), "--")...)
		for name := range c.Flags {
			if !slices.Contains(got, "--"+name) {
				t.Errorf("--%s of %s is not completed: %v", name, c.key, got)
			}
		}
	}
}
