package engine_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

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
