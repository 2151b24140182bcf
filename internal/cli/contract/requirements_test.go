package contract

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// handedIn makes the real program; whole_test.go sets it.
var handedIn func() *Program

// HandIn sets the real program. It is for the tests outside the package, which can import the real commands.
func HandIn(program func() *Program) struct{} { handedIn = program; return struct{}{} }

// wholeProgram is the real program, with every declaration checked.
func wholeProgram(t *testing.T) *Program {
	t.Helper()
	p := handedIn()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// theWhole is the value of asProgram with which the test binary runs the real program.
const theWhole = "whole"

func TestRequirements(t *testing.T) {
	t.Parallel()
	t.Run("platform", func(t *testing.T) {
		t.Parallel()
		asked := newWorld(t).inside(t, nil, []string{"elsewhere", "--show-requirements"})
		asked.succeeded(t)
		same(t, "platform", asked.at(t, "data.platform"), []any{"darwin", "linux", "windows"})
	})
	t.Run("tools", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		asked := w.run(t, "elsewhere", "--show-requirements")
		asked.succeeded(t)
		same(t, "required_tools", asked.at(t, "data.required_tools"), map[string]any{"git": "2.20"})
		same(t, "runtime", asked.at(t, "data.runtime"), "none: one static binary")
		same(t, "the schema", w.inside(t, nil, []string{"elsewhere", "--schema"}).at(t, "data.required_tools"),
			map[string]any{"git": "2.20"})
	})
	t.Run("versions", testToolVersions)
}

// testToolVersions gives doctor other versions of git than there are.
func testToolVersions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for git is a script")
	}
	for version, well := range map[string]bool{
		"2.19.9": false, "1.9": false, "2.20": true, "2.20.0": true,
		"2.100.1": true, "3.0": true, "": false,
	} {
		w := newWorld(t)
		bin := t.TempDir()
		if version != "" {
			if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\necho git version "+version+"\n"),
				0o700); err != nil {
				t.Fatal(err)
			}
		}
		w.env = append(w.env, asProgram+"="+theWhole, "PATH="+bin)
		a := w.run(t, "doctor")
		validEnvelope(t, a.stdout)
		d, _ := a.at(t, "data.dependencies").([]any)[0].(map[string]any)
		same(t, "git "+version+": name", d["name"], "git")
		same(t, "git "+version+": min_version", d["min_version"], "2.20")
		same(t, "git "+version+": ok", d["ok"], well)
		if version != "" {
			same(t, "version", d["version"], version)
		}
		for _, item := range a.at(t, "data.checks").([]any) {
			check := item.(map[string]any)
			if check["name"] != "git" {
				continue
			}
			same(t, "git "+version+": the check", check["ok"], well)
			if fix, _ := check["fix"].(string); (fix == "") == !well {
				t.Errorf("git %s: the fix is %q", version, fix)
			}
		}
	}
}
