//go:build unix

package evaluation

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestReadiness computes the readiness of the repository for agents: five dimensions of three points each, a point for
// each that holds. All fifteen are required.
func TestReadiness(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	p := outsider(ours(t), t.TempDir())
	total := 0
	for _, d := range []struct {
		name   string
		points func(*probe) []criterion
	}{
		{"documentation", documented}, {"self-description", described}, {"integrations", integrated}, {
			"setup",
			setUp,
		}, {"workflows", workflows},
	} {
		got := 0
		for _, c := range d.points(p) {
			if c.holds {
				got++
			} else {
				t.Errorf("%s: it does not hold that %s", d.name, c.text)
			}
		}
		total += got
		t.Logf("%s %d/3", d.name, got)
	}
	t.Logf("readiness %d/15", total)
}

func documented(p *probe) []criterion {
	page := p.guidePage()
	sections := true
	for _, name := range []string{
		"Canonical Invocation", "Non-Interactive Flags", "Environment Variables",
		"Input Conventions", "Installation",
	} {
		sections = sections && section(page, name) != ""
	}
	help := p.run("config", "set", "--help").err + p.run("--help").err
	spot := true
	for _, name := range []string{"--dry-run", "--idempotency-key", "--timeout"} {
		spot = spot && strings.Contains(section(page, "Non-Interactive Flags"), name) && strings.Contains(help, name)
	}
	return []criterion{
		{1, sections, guide + " has the sections that agents look for"},
		{2, spot, "three of its flags are in the help"},
		{3, page != "" && len(p.unknown(page)) == 0, "every flag and variable that it names exists"},
	}
}

func described(p *probe) []criterion {
	manifest := p.run("manifest")
	return []criterion{
		{
			1, valid("manifest-response.json", p.s.schema().at("data")) == nil &&
				valid("manifest-response.json", manifest.at("data")) == nil,
			"--schema and manifest pass the published schema",
		},
		{
			2, manifest.str("data/etag") != "" && len(p.commands()) > 0 &&
				every(p.commands(), func(name string, _ value) bool { return manifest.has("data/commands/" + name) }),
			"there is an etag and every command",
		},
		{3, every(p.commands(), func(_ string, e value) bool {
			return len(e.at("exit_codes").keys()) > 1 &&
				every(members(e.at("flags")), func(_ string, f value) bool { return f.str("type") != "" })
		}), "flags have types and commands their exit codes"},
	}
}

func integrated(p *probe) []criterion {
	shipped, version := cards(), strings.TrimSpace(p.run("--version").out)
	same := len(shipped) > 0
	for _, text := range shipped {
		same = same && strings.Contains(text, "version: "+version)
	}
	return []criterion{
		{1, len(shipped) > len(p.commands()), "skills/ has a card for every command and one that leads to them"},
		{2, same, "each carries the version " + version},
		{3, p.sameCards(shipped), "they equal what generate-skills writes now"},
	}
}

func setUp(p *probe) []criterion {
	text := section(p.guidePage(), "Installation")
	installed := false
	for line := range strings.Lines(strings.Join(blocks(text), "")) {
		if strings.HasPrefix(line, "go install ") {
			_, once := p.install(strings.TrimSpace(line))
			_, twice := p.install(strings.TrimSpace(line))
			installed = once && twice
		}
	}
	_, err := os.Stat(filepath.Join(repository, "go.mod"))
	return []criterion{
		{1, installed, "the command of " + guide + " installs it, twice"},
		{2, err == nil && strings.Contains(text, "Go 1."), "what it needs is declared and said"},
		{3, strings.Contains(p.guidePage(), "omniagent doctor") && p.run("doctor").there &&
			strings.Contains(text, "omniagent version"), "the health check is documented and runs"},
	}
}

// workflows runs every block of shell that the guide has under Workflows, line by line, in a fresh machine.
func workflows(p *probe) []criterion {
	text := section(p.guidePage(), "Workflows")
	list := blocks(text)
	ran, steps := len(list) > 0, 0
	_ = os.MkdirAll(p.work+"/.git", 0o755)
	p.script("git", `echo "git version 2.45.0"`)
	if path, err := filepath.Abs(p.s.argv[0]); err == nil {
		_ = os.Symlink(path, filepath.Join(p.tools, "omniagent"))
	}
	for _, block := range list {
		steps = max(steps, strings.Count(block, "omniagent "))
		cmd := exec.CommandContext(p.ctx, "/bin/sh", "-e", "-c", block)
		cmd.Dir = p.work
		cmd.Env = append(p.environment(), "PATH="+p.tools+":/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		if err != nil {
			ran = false
			p.note("%s: %s", block, out)
		}
	}
	reads := regexp.MustCompile(`(?m)^omniagent config get `).MatchString(strings.Join(list, ""))
	creates := regexp.MustCompile(`(?m)^omniagent config set .*--`).MatchString(strings.Join(list, ""))
	return []criterion{
		{1, reads && creates, "the workflows read and create, with flags that ask nothing"},
		{2, steps > 1, "one has several steps"},
		{3, ran, "each of them runs as written: " + strings.Join(p.notes, "; ")},
	}
}
