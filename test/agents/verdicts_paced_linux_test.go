package agents

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// trial is an ending of a task with an agent over a transport, while something makes it hard to tell.
type trial struct {
	agent, transport string
	in               string // a pace, or crowded
	e                ending
}

const (
	crowded     = "others work in the directory"
	anyTrickle  = "a byte after the other"
	flooded     = "a command says 300 MB"
	trickle     = `{"byte":"2ms"}`
	overAdapter = "adapter"
)

// trials are all: neighbours differ in everything, so that a part of them has some of each.
func trials() []trial {
	var all []trial
	circumstances := append(slices.Sorted(maps.Keys(paces())), anyTrickle, flooded, crowded)
	for k := range circumstances {
		for i, s := range subjects() {
			name := s.driver.Name()
			transports := []string{"stream", overAdapter}
			if slices.Contains(spoken(), name) {
				transports[1] = "acp"
			}
			for j, transport := range transports {
				list := endings()
				if transport == overAdapter {
					list = adapted()
				}
				for l, e := range list {
					in := circumstances[(i+j+k+l)%len(circumstances)]
					// the command runs unasked; the other agents keep its output, and take minutes
					floods := e.kill == 0 && slices.Contains(e.args, "--yolo") && (name == "claude" || name == "codex")
					if in != flooded || floods {
						all = append(all, trial{name, transport, in, e})
					}
				}
			}
		}
	}
	stride := 211
	for len(all)%stride == 0 { // each comes once if it has no divisor in common with the length
		stride += 2
	}
	mixed := make([]trial, len(all))
	for i := range all {
		mixed[i] = all[i*stride%len(all)]
	}
	return mixed
}

// TestVerdictsAtAPace: what omniagent run says of each ending is the same if the model is slow, if a command of the
// agent floods it, or if a person and a second run work in the directory meanwhile.
func TestVerdictsAtAPace(t *testing.T) {
	hermetic.Long(t)
	needAgents(t)
	t.Parallel()
	for _, c := range hermetic.InTurn(t, trials(), 8) {
		t.Run(strings.Join([]string{c.agent, c.transport, c.e.name, c.in}, "/"), func(t *testing.T) {
			t.Parallel()
			e := c.e.with(t, c.agent)
			b := newBench(t, c.agent)
			var flags []string
			switch {
			case c.transport != overAdapter:
				flags = []string{"--transport", c.transport}
			case os.Getenv(published) == "":
				t.Skip("the adapters are not here: OMNIAGENT_TEST_HOSTS=$(scripts/hosts) go test ./test/agents")
			default:
				b.adaptPublished()
			}
			switch c.in {
			case crowded:
				defer b.crowd(e.kill == 0)()
			case flooded:
				const flood = `[{"shell":"yes 'one line of a great many' | head -c 300000000"},`
				e.script = strings.Replace(e.script, "[", flood, 1)
			default:
				e = e.slowed(c.in)
			}
			b.shows(e, flags...)
		})
	}
}

// slowed is the ending with a model at a pace. One that would never answer stops in its answer.
func (e ending) slowed(in string) ending {
	pace := paces()[in]
	if in == anyTrickle {
		pace = trickle
	}
	const words = `{"say":"I look at it now, and at all that belongs to it, and then at the rest.","stall":"middle"}`
	e.script = fmt.Sprintf(`{"slow":%s,"steps":%s}`, pace, strings.Replace(e.script, `{"stall":"headers"}`, words, 1))
	return e
}

// crowd has a person edit, add, delete and commit in the workspace and, if runs says so, other runs write there, until
// the returned function is called.
func (b *bench) crowd(runs bool) (stop func()) {
	b.t.Helper()
	theirs := filepath.Join(b.work, "theirs")
	env := append(b.environ(), "HOME="+filepath.Join(b.base, "tmp"))
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir, cmd.Env = b.work, env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w\n%s", args, err, out)
		}
		return nil
	}
	person := func(i int) error {
		err := os.MkdirAll(theirs, 0o700)
		for _, name := range []string{"edited", fmt.Sprint("added", i)} {
			if err == nil {
				err = os.WriteFile(filepath.Join(theirs, name), fmt.Append(nil, i), 0o600)
			}
		}
		if err == nil && i > 3 {
			err = os.RemoveAll(filepath.Join(theirs, fmt.Sprint("added", i-3)))
		}
		if err == nil && i%10 == 9 {
			if err = git("add", "-A", "theirs"); err == nil {
				err = git("commit", "-qm", fmt.Sprint(i))
			}
		}
		return err
	}
	b.put(filepath.Join(b.home, "second.json"), `[{"write":{"path":"second.txt","content":"second\n"}},{"say":"ok"}]`)
	second := func(int) error {
		cmd := exec.Command(program, "run", "--agent", "native", "--yolo", "-p", "second", "--rehearse",
			"--script", filepath.Join(b.home, "second.json"))
		cmd.Dir, cmd.Env = b.work, b.environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the second run: %w\n%s", err, out)
		}
		return nil
	}
	quit, ended := make(chan struct{}), make(chan error, 2)
	works := func(every time.Duration, work func(i int) error) {
		for i := 0; ; i++ {
			if err := work(i); err != nil {
				ended <- err
				return
			}
			select {
			case <-quit:
				ended <- nil
				return
			case <-time.After(every):
			}
		}
	}
	go works(50*time.Millisecond, person)
	if runs {
		go works(time.Second, second)
	} else {
		ended <- nil
	}
	return func() {
		close(quit)
		for range 2 {
			if err := <-ended; err != nil {
				b.t.Error(err)
			}
		}
	}
}

// TestACommandThatChangesNothing: what the sandbox of an agent makes for itself, to mount something there, is not told
// as a change.
func TestACommandThatChangesNothing(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, agent := range []string{"claude", "codex"} { // which have one
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			newBench(t, agent).shows(ending{
				name: "unchanged", script: `[{"shell":"echo hi"},{"say":"All is well."}]`, args: []string{"--auto-edit"},
				status: "succeeded", reason: "done_unchanged",
			})
		})
	}
}
