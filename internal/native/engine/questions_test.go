package engine_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/guard"
)

// limit is how many of a thousand commands may come to something.
type limit struct {
	mode   setting.Approval
	canAsk bool
	asked  float64
	denied float64 // or asked about where nobody is there
}

// TestHowMuchIsAsked counts the questions and refusals about the commands of a public agent at real projects, a quarter
// of the runs that are known. OMNIAGENT_COMMANDS names another file of that form. docs/decisions/0029 has the figures.
func TestHowMuchIsAsked(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	lines := publicCommands(t)
	policy := autorun.For("/testbed", nil, "") // nothing is there, so that each name with a dot is a new one
	judge := guard.Judge{
		Known: tool.Ours().Specs(), Place: guard.Place{
			Root: "/testbed", Dir: "/testbed", Home: "/root",
			Fresh: func(path string) string { return policy.Why(path, true) },
		},
	}
	for _, covered := range []bool{true, false} {
		limits := []limit{{setting.Yolo, false, 0, 1}, {setting.Default, true, 20, 1}, {setting.Default, false, 0, 1}}
		if judge.Place.Containment.Cover.Roots = nil; covered {
			judge.Place.Containment.Cover.Roots = []string{"/testbed"}
		} else {
			limits = []limit{{setting.Default, true, 1000, 1}} // the list of read-only commands
		}
		for _, l := range limits {
			asked, denied := 0.0, 0.0
			for _, line := range lines {
				a := tool.Action{Kind: event.Shell, Changes: true, Command: line}
				what, why := engine.Outcome(l.mode, judge, engine.Whole, "Bash", a, l.canAsk)
				switch {
				case what == engine.Runs:
					continue
				case what == engine.Asks && l.canAsk:
					asked++
				default:
					denied++
				}
				if covered {
					t.Logf("%s: %s: %.200q", what, why, line)
				}
			}
			asked, denied = asked*1000/float64(len(lines)), denied*1000/float64(len(lines))
			t.Logf("snapshot %v, mode %s, somebody there: %v: of 1000 %.1f asked about, %.1f refused", covered, l.mode,
				l.canAsk, asked, denied)
			if asked > l.asked || denied > l.denied {
				t.Errorf("at most %.1f and %.1f are right", l.asked, l.denied)
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

// TestNoPublicCommandIsTakenForOneThatRuinsTheMachine: what is refused in every mode is refused for good, so that a
// mistake would be one for good, too.
func TestNoPublicCommandIsTakenForOneThatRuinsTheMachine(t *testing.T) {
	t.Parallel()
	judge := guard.Judge{Place: guard.Place{Root: "/testbed", Dir: "/testbed", Home: "/root"}}
	for _, line := range publicCommands(t) {
		a := tool.Action{Kind: event.Shell, Changes: true, Command: line}
		what, why := engine.Outcome(setting.Yolo, judge, engine.Unwanted, "Bash", a, true)
		if what == engine.Denied && strings.Contains(why, "no mode allows") {
			t.Errorf("%s: %.200q", why, line)
		}
	}
}

// TestNoModeRunsWhatRuinsTheMachine: in a workspace where walls and a snapshot hold everything else.
func TestNoModeRunsWhatRuinsTheMachine(t *testing.T) {
	judge := guard.Judge{Place: guard.Place{Root: "/w", Dir: "/w", Home: "/h"}}
	judge.Place.Containment.Cover.Roots = []string{"/w"}
	for _, mode := range setting.Approvals() {
		for _, walls := range []engine.Walls{engine.Unwanted, engine.Whole} {
			a := tool.Action{Kind: event.Shell, Changes: true, Command: "cd / && rm -rf *"}
			if what, why := engine.Outcome(mode, judge, walls, "Bash", a, true); what != engine.Denied || why == "" {
				t.Errorf("%s, walls %d: %s, %s", mode, walls, what, why)
			}
		}
	}
}
