package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/testkit/hermetic"
)

// TestKeptVersions: what a program said counts for that very file and no other.
func TestKeptVersions(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "agent")
	write := func(text string, at time.Time) {
		t.Helper()
		if err := hermetic.WriteProgram(program, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(program, at, at); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Unix(1_700_000_000, 5)
	write("one", then)
	v := cli.Versions{File: filepath.Join(dir, "state", "versions.json")}
	if got := v.Of(program); got != "" {
		t.Errorf("nobody asked: %q", got)
	}
	for said, want := range map[string]string{
		"2.1.329 (Claude Code)\n": "2.1.329", "codex-cli 0.169.0": "0.169.0", "v1.2.3": "1.2.3",
		"agent 1.0.0-beta.1, built today":         "1.0.0-beta.1",
		"GitHub Copilot CLI 1.0.102.\nCommit: ab": "1.0.102", "no version": "", "": "", "1.2": "", "\x1b[1m1.2.3": "",
	} {
		got, err := v.Keep(program, said)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", said, got, err)
		}
		if want != "" && v.Of(program) != want {
			t.Errorf("%q: %q is kept", said, v.Of(program))
		}
	}
	if _, err := v.Keep(program, "3.2.1"); err != nil {
		t.Fatal(err)
	}
	write("two", then.Add(time.Nanosecond))
	if got := v.Of(program); got != "" {
		t.Errorf("it was written anew: %q", got)
	}
	write("three", then)
	if got := v.Of(program); got != "" {
		t.Errorf("it has another size: %q", got)
	}
	if err := os.WriteFile(v.File, []byte(`{"torn`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := v.Of(program); got != "" {
		t.Errorf("the file is torn: %q", got)
	}
	kept, err := json.Marshal(map[string]any{dir: map[string]string{"version": strings.Repeat("1", 1<<20)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(v.File, kept, 0o600); err != nil { // a cache without end begins again
		t.Fatal(err)
	}
	if got, err := v.Keep(program, "4.0.0"); got != "4.0.0" || err != nil || v.Of(program) != "4.0.0" {
		t.Errorf("%q, %v, %q", got, err, v.Of(program))
	}
	if info, err := os.Stat(v.File); err != nil || info.Size() > 1<<20 {
		t.Errorf("the cache grows for ever: %v", err)
	}
}

// TestSaidVersion: it counts only where no package.json tells.
func TestSaidVersion(t *testing.T) {
	dir := t.TempDir()
	if err := hermetic.WriteProgram(filepath.Join(dir, "agent"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := cli.Program{ID: "agent", About: agent.About{Binary: "agent", Package: "the-agent"}}
	env := agent.Env{
		Lookup:  func(name string) (string, bool) { return dir, name == "PATH" },
		Printed: func(string) string { return "1.1.1" },
	}
	if in, err := p.Locate(env); err != nil || in.Version != "1.1.1" {
		t.Errorf("%+v, %v", in, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"the-agent","version":"2.2.2"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if in, err := p.Locate(env); err != nil || in.Version != "2.2.2" {
		t.Errorf("%+v, %v", in, err)
	}
}
