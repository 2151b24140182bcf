package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

const (
	hosts  = "OMNIAGENT_TEST_HOSTS"  // where scripts/hosts has installed the modules
	agents = "OMNIAGENT_TEST_AGENTS" // where scripts/agents has installed the agents, and node
	key    = "sk-0123456789012345678901234567"
)

// program is the built program, modules those of the hosts.
var program, modules string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve-mcp" {
		serveMCP()
		return
	}
	if modules = os.Getenv(hosts); modules == "" {
		os.Exit(m.Run())
	}
	os.Exit(measure.WithProgram("../../..", func(file string) int {
		program = file
		return m.Run()
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../../.."); err != nil {
		t.Fatal(err)
	}
}

// observed is what a scenario printed.
type observed map[string]json.RawMessage

// seen is what the host heard of a conversation.
type seen struct {
	Kinds    []string `json:"kinds"`
	Texts    []string `json:"texts"`
	Sessions []string `json:"sessions"`
	NoUUID   []string `json:"noUUID"`
	Wide     bool     `json:"wide"` // a line with several blocks
	Thrown   *string  `json:"thrown"`
	Inits    []struct {
		Model   string   `json:"model"`
		Mode    string   `json:"mode"`
		Tools   []string `json:"tools"`
		Agents  []string `json:"agents"`
		Servers []struct {
			Name, Status string
		} `json:"servers"`
	} `json:"inits"`
	Results []result `json:"results"`
	Tools   []struct {
		Text   string  `json:"text"`
		Failed bool    `json:"failed"`
		Parent *string `json:"parent"`
	} `json:"toolResults"`
	Partial []struct {
		Type  string `json:"type"`
		Index *int   `json:"index"`
		Delta struct {
			Type, Text string
			Partial    string `json:"partial_json"`
			Stop       string `json:"stop_reason"`
		} `json:"delta"`
		Block struct {
			Type string `json:"type"`
		} `json:"content_block"`
	} `json:"partial"`
}

type result struct {
	Subtype    string                     `json:"subtype"`
	IsError    bool                       `json:"is_error"`
	Result     *string                    `json:"result"`
	Errors     []string                   `json:"errors"`
	Turns      int                        `json:"num_turns"`
	Duration   *float64                   `json:"duration_ms"`
	Cost       *float64                   `json:"total_cost_usd"`
	Structured json.RawMessage            `json:"structured_output"`
	Usage      map[string]json.RawMessage `json:"usage"`
	Models     map[string]struct {
		Input  int64    `json:"inputTokens"`
		Output int64    `json:"outputTokens"`
		Cost   *float64 `json:"costUSD"`
	} `json:"modelUsage"`
	Denials []struct {
		Tool  string         `json:"tool_name"`
		ID    string         `json:"tool_use_id"`
		Input map[string]any `json:"tool_input"`
	} `json:"permission_denials"`
}

// asked is what the host was asked whether it may run.
type asked struct {
	Name        string            `json:"name"`
	ID          string            `json:"id"`
	Input       map[string]any    `json:"input"`
	Suggestions []json.RawMessage `json:"suggestions"`
}

// take reads a member of what was printed.
func take[T any](t *testing.T, o observed, name string) (v T) {
	t.Helper()
	if err := json.Unmarshal(o[name], &v); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, o[name])
	}
	return v
}

// stage is one scenario on one executable.
type stage struct {
	home, work, beside string
	ours               bool // our program, else Claude Code
	through            bool // our program with Claude Code behind it
	model              *modelserver.Server
}

// asked are the requests with tools: those beside the conversation are left out.
func (s *stage) conversation() (list []modelserver.Request) {
	for _, r := range s.model.Requests() {
		if len(r.Tools) > 0 {
			list = append(list, r)
		}
	}
	return list
}

func (s *stage) made(name string) string {
	data, err := os.ReadFile(filepath.Join(s.work, name))
	if err != nil {
		return "-"
	}
	return strings.TrimSpace(string(data))
}

// play runs a scenario with the script as its model.
func (s *stage) play(t *testing.T, name, script string) observed {
	t.Helper()
	// not every prompt of a host tells the model where it works
	backend, err := modelserver.ParseScript([]byte(strings.ReplaceAll(script, `"path":"`, `"path":"`+s.work+"/")))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(backend, modelserver.Options{Key: key, Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	s.model = server
	defer server.Close()
	path, executable := os.Getenv("PATH"), filepath.Join(s.home, "wrapper.sh")
	node := "node"
	if dir := os.Getenv(agents); dir != "" {
		path, node = dir+":"+path, filepath.Join(dir, "node")
	}
	wrapped := program + " start --dialect claude"
	if s.through {
		wrapped += " --agent claude"
	}
	if !s.ours {
		wrapped = filepath.Join(os.Getenv(agents), "claude")
	}
	if !s.ours || s.through {
		s.seed(t)
	}
	// What the host says is recorded with what it gets, to explain a failure.
	wrapper := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" >>%[2]s/argv\nexec %[1]s \"$@\"\n", wrapped, s.home)
	if os.Getenv("OMNIAGENT_TEST_KEEP") != "" {
		wrapper = fmt.Sprintf(
			"#!/bin/bash\nprintf '%%s\\n' \"$@\" >>%[2]s/argv\ntee -a %[2]s/said | %[1]s \"$@\" 2> >(tee -a "+
				"%[2]s/stderr >&2) | tee -a %[2]s/heard\nexit ${PIPESTATUS[1]}\n", wrapped, s.home)
	}
	if err := hermetic.WriteProgram(executable, []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "scenarios.mjs", name)
	cmd.Env = []string{
		"PATH=" + path, "HOME=" + s.home, "TMPDIR=" + t.TempDir(), "CLAUDE_CONFIG_DIR=" + filepath.Join(s.home,
			".claude"), "EXECUTABLE=" + executable, "WORK=" + s.work,
		"MODULES=" + modules, "BESIDE=" + s.beside, "MCP=" + self, "ANTHROPIC_BASE_URL=" +
			server.URL(), "ANTHROPIC_API_KEY=" + key, "NO_PROXY=127.0.0.1", "IS_SANDBOX=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_MAX_RETRIES=0",
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", name, err, out, stderr.String())
	}
	var o observed
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	if os.Getenv("OMNIAGENT_TEST_KEEP") != "" {
		t.Logf("%s", out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("stderr: %s", o["stderr"])
		}
	})
	return o
}

// seed answers the questions of Claude Code's first start.
func (s *stage) seed(t *testing.T) {
	state := fmt.Sprintf(
		`{"hasCompletedOnboarding":true,"lastOnboardingVersion":"2.1.329","theme":"dark","bypassPermissionsModeAccepted":true,"autoUpdates":false,`+
			`"customApiKeyResponses":{"approved":[%q],"rejected":[]}}`, key[len(key)-20:])
	dir := filepath.Join(s.home, ".claude")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".claude.json"), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newStage(t *testing.T, ours bool) *stage {
	t.Helper()
	if kept := os.Getenv("OMNIAGENT_TEST_KEEP"); kept != "" {
		dir := filepath.Join(kept, strings.ReplaceAll(t.Name(), "/", "-"))
		_ = os.RemoveAll(dir)
		s := &stage{
			home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"),
			beside: filepath.Join(dir, "beside"), ours: ours,
		}
		for _, d := range []string{s.home, s.work, s.beside} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	return &stage{home: t.TempDir(), work: t.TempDir(), beside: t.TempDir(), ours: ours}
}
