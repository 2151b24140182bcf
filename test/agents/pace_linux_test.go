package agents

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
)

// paced is a model that is silent before its answer and within it, as one that thinks is.
type paced struct {
	silence  time.Duration
	from, to string // the two parts of the answer
}

func (p paced) Answer(ctx context.Context, r *modelserver.Request, w modelserver.Writer) error {
	for _, part := range []string{p.from, p.to} {
		if len(r.Tools) > 0 { // other requests, such as for a title, do not matter
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(p.silence):
			}
		}
		if err := w.Text(part); err != nil {
			return err
		}
	}
	return nil
}

// slow starts a model that is silent for ten seconds, twice: longer than any look for a question lasts.
func slow(t *testing.T, from, to string) *modelserver.Server {
	t.Helper()
	server, err := modelserver.Start(paced{10 * time.Second, from, to}, modelserver.Options{Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// TestSilentModelIsNoQuestion: an agent whose model thinks for longer than a person would wait for a prompt asks
// nothing and has not stopped, in each mode and over each transport.
func TestSilentModelIsNoQuestion(t *testing.T) {
	hermetic.Long(t)
	needAgents(t)
	t.Parallel()
	type way []string
	for _, s := range subjects() {
		name := s.driver.Name()
		ways := []way{
			{"--yolo"},
			{"--auto-edit"},
			{"--read-only"},
			{"--approval", "default"},
			{"--yolo", "--transport", "stream"},
		}
		if name != "claude" && name != "codex" {
			ways = append(ways, way{"--yolo", "--transport", "acp"})
		}
		for flags := range inTurn(t, name, ways) {
			t.Run(name+"/"+strings.Join(flags, " "), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, name)
				r := b.handsTo(slow(t, "I looked at all of it. ", "Nothing had to change."), flags...)
				if r.code != 0 || r.Data.Status != "succeeded" || r.Data.Reason != "done_unchanged" ||
					!strings.Contains(r.Data.Text.Value, "Nothing had to change.") {
					t.Errorf("%s", r)
				}
			})
		}
	}
}

// TestReviewOfASilentModel: the same with a review.
func TestReviewOfASilentModel(t *testing.T) {
	hermetic.Long(t)
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		name := s.driver.Name()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spare(t, name)
			b := changedBench(t, name)
			b.reviews(slow(t, shouts, `{"findings":1}`))
		})
	}
}

// TestAnswersWithQuestionMarks: an answer that has a question mark is an answer, and one that ends by asking is not.
func TestAnswersWithQuestionMarks(t *testing.T) {
	needAgents(t)
	t.Parallel()
	type answer struct {
		text, status string
	}
	for _, s := range subjects() {
		name := s.driver.Name()
		for a := range inTurn(t, name, []answer{
			{"The regex is foo? and bar.", "succeeded"},
			{"What did I do? I looked and nothing had to change.", "succeeded"},
			{"I need one more thing. Which colour do you want?", "needs_input"},
		}) {
			t.Run(name+"/"+a.text, func(t *testing.T) {
				t.Parallel()
				say, err := json.Marshal(a.text)
				if err != nil {
					t.Fatal(err)
				}
				if r := newBench(t, name).hands(`[{"say":`+string(say)+`}]`, "--yolo"); r.Data.Status != a.status {
					t.Errorf("%s", r)
				}
			})
		}
	}
}

// TestYoloStillAsks: yolo grants permissions, and answers no question to a person.
func TestYoloStillAsks(t *testing.T) {
	needAgents(t)
	t.Parallel()
	r := newBench(t, "claude").hands(`[{"ask":"Which colour?"},{"say":"You said ${input}"}]`, "--yolo")
	if r.code != 4 || r.Data.Status != "needs_input" || r.Data.Reason != "question" {
		t.Errorf("%s", r)
	}
}

// TestCodexLeavesNothing: what Codex's sandbox makes in the workspace for a command goes with it, also if both are
// killed, and even if we are.
func TestCodexLeavesNothing(t *testing.T) {
	needAgents(t)
	t.Parallel()
	const script = `[{"shell":"touch began; sleep 1000"},{"say":"Done."}]`
	made := func(b *bench) (names []string) {
		entries, _ := os.ReadDir(b.work)
		for _, e := range entries {
			if e.Name() != ".git" && e.Name() != "began" {
				names = append(names, e.Name())
			}
		}
		return names
	}
	b := newBench(t, "codex")
	r := b.hands(script, "--yolo", "--timeout", "15s")
	if r.Data.Changed == nil || r.Data.Changed.Count != 1 || len(made(b)) > 0 {
		t.Errorf("%q is left, %s", made(b), r)
	}

	b = newBench(t, "codex")
	b.allowed()
	cmd := exec.Command(program, "run", "--agent", "codex", "-p", "the task", "--yolo")
	cmd.Dir, cmd.Env = b.work, b.wired(scripted(t, script).URL())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for over := time.Now().Add(patience); !b.took("began") && time.Now().Before(over); {
		time.Sleep(20 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	list := exec.Command(program, "runs", "list", "--output", "plain")
	list.Dir, list.Env = cmd.Dir, cmd.Env
	if out, err := list.CombinedOutput(); err != nil || !strings.Contains(string(out), "unknown_outcome") {
		t.Errorf("%v %s", err, out)
	}
	if left := made(b); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// handsTo gives the agent a task with nobody watching, on this model.
func (b *bench) handsTo(m *modelserver.Server, args ...string) ran {
	b.t.Helper()
	b.allowed()
	cmd := exec.Command(program, slices.Concat([]string{
		"run", "--agent", b.name(), "-p", "the task", "--output", "json",
	}, args)...)
	cmd.Dir, cmd.Env = b.work, b.wired(m.URL())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	r := ran{code: cmd.ProcessState.ExitCode(), stderr: stderr.String()}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		b.t.Fatalf("no envelope: %v: %s\n%s", err, out, r.stderr)
	}
	return r
}
