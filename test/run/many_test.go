//go:build unix

package run

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/sys/workspace"
)

// TestManyAtOnce: of runs that work at the same time each keeps every line of its agent, and no other's.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const runs, lines = 16, 200
	p := newPlace(t).agent("counter", fmt.Sprintf(`task=$(cat); touch "on-$task"
i=0; while [ $i -lt %d ]; do i=$((i+1)); echo "$task line $i"
[ $((i %% 50)) -ne 0 ] || sleep 0.1; done
while [ ! -e together ]; do sleep 0.05; done; echo "$task is done"`, lines)).
		configured(fmt.Sprintf("[run]\nparallel = %d\n", runs))
	ids := map[string]string{}
	for i := range runs {
		task := fmt.Sprintf("task-%d.", i)
		a := p.call("run", "--agent", "counter", "--yolo", "--detach", "-p", task)
		if a.Code != 0 {
			t.Fatalf("%s", a)
		}
		ids[task] = a.Data.ID
	}
	for task := range ids { // so all are under way at the same moment
		p.exists("on-" + task)
	}
	p.put("together", "")
	for task, id := range ids {
		var want strings.Builder
		for i := range lines {
			fmt.Fprintf(&want, "%s line %d\n", task, i+1)
		}
		fmt.Fprintf(&want, "%s is done\n", task)
		a := p.reaches(id, "succeeded")
		raw, err := p.command("runs", "logs", id, "--raw", "stdout").Output()
		if err != nil || string(raw) != want.String() {
			t.Errorf("%s: %v, %d bytes of %d", id, err, len(raw), want.Len())
		}
		if told := p.told(id); told != want.String() {
			t.Errorf("%s: the events have %d bytes of %d", id, len(told), want.Len())
		}
		if !strings.HasSuffix(strings.TrimSpace(a.Data.Text.Value), task+" is done") {
			t.Errorf("%s", a)
		}
	}
	p.nothing()
}

// TestAnswersAtOnce: in the moment before the first answer is recorded, another one is in conflict with it.
func TestAnswersAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >README; echo done`)
	a := p.run("scribe", "--yolo", "--require", "colour=Which colour?")
	a.is(t, 4, "needs_input", "missing_input")
	owner := filepath.Join(p.home, ".local/state/omniagent/runs", a.Data.ID, "owner")
	held, err := workspace.Lock(t.Context(), owner, 0) // as the first process has it
	if err != nil {
		t.Fatal(err)
	}
	if second := p.call("answer", a.Data.ID, "red"); second.Code != 6 || second.Error.Code != "CONFLICT" {
		t.Errorf("%s", second)
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	p.call("answer", a.Data.ID, "blue").is(t, 0, "succeeded", "done")
}

// TestNobodyReads: a run whose lines nobody reads any more goes on, and its end is that of the call.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("slow", "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two >two; echo done")
	cmd := p.command("run", "--agent", "slow", "--yolo", "--stream", "-p", "x")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err)
	}
	_ = out.Close()
	p.put("go", "")
	if err := cmd.Wait(); err != nil || p.read("two") != "two\n" {
		t.Errorf("%v, %q", err, p.read("two"))
	}
}
