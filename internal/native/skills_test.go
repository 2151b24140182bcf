package native

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkillsAreLimited: each is a part of every request. What is not offered is named.
func TestSkillsAreLimited(t *testing.T) {
	offered := func(t *testing.T, skills map[string]string) (n int, log string) {
		dir := t.TempDir()
		for name, text := range skills {
			path := filepath.Join(dir, "skills", name, "SKILL.md")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, "skills", "empty"), 0o700); err != nil {
			t.Fatal(err)
		}
		o := Options{Dir: t.TempDir(), Config: dir, Log: func(format string, args ...any) {
			log += fmt.Sprintf(format, args...) + "\n"
		}}
		return len(o.skills()), log
	}
	text := strings.Repeat("x", longestSkill)
	n, log := offered(t, map[string]string{"fits": text, "long": text + "x"})
	if n != 1 || strings.Count(log, "\n") != 1 || !strings.HasPrefix(log, "the skill long is not offered: ") {
		t.Errorf("%d skills, %s", n, log)
	}
	many := map[string]string{}
	for i := range mostSkills + 1 {
		many[fmt.Sprintf("s%03d", i)] = "x"
	}
	n, log = offered(t, many)
	if n != mostSkills || log != "the skill s064 is not offered, because there are already 64\n" {
		t.Errorf("%d skills, %s", n, log)
	}
}

// TestRefusalsAreFew: a command that is refused very much does not fill its result with that.
func TestRefusalsAreFew(t *testing.T) {
	var r refusals
	for i := range mostRefusals + 5 {
		r.add(fmt.Sprint(i))
	}
	if n := len(r.take()); n != mostRefusals {
		t.Errorf("%d refusals", n)
	}
}
