package safety

import "testing"

func TestPartOf(t *testing.T) {
	for file, want := range map[string]string{
		"/w/.eidolon/agents/rev.md":             "the agent @agent:rev, whose prompt a conversation gets",
		"/w/.eidolon/commands/fix.md":           "the command /fix",
		"/w/.eidolon/openspec/apply.md":         "the command /openspec:apply",
		"/w/.eidolon/commands/git/pr.md":        "the command /git:pr",
		"/w/.eidolon/projects/x/note.md":        "",
		"/w/.omniagent/commands/fix.md":         "the command /fix",
		"/w/.omniagent/notes.md":                "",
		"/w/.omniagent/skills/release/SKILL.md": "the skill release, which a model may follow",
		"/w/docs/x.md":                          "",
	} {
		if got := partOf(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}
