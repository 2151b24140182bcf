package agents

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ran is what omniagent run said.
type ran struct {
	code   int
	stderr string
	Data   struct {
		ID      string `json:"run_id"`
		Status  string `json:"status"`
		Reason  string `json:"reason"`
		Text    struct{ Value string }
		Changed *struct {
			Count int
			Files []struct{ Path, Status string }
		}
		Evidence []struct{ Value string }
		Attempts int
	}
	Error *struct{ Code, Message string }
}

func (r ran) String() string {
	text, _ := json.Marshal(r)
	return strconv.Itoa(r.code) + " " + string(text) + "\n" + r.stderr
}

// name is what runs know the agent by.
func (b *bench) name() string { return cmp.Or(b.entry, b.agent) }

// allowed lets runs start the agent.
func (b *bench) allowed() {
	b.t.Helper()
	allow := exec.Command(program, "agents", "allow", b.name(), "--timeout", patience.String())
	allow.Dir, allow.Env = b.work, b.wired("")
	if out, err := allow.CombinedOutput(); err != nil {
		b.t.Fatalf("%s is not allowed: %v\n%s", b.name(), err, out)
	}
}

// hands gives the agent a task with nobody watching, on a scripted model.
func (b *bench) hands(script string, args ...string) ran {
	b.t.Helper()
	return b.handsTo(scripted(b.t, script), args...)
}

// ending is one of the thirteen ways in which a task can end.
type ending struct {
	name   string
	script string
	args   []string
	// the status, the reason and the exit code that are true
	status, reason string
	code           int
	kill           syscall.Signal // what somebody sends the agent's process
	unlike         map[string]variant
}

// variant is how the same comes about with one agent.
type variant struct {
	script string
	args   []string
	not    string // why it cannot be shown
	// what the agent tells of it in place of that, for which not is the reason; empty: it is not tried
	status, reason string
}

func endings() []ending {
	const wrote = `{"write":{"path":"new.txt","content":"x\n"}}`
	yolo, readOnly, hangs := []string{"--yolo"}, []string{"--read-only"}, []string{"--yolo", "--idle-timeout", "10s"}
	asks := variant{script: `[{"say":"Which colour do you want?"}]`, args: yolo}
	return []ending{
		{
			name: "done", script: `[` + wrote + `,{"say":"I wrote it."}]`, args: yolo,
			status: "succeeded", reason: "done",
		},
		{
			name: "unchanged", script: `[{"say":"All is well."}]`, args: yolo,
			status: "succeeded", reason: "done_unchanged",
		},
		{
			name: "denied", script: `[{"shell":"touch new.txt"},{"say":"I may not."}]`, args: readOnly,
			status: "blocked", reason: "denied", code: 7, unlike: map[string]variant{
				"gemini": {not: "it offers the model no tool that would be denied, see testdata/denied/gemini.jsonl"},
				"opencode": {
					not: "it offers the model no tool that would be denied, see testdata/denied/opencode.jsonl",
				},
			},
		},
		{
			name: "question", script: `[{"ask":"Which colour?"},{"say":"You said ${input}"}]`,
			status: "needs_input", reason: "question", code: 4, unlike: map[string]variant{
				"codex": asks, "gemini": asks, "copilot": asks, "opencode": asks,
			},
		},
		{
			name: "refused", script: `[{"decline":"I cannot help with that."}]`, args: yolo,
			status: "failed", reason: "model_refused", code: 1, unlike: refusals(),
		},
		{
			name: "401", script: `[{"error":401}]`, args: yolo, status: "failed", reason: "not_logged_in", code: 8,
		},
		{
			name: "429", script: `[{"error":429}]`, args: yolo, status: "failed", reason: "rate_limited", code: 11,
		},
		{
			name: "400 after work", script: `[` + wrote + `,{"error":400}]`, args: yolo, status: "failed", code: 1,
		},
		{
			name: "quota", script: `[{"error":402}]`, args: yolo, status: "failed", reason: "out_of_quota", code: 9,
		},
		{
			name: "cut", script: `[{"say":"I will look","cut":"middle"}]`, args: yolo, status: "failed", code: -1,
		},
		{
			name: "hang", script: `[{"stall":"headers"}]`, args: hangs, status: "stalled", reason: "idle", code: 10,
		},
		{
			name: "killed", script: `[{"stall":"headers"}]`, args: hangs, kill: syscall.SIGKILL,
			status: "failed", reason: "killed", code: 1,
		},
		{
			name: "crashed", script: `[{"stall":"headers"}]`, args: hangs, kill: syscall.SIGABRT,
			status: "failed", reason: "crashed", code: 1,
		},
	}
}

