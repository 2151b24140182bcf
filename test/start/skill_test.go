package start

import (
	"strings"
	"testing"
)

// TestSkills: a model gets the user's skills, and those of a project whose content is trusted.
func TestSkills(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.atHome(t, ".config/omniagent/skills/mine/SKILL.md",
		"---\nname: mine\ndescription: >\n  How I do it,\n  always\n---\n\nDo as I do.\n")
	p.atHome(t, ".claude/skills/both/SKILL.md", "---\nname: both\ndescription: my own\n---\nThe user's.\n")
	p.write(t, "skills/both/SKILL.md", "---\nname: both\ndescription: of the project\n---\nThe project's.\n")
	p.write(t, "skills/theirs/SKILL.md", "# Theirs\nDo as they do.\n")
	ask := func(name string) (told, request string, log string) {
		args, env, server := wires()[0].scripted(t, `[{"call":{"name":"Skill","input":{"skill":"`+name+
			`","args":"now"}}},{"say":"it says: ${result}"}]`)
		r := p.launch(t, env, append(args, "-p", "go")...)
		if _, exit := r.end(); exit != 0 {
			t.Fatalf("exit %d: %s", exit, r.stderr.String())
		}
		return strings.Join(r.all(), "\n"), string(server.Requests()[0].Raw), r.stderr.String()
	}
	told, request, log := ask("mine")
	if !strings.Contains(told, "Do as I do.") || !strings.Contains(told, "ARGUMENTS: now") ||
		!strings.Contains(told, `"Skill"`) || !strings.Contains(request, `- mine: How I do it, always`) ||
		!strings.Contains(request, "- both: my own") || strings.Contains(request, "theirs") {
		t.Errorf("%s\n%s", told, request)
	}
	if !strings.Contains(log, "the skill theirs is not offered, because its content is not trusted") {
		t.Errorf("not told: %s", log)
	}
	p.run(t, "trust")
	told, request, _ = ask("both")
	if !strings.Contains(told, "The project's.") || !strings.Contains(request, "- both: of the project") ||
		strings.Contains(request, "my own") || !strings.Contains(request, "- theirs: Theirs Do as they do.") {
		t.Errorf("%s\n%s", told, request)
	}
	if told, _, _ = ask("nothing"); !strings.Contains(told, "there is no skill") {
		t.Errorf("%s", told)
	}
}
