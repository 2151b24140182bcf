//go:build unix

package evaluation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// What is shipped beside the program: the guide for agents, the cards, the published schemas.

// published reads the schemas that the world agreed on; they refer to each other by file name.
var published = sync.OnceValues(func() (map[string]*jsonschema.Resolved, error) {
	load := func(uri *url.URL) (*jsonschema.Schema, error) {
		data, err := os.ReadFile(filepath.Join("testdata", "schemas", filepath.Base(uri.Path)))
		if err != nil {
			return nil, err
		}
		var s jsonschema.Schema
		return &s, json.Unmarshal(data, &s)
	}
	all := map[string]*jsonschema.Resolved{}
	for _, name := range []string{"response-envelope.json", "manifest-response.json"} {
		s, err := load(&url.URL{Path: name})
		if err != nil {
			return nil, err
		}
		resolved, err := s.Resolve(&jsonschema.ResolveOptions{BaseURI: "file:///" + name, Loader: load})
		if err != nil {
			return nil, err
		}
		all[name] = resolved
	}
	return all, nil
})

// valid says what is wrong with a value by a published schema.
func valid(schema string, v value) error {
	all, err := published()
	if err != nil {
		return err
	}
	return all[schema].Validate(v.raw)
}

// section is the text below a heading of the second level.
func section(page, heading string) string {
	_, rest, found := strings.Cut(page, "\n## "+heading+"\n")
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// blocks are the fenced pieces of a text that a shell would read.
func blocks(text string) []string {
	var list []string
	for _, m := range regexp.MustCompile("(?s)```(?:sh|console|bash)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

const guide = "AGENTS.md"

// isOurs reports whether the pages of this repository are about the subject: another program has none.
func (p *probe) isOurs() bool { return p.s.name == "omniagent" }

// guidePage is the guide for agents that belongs to the subject.
func (p *probe) guidePage() string {
	if !p.isOurs() {
		return ""
	}
	return documentation(guide)
}

// install carries out the guide's own command, into a folder of ours.
func (p *probe) install(line string) (exit int, took bool) {
	cmd := exec.CommandContext(p.ctx, "sh", "-c", line)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "GOBIN="+p.tools, "GOFLAGS=-buildvcs=false -trimpath", "GOPROXY=off",
		"CGO_ENABLED=0")
	err := cmd.Run()
	p.trace = append(p.trace, fmt.Sprintf("`%s` → %d", line, cmd.ProcessState.ExitCode()))
	return cmd.ProcessState.ExitCode(), err == nil
}

func installation(p *probe) {
	text := section(p.guidePage(), "Installation")
	all := strings.Join(blocks(text), "")
	p.need(1, all != "", "%s has a section Installation", guide)
	line := ""
	for l := range strings.Lines(all) {
		if strings.HasPrefix(l, "go install ") {
			line = strings.TrimSpace(l)
		}
	}
	interactive := regexp.MustCompile(`(?m)\b(read|sudo|select)\b`).MatchString(all)
	first, once := -1, false
	if line != "" {
		first, once = p.install(line)
	}
	p.need(2, once && first == 0 && !interactive, "its command installs the program and asks nothing")
	again := false
	if once {
		_, again = p.install(line)
	}
	p.need(3, again, "a second run ends with 0")
	name := filepath.Join(p.tools, p.s.name)
	verified := value{}
	if again {
		out, _ := exec.CommandContext(p.ctx, name, "version").Output()
		verified = parse(string(out))
	}
	p.need(3, strings.Contains(all, p.s.name+" version") && verified.yes("ok"),
		"the command that verifies it follows, and works")
}

// spoken are the flags, commands and variables that a text names.
func spoken(text string) (flags, variables []string) {
	for _, m := range regexp.MustCompile("(?:^|[\\s`(|])--([a-z][a-z0-9-]+)").FindAllStringSubmatch(text, -1) {
		flags = append(flags, m[1])
	}
	variables = regexp.MustCompile(`\bOMNIAGENT_[A-Z_]+\b`).FindAllString(text, -1)
	slices.Sort(flags)
	slices.Sort(variables)
	return slices.Compact(flags), slices.Compact(variables)
}

// unknown are the names in a text that the subject's schema does not have.
func (p *probe) unknown(text string) []string {
	var list []string
	flags, variables := spoken(text)
	schema := p.s.schema()
	known := map[string]bool{"no": true}
	for _, e := range schema.at("data/commands").keys() {
		for _, f := range schema.at("data/commands/" + e + "/flags").keys() {
			known[f] = true
		}
	}
	for _, v := range schema.list("meta/environment") {
		known[v.str("name")] = true
	}
	for _, name := range append(flags, variables...) {
		if !known[name] {
			list = append(list, name)
		}
	}
	return list
}

// cards are the skill files in the repository, by name.
func cards() map[string]string {
	all := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(repository, "skills", "*.md"))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		all[filepath.Base(f)] = string(b)
	}
	return all
}

func artifactDrift(p *probe) {
	version := strings.TrimSpace(p.run("--version").out)
	shipped := map[string]string{}
	if p.isOurs() {
		shipped = cards()
	}
	p.need(1, len(shipped) > 0, "skills/ is shipped in the same repository as the program")
	same := version != ""
	for _, text := range shipped {
		same = same && strings.Contains(text, "version: "+version)
	}
	p.need(2, same && len(shipped) > 0, "each card carries the version that --version prints")
	p.need(3, p.sameCards(shipped), "they equal, to the byte, what generate-skills writes now")
	p.need(3, len(shipped) > 0 && len(p.unknown(strings.Join(slices.Collect(maps.Values(shipped)), "\n"))) == 0,
		"and name no flag or variable that does not exist")
}

// sameCards compares cards with those that the subject writes now.
func (p *probe) sameCards(shipped map[string]string) bool {
	p.run("generate-skills", "now")
	files, _ := filepath.Glob(filepath.Join(p.work, "now", "*.md"))
	for _, f := range files {
		if b, _ := os.ReadFile(f); shipped[filepath.Base(f)] != string(b) {
			return false
		}
	}
	return len(files) > 0 && len(files) == len(shipped)
}

func docDrift(p *probe) {
	page := p.guidePage()
	first, _, _ := strings.Cut(page, "\n")
	p.need(1, page != "", "there is %s", guide)
	p.need(2, first == "<!-- cli-version: "+strings.TrimSpace(p.run("--version").out)+" -->",
		"its first line carries the version that --version prints")
	p.need(3, page != "" && len(p.unknown(page)) == 0, "it names no flag or variable that does not exist")
	commands := true
	for _, m := range regexp.MustCompile(
		"(?m)^\\| `([a-z -]+)` \\| (?:safe|mutating|destructive) ").FindAllStringSubmatch(page, -1) {
		commands = commands && p.commands()[strings.ReplaceAll(m[1], " ", ".")].there
	}
	p.need(3, page != "" && commands && every(p.commands(), func(name string, _ value) bool {
		return strings.Contains(page, "`"+strings.ReplaceAll(name, ".", " ")+"`") ||
			strings.Contains(page, "omniagent "+strings.ReplaceAll(name, ".", " "))
	}), "and each command of the manifest, no other")
	p.note("this check is part of the test command, so it fails a change that lets them drift")
}

// outsider is a probe outside of any mode.
func outsider(s *subject, dir string) *probe { return newProbe(context.Background(), s, dir) }
