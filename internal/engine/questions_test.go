package engine_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"omniagent/internal/engine"
	"omniagent/internal/event"
	"omniagent/internal/guard"
	"omniagent/internal/setting"
	"omniagent/internal/tool"
)

// limit is a way to be asked, and how many of a thousand commands may come to it.
type limit struct {
	mode   setting.Approval
	canAsk bool
	ends   string
	most   float64
}

// TestHowMuchIsAsked counts the questions and refusals of a session of work: the commands of a public agent at real
// projects, a quarter of its runs. OMNIAGENT_COMMANDS names another file of that form.
func TestHowMuchIsAsked(t *testing.T) {
	lines := publicCommands(t)
	place := guard.Place{Root: "/testbed", Dir: "/testbed", Home: "/root"}
	held := place
	held.Ground.Cover.Roots = []string{place.Root}
	for _, c := range []struct {
		ground string
		place  guard.Place
		walls  engine.Walls
		limits []limit
	}{
		{"whole walls and a snapshot", held, engine.Whole, []limit{
			{setting.Yolo, false, engine.Asks, 1},
			{setting.Default, true, engine.Asks, 20},
			{setting.Default, false, engine.Asks, 1},
			{setting.Yolo, false, engine.Denied, 1},
			{setting.Default, true, engine.Denied, 1},
			{setting.Default, false, engine.Denied, 1},
		}},
		{"whole walls", place, engine.Whole, []limit{{setting.Default, true, engine.Asks, 1000}}},
		{"no walls", place, engine.Missing, []limit{{setting.Default, true, engine.Asks, 1000}}},
	} {
		for _, l := range c.limits {
			n := 0
			for _, line := range lines {
				a := tool.Action{Kind: event.Shell, Changes: true, Command: line}
				judge := guard.Judge{Known: tool.Ours().Specs(), Place: c.place}
				what, why := engine.Outcome(l.mode, judge, c.walls, "Bash", a, l.canAsk)
				if what == l.ends {
					if n++; testing.Verbose() && l.most < 1000 {
						t.Logf("%s: %s: %.200q", what, why, line)
					}
				}
			}
			share := 1000 * float64(n) / float64(len(lines))
			t.Logf("%s, mode %s, somebody there: %v: %s %.1f of 1000", c.ground, l.mode, l.canAsk, l.ends,
				share)
			if share > l.most {
				t.Errorf("more than %v", l.most)
			}
		}
	}
}

// publicCommands are those of the file, one by one.
func publicCommands(t *testing.T) (lines []string) {
	t.Helper()
	name := "testdata/commands.jsonl.gz"
	if other := os.Getenv("OMNIAGENT_COMMANDS"); other != "" {
		name = other
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(packed)
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		var one struct{ Command string }
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, one.Command)
	}
	if len(lines) < 1000 || scanner.Err() != nil {
		t.Fatalf("%d commands: %v", len(lines), scanner.Err())
	}
	return lines
}
