//go:build unix

package walk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/kit/setting"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/work/run"
)

// What the commands need that are about runs: an agent that works and is allowed, and a run.

const mended = "It is mended."

// codex speaks as much of codex exec and of codex app-server as one turn takes. The examples name it.
const codex = `#!/bin/sh
if [ "$1" = exec ]; then
	text='` + mended + `'
	case $(cat) in *'{"findings":0}'*) text='{\"findings\":0}' ;; esac
	echo '{"type":"thread.started","thread_id":"t1"}'
	echo '{"type":"turn.started"}'
	printf '%s\n' '{"type":"item.completed","item":{"type":"agent_message","id":"a1","text":"'"$text"'"}}'
	echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
	exit
fi
while read -r line; do
	case $line in
	*'"initialize"'*) echo '{"id":1,"result":{}}' ;;
	*'"thread/'*) echo '{"id":2,"result":{"thread":{"id":"t1","cliVersion":"0.1.0"},"model":"m1"}}' ;;
	*'"turn/start"'*)
		echo '{"id":3,"result":{"turn":{"id":"u1"}}}'
		echo '{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"u1"}}}'
		echo '{"method":"item/completed","params":{"threadId":"t1","turnId":"u1",` +
	`"item":{"type":"agentMessage","id":"a1","text":"` + mended + `"}}}'
		echo '{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"u1","status":"completed"}}}'
		;;
	esac
done
`

// allowed is the directory of the agent, which all boxes share, and the list on which it is allowed.
var allowed = sync.OnceValues(func() (place [2]string, err error) {
	home, err := os.MkdirTemp(filepath.Dir(program), "agents-")
	if err != nil {
		return place, err
	}
	if err := hermetic.WriteProgram(filepath.Join(home, "codex"), []byte(codex), 0o755); err != nil {
		return place, err
	}
	cmd := execProgram("agents", "allow", "codex")
	cmd.Env, cmd.Dir = []string{"HOME=" + home, "PATH=" + home + ":" + os.Getenv("PATH")}, filepath.Dir(home)
	if out, err := cmd.CombinedOutput(); err != nil {
		return place, fmt.Errorf("%w: %s", err, out)
	}
	list, err := os.ReadFile(filepath.Join(home, ".local/state/omniagent/agents.json"))
	return [2]string{home, string(list)}, err
})

// employ puts the agent into the box, and on the list of those that may be started, unless that is what the command is
// about.
func (b *box) employ(t *testing.T, about ...*command) {
	t.Helper()
	place, err := allowed()
	must(t, err)
	b.env["PATH"] = place[0] + string(filepath.ListSeparator) + b.env["PATH"]
	if len(about) == 0 || about[0].key != "agents.allow" {
		b.write(t, "home/.local/state/omniagent/agents.json", place[1])
	}
}

// change makes the project a repository with a change that is not committed, for the command that looks at it.
func (b *box) change(t *testing.T, about ...*command) {
	t.Helper()
	if len(about) == 0 || about[0].key != "review" {
		return
	}
	b.write(t, "project/a.txt", "one\n")
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "a.txt"},
		{"-c", "user.email=a@b", "-c", "user.name=a", "commit", "-q", "-m", "first"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = b.project
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	b.write(t, "project/a.txt", "two\n")
}

// fork makes the fork that the examples name, with a change in it.
func (b *box) fork(t *testing.T, about ...*command) {
	t.Helper()
	if len(about) == 0 || about[0].key != "runs.apply" && (!strings.HasPrefix(about[0].key, "fork.") ||
		len(about[0].Flags["id"].Type) == 0 || about[0].runs()) {
		return
	}
	b.write(t, "project/a.txt", "one\n")
	o := b.run(t, call{args: []string{
		"fork", "run", "--name", "try", "--", "/bin/sh", "-c", "echo two >>a.txt; echo x >made",
	}})
	if o.code != 0 {
		t.Fatalf("no fork can be made\n%s", o)
	}
}

// runs is where the runs are.
func (b *box) runs() string { return filepath.Join(b.home, ".local/state/omniagent/runs") }

// delegate makes the run that the examples name: over, or for the commands that go on with one, queued or waiting for
// an answer.
func (b *box) delegate(t *testing.T, about ...*command) {
	t.Helper()
	began := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	r := run.Record{
		Version: 1, ID: "run-1a2b3c4d", Created: began, Since: began, State: run.Queued,
		Attempts: []run.Attempt{}, Questions: []run.Question{},
		Task: run.Task{
			Text: "Where is the deadlock?", Agents: []string{"codex"}, Approval: setting.Default, Dir: b.project,
			Timeout: limit, Idle: limit, First: limit,
		},
	}
	key := "runs.show"
	if len(about) > 0 {
		key = about[0].key
	}
	if key == "runs.apply" {
		f, err := fork.Store{Dir: filepath.Join(b.home, ".local/state/omniagent/forks")}.Open("try")
		must(t, err)
		r.Fork, r.ForkID = f.Name, f.ID
	}
	dir := filepath.Join(b.runs(), r.ID)
	must(t, os.MkdirAll(dir, 0o700))
	switch key {
	case "runs.continue":
	case "answer", "runs.cancel":
		r.State = run.NeedsInput
		r.Questions = append(r.Questions, run.Question{
			ID: "colour", Text: "Which colour?", Required: true, Asked: began,
		})
	default:
		r.State, r.Attempts = run.Succeeded, append(r.Attempts, run.Attempt{
			Agent: "codex", Session: "sess-1a2b3c4d", First: 1, Last: 3, Turn: 1, Began: began,
			Ended: began.Add(time.Second), State: run.Succeeded, Reason: run.Done,
		})
		r.Result = &run.Result{
			State: run.Succeeded, Reason: run.Done, Text: "Between the two locks of the cache.",
			Changed: &run.Changes{Count: 1, Files: []snapshot.Change{{Path: "lock.txt", Status: "added"}}},
			Denials: []run.Denial{}, Evidence: []string{}, Ended: began.Add(time.Second), DurationMS: 1000,
		}
		if len(about) == 0 || strings.Contains(about[0].Examples[0].Command, r.ID) { // nobody else looks at it
			b.differ(t, dir)
		}
		b.write(t, "home/.local/state/omniagent/runs/run-1a2b3c4d/stdout", "every byte\n")
	}
	record, err := json.Marshal(r)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "run.json"), record, 0o600))
}

// differ keeps the state of the project from before a file came, and from behind that, as a run does.
func (b *box) differ(t *testing.T, dir string) {
	t.Helper()
	store := snapshot.OpenStore(filepath.Join(dir, "contents"))
	var since *snapshot.Index
	for _, name := range []string{"before", "after"} {
		x, err := snapshot.Take(context.Background(), b.project, snapshot.Options{Store: store, Since: since})
		must(t, err)
		must(t, x.SaveFile(filepath.Join(dir, name)))
		since = x
		b.write(t, "project/lock.txt", "one lock\n")
	}
}

// elsewhere is a call about a run or a conversation that is not there.
func (c *command) elsewhere(t *testing.T) call {
	t.Helper()
	typed := c.plain(t)
	for i, word := range typed.args {
		if strings.HasSuffix(word, "-1a2b3c4d") {
			typed.args[i] = strings.TrimSuffix(word, "1a2b3c4d") + "0000"
			return typed
		}
	}
	t.Fatalf("the first example of %s is about nothing: %v", c.key, typed.args)
	return typed
}
