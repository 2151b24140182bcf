package command

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/host/shim"
)

// TestManual checks that the pages written by hand mention every flag, exit code and setting.
func TestManual(t *testing.T) {
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	manual := page("shim.md")
	for _, f := range shim.Flags() {
		for _, word := range []string{"`--" + f.Name, f.Default} {
			if !strings.Contains(manual, word) {
				t.Errorf("docs/shim.md lacks %s of --%s", word, f.Name)
			}
		}
		for _, value := range f.Allowed {
			if !strings.Contains(manual, "--"+f.Name+" "+value) {
				t.Errorf("docs/shim.md lacks --%s %s", f.Name, value)
			}
		}
	}
	_, report, _ := strings.Cut(manual, "\n## The report\n")
	report, _, _ = strings.Cut(report, "\n## ")
	for field := range reflect.TypeFor[shim.Report]().Fields() {
		if name := field.Tag.Get("json"); !strings.Contains(report, "`"+name+"`") {
			t.Errorf("docs/shim.md lacks the member %s of the report", name)
		}
	}
	exits, numbers := directCalls(Ours().Agents).Exits, 0
	_, codes, _ := strings.Cut(manual, "\n## Exit codes\n")
	codes, _, _ = strings.Cut(codes, "\n## ")
	for _, e := range exits {
		if strings.Contains(codes, "| "+e.Number+" |") || strings.Contains(codes, e.Number+",") ||
			strings.Contains(codes, ", "+e.Number+" |") {
			numbers++
		}
	}
	if numbers != len(exits) {
		t.Errorf("docs/shim.md tells %d of %d exit codes", numbers, len(exits))
	}
	settings := page("configuration.md")
	for _, k := range Program().ConfigKeys() {
		if !strings.Contains(settings, "| `"+k.Name+"` |") {
			t.Errorf("docs/configuration.md lacks %s", k.Name)
		}
	}
	own := page("custom-agents.md")
	for _, name := range agentsfile.Names() {
		if ending := strings.TrimPrefix(filepath.Ext(name), "."); !strings.Contains(own, "`"+ending+"`") {
			t.Errorf("docs/custom-agents.md lacks the ending %s", ending)
		}
	}
}
