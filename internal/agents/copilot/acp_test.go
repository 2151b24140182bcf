package copilot

import (
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/core/agent"
)

// TestHooked: hooks have to be reviewed before the CLI is driven over ACP, in the directory and in all above it.
func TestHooked(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b")
	hook := filepath.Join(top, ".github", "hooks", "x.json")
	for _, made := range []string{dir, filepath.Dir(hook)} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := agent.Spec{Dir: dir}
	if err := refuseHooks(s); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(hook, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := refuseHooks(s); err == nil || repoEffect(hook) == "" {
		t.Error("it is started")
	}
	s.Trusted = func(path string, content []byte) bool { return string(content) == "{}" }
	if err := refuseHooks(s); err != nil {
		t.Error(err)
	}
}

// TestACPLost: the CLI calls a turn done that failed; only its own words differ.
func TestACPLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ last, unused, used string }{
		{
			"Error: Authentication failed with provider at http://x/v1 (HTTP 401).", "AUTH_REQUIRED", "AUTH_REQUIRED",
		},
		{
			"Error: Failed to get response from the AI model; retried 5 times. Last error: 429 Rate limit reached.",
			"RATE_LIMITED", "RATE_LIMITED",
		},
		{"Error: 400 The request is not valid.", "API_ERROR", "API_ERROR"},
		{"Error: something", "API_ERROR", ""},
		{"I am done.", "", ""},
		{"An Error: 400", "", ""},
	} {
		for used, want := range map[bool]string{false: c.unused, true: c.used} {
			got := ""
			if f := acpLost(c.last, used); f != nil {
				got = string(f.Code)
			}
			if got != want {
				t.Errorf("%s, used %t: %s", c.last, used, got)
			}
		}
	}
}
