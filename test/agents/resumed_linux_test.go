package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// resumed is tried on every agent: --continue and --resume resume what was said before, and a model API, which an agent
// has settings of its own for, is not chosen by our flags.
func resumed() scenario {
	return scenario{"sessions by our flags", []string{"continue *", "provider *", "api-base *"}, resumedByFlags}
}

func resumedByFlags(b *bench) {
	m := scripted(b.t, `[{"say":"heard ${input}"}]`)
	ask := func(words string, more ...string) (session string) {
		b.t.Helper()
		record := filepath.Join(b.home, "report.json")
		b.command(m.URL(), append([]string{"--agent", b.agent, "-p", words, "--report", record}, more...)...)
		var r report
		if data, err := os.ReadFile(record); err != nil || json.Unmarshal(data, &r) != nil {
			b.t.Fatalf("no report: %v %s", err, data)
		}
		return r.Session
	}
	knows := func(words, before string) {
		b.t.Helper()
		for _, r := range m.Requests() {
			if strings.Contains(string(r.Raw), words) && strings.Contains(string(r.Raw), before) {
				return
			}
		}
		b.t.Errorf("asked %q, the model does not get %q", words, before)
	}
	id := ask("the first words of it")
	if again := ask("the second words", "--continue"); id == "" || again != id {
		b.t.Fatalf("the session was %q, and --continue has %q", id, again)
	}
	knows("the second words", "heard the first words of it")
	ask("the third words", "--resume", id)
	knows("the third words", "heard the first words of it")

	// what was denied before is not of a later run
	denied := scripted(b.t, `[{"write":{"path":"`+filepath.Join(b.home, "elsewhere")+`","content":"x"}},{"say":"no"}]`)
	cmd := exec.Command(program, "--agent", b.agent, "-p", "the fourth words")
	cmd.Dir, cmd.Env = b.work, b.wired(denied.URL())
	_ = cmd.Run() // 3 where the agent tells
	ask("the fifth words", "--continue")

	i := slices.IndexFunc(subjects(), func(s subject) bool { return s.driver.Name() == b.agent })
	matrix := subjects()[i].driver.Matrix("")
	s := b.sit(program, "--agent", b.agent, "--trace-translate=only", "--rehearse", "--continue", "--provider",
		"openai",
		"--api-base", "http://127.0.0.1:1/v1")
	s.sees("--provider openai is ignored")
	s.sees("--api-base http://127.0.0.1:1/v1 is ignored")
	s.sees("OA_TRANSLATION")
	if code := s.left(); code != 0 {
		b.t.Errorf("on a screen: exit %d: %s", code, tail(s.letters()))
	}
	// what that does was seen without one
	for _, arg := range matrix.Cell(agent.Continue, "", setting.Interactive).Args {
		if !strings.Contains(s.letters(), letters(arg)) {
			b.t.Errorf("on a screen: %q is not sent: %s", arg, tail(s.letters()))
		}
	}
}