// refusals are the agents that keep to themselves that the model declined: neither what they print nor what they record
// has it. testdata/refused has all that each prints.
func refusals() map[string]variant {
	const script = `[{"decline":"I cannot help with that."}]`
	yolo := []string{"--yolo"}
	return map[string]variant{
		"codex": {
			script: script, args: yolo, not: "it drops the refusal of an answer, see testdata/refused/codex.jsonl",
			status: "failed", reason: "no_answer",
		},
		"gemini": {
			script: script, args: yolo, not: "it does not tell the reason SAFETY, see testdata/refused/gemini.jsonl",
			status: "succeeded", reason: "done_unchanged",
		},
		"copilot": {
			script: script, args: yolo, not: "it only tells that nothing came, see testdata/refused/copilot.jsonl",
			status: "failed", reason: "failed",
		},
		"opencode": {
			script: script, args: yolo, not: "it drops the refusal of an answer, see testdata/refused/opencode.jsonl",
			status: "failed", reason: "no_answer",
		},
	}
}

// adapted are the endings as the adapters tell them. What codex-acp prints is in testdata/adapted.
func adapted() []ending {
	all := endings()
	for i, e := range all {
		not := variant{script: e.script, args: e.args, status: "failed", reason: "failed"}
		switch e.name {
		case "denied":
			not.not, not.status, not.reason = "it tells of no call that its sandbox refused", "succeeded",
				"done_unchanged"
		case "429", "quota":
			not.not = "it tells the status in words only"
		default:
			continue
		}
		all[i].unlike = map[string]variant{"codex": not}
	}
	return all
}

// TestVerdicts: what omniagent run says of each ending, with each agent, over the protocol of its own.
func TestVerdicts(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range subjects() {
		verdicts(t, s.driver.Name(), "--transport", "stream")
	}
}

// verdicts shows each ending with an agent, which is started with these flags too.
func verdicts(t *testing.T, name string, flags ...string) {
	verdictsOf(t, name, endings(), func(*bench) {}, flags...)
}

// verdictsOf shows these endings, on benches that are furnished so.
func verdictsOf(t *testing.T, name string, all []ending, furnish func(*bench), flags ...string) {
	for e := range inTurn(t, name, all) {
		t.Run(name+"/"+e.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, name)
			furnish(b)
			b.shows(e.with(t, name), flags...)
		})
	}
}

// with is the ending as it comes about with an agent.
func (e ending) with(t *testing.T, name string) ending {
	t.Helper()
	v, is := e.unlike[name]
	if !is {
		return e
	}
	if v.not != "" && v.status == "" {
		t.Skip("cannot be shown: " + v.not)
	}
	if e.script, e.args = v.script, v.args; v.status != "" {
		t.Log("cannot be shown: " + v.not)
		e.status, e.reason = v.status, v.reason
		if e.code = 1; v.status == "succeeded" {
			e.code = 0
		}
	}
	return e
}

// shows has a task end so, and compares what is said of it.
func (b *bench) shows(e ending, flags ...string) {
	b.t.Helper()
	if e.kill != 0 {
		stop := b.killer(e.kill)
		defer stop()
	}
	r := b.hands(e.script, slices.Concat(e.args, flags)...)
	if r.Data.Status != e.status || e.reason != "" && r.Data.Reason != e.reason || e.code >= 0 && r.code != e.code {
		b.t.Errorf("%s", r)
	}
}

// killer kills the agent's own process as soon as there is one, and reports how to stop looking.
func (b *bench) killer(with syscall.Signal) (stop func()) {
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-quit:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if stdout, _ := filepath.Glob(filepath.Join(b.home,
				".local/state/omniagent/runs/*/run.json")); len(stdout) > 0 {
				if b.killAgent(with) {
					return
				}
			}
		}
	}()
	return func() { close(quit); <-gone }
}

// killAgent kills the leader of the group of the agent, which has this home and our guard as parent.
func (b *bench) killAgent(with syscall.Signal) bool {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		exe, _ := os.Readlink("/proc/" + e.Name() + "/exe")
		if !strings.Contains(string(env), "HOME="+b.home+"\x00") || exe == program {
			continue
		}
		if group, err := syscall.Getpgid(pid); err == nil { // behind walls, its leader is the first process there
			time.Sleep(2 * time.Second)
			return syscall.Kill(-group, with) == nil
		}
	}
	return false
}
