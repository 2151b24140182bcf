//go:build unix

package run

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// needsKey is codex with a provider whose key the person's configuration names.
func needsKey(t *testing.T) *place { return codexThat(t, "") }

// codexThat runs a command first.
func codexThat(t *testing.T, does string) *place {
	t.Helper()
	p := newPlace(t)
	p.put(filepath.Join(p.bin, "codex"), `#!/bin/sh
case "$*" in *--version*) echo codex-cli 0.169.0; exit ;; esac
`+does+`
cat >/dev/null
echo '{"type":"thread.started","thread_id":"0199a213-81c0-7800-8aa1-bbab2a035a53"}'
echo '{"type":"turn.started"}'
if [ -z "$FAKE_KEY" ]; then
	echo '{"type":"error","message":"Missing environment variable: `+"`FAKE_KEY`"+`."}'
	echo '{"type":"turn.failed","error":{"message":"Missing environment variable: `+"`FAKE_KEY`"+`."}}'
	exit 1
fi
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"I have it."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
`)
	p.allowed = append(p.allowed, "codex")
	return p.configured("").trusting("codex")
}

// TestAWithheldVariable: a variable that the agent needs and did not get is named with the command that passes it on,
// which does it.
func TestAWithheldVariable(t *testing.T) {
	t.Parallel()
	p := needsKey(t)
	p.configured(`env = ["OTHER_KEY"]`)
	p.env = append(p.env, "FAKE_KEY=k-12345678")
	a := p.run("codex", "--yolo")
	a.is(t, 8, "failed", "not_logged_in")
	const fix = "omniagent config set agents.env OTHER_KEY,FAKE_KEY --global"
	if a.Error.FixCommand != fix || !strings.Contains(a.Stderr, fix) ||
		strings.Contains(a.Stdout+a.Stderr, "codex login") || strings.Contains(a.Stderr, "keyring") {
		t.Fatalf("%s", a)
	}
	set := exec.Command(program, strings.Fields(fix)[1:]...)
	set.Dir, set.Env = p.work, p.env
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	p.run("codex", "--yolo").is(t, 0, "succeeded", "done_unchanged")
}

// TestAMissingVariable: where the variable is not set at all, that is said, and no login is advised.
func TestAMissingVariable(t *testing.T) {
	t.Parallel()
	p := needsKey(t)
	a := p.run("codex", "--yolo")
	a.is(t, 8, "failed", "not_logged_in")
	if !strings.Contains(a.Stderr, "set FAKE_KEY") || strings.Contains(a.Stderr, "codex login") ||
		strings.Contains(a.Stderr, "agents.env") {
		t.Errorf("%s", a)
	}
}

// TestAVariableIsOffered: at a terminal one key passes it on.
func TestAVariableIsOffered(t *testing.T) {
	t.Parallel()
	p := needsKey(t)
	p.env = append(p.env, "FAKE_KEY=k-12345678")
	args := []string{"run", "--agent", "codex", "--yolo", "-p", "the task"}
	shown, code := p.atTerminal([][2]string{{"[y/N] ", "n\r"}}, args...)
	if code != 8 || !strings.Contains(shown, "omniagent config set agents.env FAKE_KEY --global") {
		t.Errorf("%d %s", code, shown)
	}
	p.run("codex", "--yolo").is(t, 8, "failed", "not_logged_in")
	if shown, code = p.atTerminal([][2]string{{"[y/N] ", "y\r"}}, args...); code != 8 {
		t.Errorf("%d %s", code, shown)
	}
	p.run("codex", "--yolo").is(t, 0, "succeeded", "done_unchanged")
}

// TestAWayToSignIn: with a base URL set, Gemini CLI wants its way to sign in chosen in its settings. That is what is
// advised, and not the key, which is there.
func TestAWayToSignIn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put(filepath.Join(p.bin, "gemini"), `#!/bin/sh
case "$*" in *--version*) echo 0.61.0; exit ;; esac
cat >/dev/null
grep -q gemini-api-key "$HOME/.gemini/settings.json" || exit 41
echo '{"type":"init","session_id":"s","model":"m"}'
echo '{"type":"message","role":"assistant","content":"I am in.","delta":true}'
echo '{"type":"result","status":"success","stats":{}}'
`)
	p.allowed = append(p.allowed, "gemini")
	p.configured("").trusting("gemini")
	p.env = append(p.env, "GEMINI_API_KEY=k-12345678", "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:9")
	a := p.run("gemini", "--yolo")
	a.is(t, 8, "failed", "not_logged_in")
	if !strings.Contains(a.Stderr, "security.auth.selectedType") || strings.Contains(a.Stderr, "set GEMINI_API_KEY") {
		t.Errorf("%s", a)
	}
	p.put(filepath.Join(p.home, ".gemini/settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`)
	p.run("gemini", "--yolo").is(t, 0, "succeeded", "done_unchanged")
}

// TestTheSandboxOfAnAgentUnderYolo: it goes only where our walls stand, or a person says so.
func TestTheSandboxOfAnAgentUnderYolo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		walled bool
		flags  []string
		want   string
	}{
		{false, nil, "workspace-write"},
		{true, nil, "danger-full-access"},
		{true, []string{"--sandbox", "workspace-write"}, "workspace-write"},
		{false, []string{"--sandbox", "off"}, "danger-full-access"},
	} {
		p := codexThat(t, `echo "$*" >args`)
		if c.walled {
			can := p.walled().command("sandbox", "run", "--walls", "namespaces", "--", "true")
			if out, err := can.CombinedOutput(); err != nil {
				t.Logf("not tried: this machine cannot build the walls: %s", out)
				continue
			}
		}
		a := p.run("codex", append([]string{"--yolo"}, c.flags...)...)
		if got := p.read("args"); !strings.Contains(got, `sandbox_mode="`+c.want+`"`) &&
			!strings.Contains(got, "--sandbox "+c.want) {
			t.Errorf("%+v: %s\n%s", c, got, a)
		}
	}
}
