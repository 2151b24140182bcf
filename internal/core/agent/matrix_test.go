package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/kit/setting"
)

// TestMatrixFiles reads the matrices of all drivers: a line that means nothing would be left out in silence.
func TestMatrixFiles(t *testing.T) {
	files, err := filepath.Glob("../../agents/*/matrix.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no matrix is found: %v", err)
	}
	files = append(files, "../../native/matrix.txt")
	features := []string{
		Approval, Sandbox, Output, Model, Web, Schema, Continue, Resume, Provider, APIBase, SessionID, Ask,
		RepoConfig, Denials, Records, ACP,
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			key, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			_, level, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch {
			case line[0] == '#' || key == "limit":
			case line[0] == ' ' && slices.Contains([]string{"args", "weak", "env", "needs", "note"}, key):
			case line[0] != ' ' && slices.Contains(features, strings.TrimRight(key, ":,")) &&
				slices.Contains([]Level{Full, Nearest, None}, Level(level)):
			default:
				t.Errorf("%s: %q means nothing", file, line)
			}
		}
		m := ReadMatrix("1.0", string(data))
		for _, feature := range features {
			if !slices.ContainsFunc(m.Rows, func(r Row) bool { return r.Feature == feature }) {
				t.Errorf("%s says nothing of %s", file, feature)
			}
		}
		for _, r := range m.Rows {
			if r.Interactive.Level == "" || r.OneShot.Level == "" {
				t.Errorf("%s: %s %s has no level in one of the modes", file, r.Feature, r.Value)
			}
		}
	}
}

func TestReadMatrix(t *testing.T) {
	m := ReadMatrix("1.0", "limit bytes=5 characters=7\n    note too long\n"+
		"web on, interactive: yes\n    args -w x\n    weak\n"+
		"    env A=b c\n    note one\n    note two\nweb on, one-shot: no\nmodel: nearest\n    needs p q\n")
	on, off := m.Cell(Web, "on", setting.Interactive), m.Cell(Web, "on", setting.OneShot)
	if m.Measured != "1.0" || m.Limit != (Limit{Characters: 7, Bytes: 5, Note: "too long"}) || len(m.Rows) != 2 ||
		on.Level != Full || !slices.Equal(on.Args, []string{"-w", "x"}) || on.Weak == nil || len(on.Weak) != 0 ||
		!slices.Equal(on.Env, []string{"A=b c"}) || on.Note != "one two" || off.Level != None || off.Weak != nil {
		t.Errorf("got %+v", m)
	}
	if c := m.Cell(Model, "", setting.OneShot); c.Level != Nearest || !slices.Equal(c.Needs, []string{"p", "q"}) {
		t.Errorf("got %+v", c)
	}
}
