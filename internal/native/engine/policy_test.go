package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/sandbox"
)

// TestWhatGitRunsIsAskedAbout in the mode that lets files be written, by whatever name it is reached.
func TestWhatGitRunsIsAskedAbout(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"store/objects", "store/refs", "store/HEAD"} { // a bare repository
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	linked := os.Symlink(".git/hooks", filepath.Join(dir, "docs")) == nil
	files, err := workspace.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for path, free := range map[string]bool{
		"src/a": true, ".github/a": true, "git/a": true, "x.git/a": true, ".gitignore": true, ".git/hooks/a": false,
		"sub/.GIT/config": false, "store/hooks/a": false,
		"docs/a": !linked, ".git./hooks/a": false, ".git /hooks/a": false, "GIT~1/hooks/a": false,
		".g\\u200cit/hooks/a": false, "src/.git::$INDEX_ALLOCATION/a": false,
	} {
		if runtime.GOOS == "windows" && strings.ContainsAny(path, ": ~") {
			continue // such names mean something else there, or nothing
		}
		client, _ := scripted(t,
			`[{"call":{"name":"Write","input":{"file_path":"`+path+`","content":"x"}}},{"say":"ok"}]`)
		s := begin(t, engine.Options{
			Client: client, Mode: setting.AutoEdit,
			Rules: guard.Judge{Place: guard.Place{Root: dir, Dir: dir, InGit: sandbox.InGitDir}},
		}, tool.Write(&tool.Env{Files: files}))
		if got := told(turn(t, s, "go", nil)); strings.Contains(got, "denied") == free {
			t.Errorf("%s: %s", path, got)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, ".git", "hooks")); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestWriteIsWhatWasAsked: a file that a person makes, changes or removes while a question about it stands is kept.
func TestWriteIsWhatWasAsked(t *testing.T) {
	large := func(path string) error { return os.Truncate(path, 65<<20) }
	for name, meanwhile := range map[string]func(path string) error{
		"":        nil,
		"edited":  func(path string) error { return os.WriteFile(path, []byte("mine"), 0o644) },
		"grown":   large,
		"made":    func(path string) error { return os.WriteFile(path, []byte("mine"), 0o644) },
		"changed": func(path string) error { return os.WriteFile(path, []byte("mine"), 0o644) },
		"removed": os.Remove,
	} {
		for _, call := range []string{
			`{"name":"Write","input":{"file_path":"f","content":"its"}}`,
			`{"name":"SysBuiltIn.write_file","input":{"path":"f","content":"its"}}`,
		} {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if name != "" && name != "made" {
				if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			files, err := workspace.OpenDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer files.Close()
			env := &tool.Env{Files: files}
			client, _ := scripted(t, `[{"call":`+call+`},{"say":"ok"}]`)
			s := begin(t, engine.Options{
				Client: client, Mode: setting.AskAll, Services: agent.Services{CanAsk: true},
				Rules: guard.Judge{Place: guard.Place{Root: dir, Dir: dir}},
			}, append(tool.Routes(env, tool.Ours().In(env)), tool.Write(env))...)
			got := told(turn(t, s, "go", func(e event.Event) {
				if e.Kind != event.Question {
					return
				}
				if meanwhile != nil {
					if err := meanwhile(path); err != nil {
						t.Error(err)
					}
				}
				reply := event.Reply{Option: event.Allow}
				if name == "edited" {
					reply.Input = []byte(strings.Replace(string(e.Ask.Tool.Input), `"its"`, `"its own"`, 1))
				}
				answer(t, s, e, reply)
			}))
			want := map[string]string{"": "its", "made": "mine", "changed": "mine", "edited": "mine"}[name]
			holds, _ := os.ReadFile(path)
			if holds = bytes.TrimRight(holds, "\x00"); name == "grown" {
				want = "old"
			}
			if string(holds) != want || strings.Contains(got, "result true") != (name != "") {
				t.Errorf("%s %s: %q, %s", name, call, holds, got)
			}
		}
	}
}
