package process

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

// TestAway: nothing that a workspace chooses decides what a program of the person's does: not the directory, not PATH,
// not a variable that leads there.
func TestAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs here are scripts for sh")
	}
	top := pathOf(t)
	ws, state, bin := filepath.Join(top, "ws"), filepath.Join(top, "state"), filepath.Join(top, "bin")
	link, linked := filepath.Join(top, "link"), filepath.Join(top, "linked")
	for _, dir := range []string{filepath.Join(ws, "bin"), bin, linked} {
		check(t, os.MkdirAll(dir, 0o700))
	}
	check(t, os.Symlink(filepath.Join(ws, "bin"), link))
	script := func(path, text string) { check(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700)) }
	script(filepath.Join(ws, "bin", "what"), "echo workspace")
	script(filepath.Join(ws, "bin", "inner"), "echo workspace")
	script(filepath.Join(ws, "bin", "only"), "echo workspace")
	check(t, os.Symlink(filepath.Join(ws, "bin", "what"), filepath.Join(linked, "what")))
	check(t, os.Symlink(filepath.Join(ws, "bin", "only"), filepath.Join(linked, "only")))
	script(filepath.Join(bin, "what"), `pwd; ls -A; inner; echo "${GEM_PATH-unset} ${LANG-unset} ${GIVEN-unset}"`)
	script(filepath.Join(bin, "inner"), "echo own")
	t.Chdir(ws)
	away := Programs{Roots: Roots{ws}, Temp: state, Env: []string{
		"PATH=" + strings.Join([]string{
			"bin", "", ".", link, filepath.Join(ws, "bin"), linked, bin, "/usr/bin", "/bin",
		}, ":"),
		"HOME=" + top, "LANG=C", "GEM_PATH=/usr/share:" + filepath.Join(link, "gems"),
	}}
	r, err := away.Run(t.Context(), Spec{Argv: []string{"what"}, Env: []string{"GIVEN=" + ws}})
	check(t, err)
	got := strings.Split(strings.TrimSpace(string(r.Stdout)), "\n")
	if len(got) != 3 || filepath.Dir(got[0]) != state || !slices.Equal(got[1:], []string{"own", "unset C " + ws}) {
		t.Fatalf("got %q %s", got, r.Stderr)
	}
	if left, err := os.ReadDir(state); len(left) > 0 || err != nil {
		t.Errorf("left %v %v", left, err)
	}
	if got := away.Find("what"); got != filepath.Join(bin, "what") {
		t.Errorf("found %s", got)
	}
	for _, name := range []string{"only", filepath.Join(linked, "only")} {
		if got := away.Find(name); got != "" {
			t.Errorf("found %s", got)
		}
	}
	_, err = away.Run(t.Context(), Spec{Argv: []string{"only"}})
	wantCode(t, err, fault.NotInstalled)
	_, err = away.Run(t.Context(), Spec{Argv: []string{"bin/what"}})
	wantCode(t, err, fault.NotInstalled)
	_, err = Programs{}.Run(t.Context(), Spec{Argv: []string{"sh", "-c", "true"}})
	wantCode(t, err, fault.NotInstalled)
	if left, err := os.ReadDir(state); len(left) > 0 || err != nil {
		t.Errorf("left %v %v", left, err)
	}
}

// TestAwayFromWorkspaceAsPlace: the empty directory does not lie in the workspace, and what killed programs left goes.
func TestAwayFromWorkspaceAsPlace(t *testing.T) {
	t.Parallel()
	top := pathOf(t)
	inside := filepath.Join(top, "ws", "state")
	dir, err := Programs{Roots: Roots{filepath.Join(top, "ws")}, Temp: inside}.empty(nil)
	check(t, err)
	defer os.Remove(dir)
	if strings.HasPrefix(dir, filepath.Join(top, "ws")) {
		t.Errorf("it lies in the workspace: %s", dir)
	}
	state := filepath.Join(top, "state")
	old, full := filepath.Join(state, "empty-1"), filepath.Join(state, "empty-2")
	young := filepath.Join(state, "empty-3")
	for _, dir := range []string{old, full, young} {
		check(t, os.MkdirAll(dir, 0o700))
	}
	check(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o600))
	long := time.Now().Add(-2 * emptyLives)
	check(t, os.Chtimes(old, long, long))
	check(t, os.Chtimes(full, long, long))
	dir, err = Programs{Temp: state}.empty(nil)
	check(t, err)
	left, err := filepath.Glob(filepath.Join(state, "*"))
	check(t, err)
	want := []string{full, young, dir}
	slices.Sort(want)
	if slices.Sort(left); !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

// TestAllPlacesInTheWorkspace: where temporary files go into the workspace too, the empty directory lies in the home
// directory, and in no other case in the workspace.
func TestAllPlacesInTheWorkspace(t *testing.T) {
	top := pathOf(t)
	ws, home := filepath.Join(top, "ws"), filepath.Join(top, "home")
	for _, dir := range []string{filepath.Join(ws, "tmp"), home} {
		check(t, os.MkdirAll(dir, 0o700))
	}
	for _, name := range []string{"TMPDIR", "TEMP", "TMP"} { // the last two are for Windows
		t.Setenv(name, filepath.Join(ws, "tmp"))
	}
	for temp, env := range map[string][]string{
		"": nil, "state": nil, "other": {"HOME=" + home, "USERPROFILE=" + home},
	} {
		away := Programs{Roots: Roots{ws}}
		if temp != "" {
			away.Temp = filepath.Join(ws, temp)
		}
		dir, err := away.empty(env)
		if want := filepath.Join(home, ".cache", "omniagent"); env != nil && (err != nil || filepath.Dir(dir) != want) {
			t.Errorf("%q: %s %v, want it in %s", temp, dir, err, want)
		}
		if env == nil && err == nil {
			t.Errorf("%q: %s", temp, dir)
		}
	}
}

// TestWorkspaceThatHoldsHome: it is not a cloned repository, so the person's own programs stay.
func TestWorkspaceThatHoldsHome(t *testing.T) {
	t.Parallel()
	top := pathOf(t)
	bin := filepath.Join(top, "home", "bin")
	check(t, os.MkdirAll(bin, 0o700))
	away := Programs{Roots: Roots{top}, Env: []string{"HOME=" + filepath.Join(top, "home"), "PATH=" + bin}}
	if env := away.environment(nil); !slices.Contains(env, "PATH="+bin) {
		t.Errorf("got %q", env)
	}
}

func pathOf(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	return dir
}
