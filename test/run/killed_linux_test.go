package run

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKilledAtWork: after kill -9 of a run, what its recorded calls explain is the run's, the rest is perhaps, and the
// record says what shows it.
func TestKilledAtWork(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", "--undo=off", "--fork"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).model(`[{"calls":[{"write":{"path":"w.txt","content":"agent\n"}}]},
				{"calls":[{"shell":"echo two >>a.txt"}]}, {"calls":[{"shell":"touch began; sleep 1000"}]}, {"say":"ok"}]`)
			p.put("a.txt", "one\n")
			p.put("notes.txt", "notes\n")
			args := []string{"run", "--agent", "native", "--provider", "openai", "-m", "m", "--yolo", "-p", "go"}
			if how != "" {
				args = append(args, how)
			}
			cmd := p.command(args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			p.begun(how == "--fork")
			p.put("notes.txt", "mine\n")
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			id := p.newest()
			shown := p.reaches(id, "unknown_outcome")
			next, rest, _ := strings.Cut(strings.Join(shown.Data.Summary.Next, "\n"), " shows what it changed")
			words := strings.Fields(next)
			switch how {
			case "--fork":
				if next != "omniagent fork diff work-1" {
					t.Errorf("next is %q", next)
				}
				if a, err := p.command("runs", "diff", id).CombinedOutput(); err == nil ||
					!strings.Contains(string(a), "omniagent fork diff work-1") {
					t.Errorf("%v: %s", err, a)
				}
				return
			case "--undo=off":
				if !strings.HasPrefix(next, "look at what it changed, then: omniagent runs retry") {
					t.Errorf("next is %q", next)
				}
			default:
				if len(words) != 4 || words[3] != "--dry-run" ||
					rest != ", and what others may have changed since; then: omniagent runs retry "+id {
					t.Fatalf("next is %q, then %q", next, rest)
				}
				p.tookBack(0, words[1:], "a.txt w.txt", "began notes.txt")
			}
			if got := p.differs(id); !slices.Equal(got, []string{"added w.txt", "modified a.txt"}) {
				t.Errorf("the run has changed %q", got)
			}
			out, err := p.command("runs", "diff", id).CombinedOutput()
			said := string(out)
			if err != nil || !strings.Contains(said, "+two\n") || strings.Contains(said, "+mine") ||
				!strings.Contains(said, "perhaps changed by the run too, and not shown: began, notes.txt") {
				t.Errorf("%v: %s", err, said)
			}
			if how == "" { // what a person wrote afterwards stays
				p.tookBack(3, words[1:3], "a.txt w.txt", "began notes.txt")
				if p.read("notes.txt") != "mine\n" || p.read("a.txt") != "one\n" {
					t.Errorf("notes.txt is %q, a.txt %q", p.read("notes.txt"), p.read("a.txt"))
				}
				p.tookBack(0, append(words[1:3], "--take-all"), "began notes.txt", "")
			}
		})
	}
}

// tookBack calls undo, and checks its exit code, what it restored, and what it kept.
func (p *place) tookBack(code int, args []string, restored, kept string) {
	p.t.Helper()
	cmd := p.command(append(args, "--output", "json")...)
	out, _ := cmd.Output()
	var a struct {
		Data struct {
			Restored []struct{ Value string }
			Kept     []struct{ Path string }
		}
	}
	err := json.Unmarshal(out, &a)
	var did, left []string
	for _, f := range a.Data.Restored {
		did = append(did, f.Value)
	}
	for _, f := range a.Data.Kept {
		left = append(left, f.Path)
	}
	if err != nil || cmd.ProcessState.ExitCode() != code || strings.Join(did, " ") != restored ||
		strings.Join(left, " ") != kept {
		p.t.Errorf("%v: %v, exit %d, restored %q, kept %q\n%s", args, err, cmd.ProcessState.ExitCode(), did, left, out)
	}
}

// begun waits for the file that an agent makes, in a fork perhaps.
func (p *place) begun(inFork bool) {
	p.t.Helper()
	at := filepath.Join(p.work, "began")
	if inFork {
		at = filepath.Join(p.home, ".local/state/omniagent/forks/*/layers/*/upper/began")
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if all, _ := filepath.Glob(at); len(all) > 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatal("the agent did not begin")
		}
	}
}
