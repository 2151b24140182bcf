//go:build unix

package shim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/testkit/measure"
)

// TestARunIsTakenBack has an agent throw work away, directly started, and takes that back.
func TestARunIsTakenBack(t *testing.T) {
	w := newWorld(t, "claude")
	w.link(w.program("../wreck", "#!/bin/sh\n/bin/rm -rf src .git\necho agent >made\nprintf done\n"), "claude")
	w.file("src/a.txt", "mine\n")
	w.env = []string{"PATH=" + w.bin + ":/usr/bin:/bin"}
	state := func() string {
		t.Helper()
		text, err := measure.Oracle(w.root, w.env)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	was := state()
	report := filepath.Join(w.home, "report.json")
	type taken struct {
		Turn *string
		Late bool
	}
	run := func(more ...string) *taken {
		t.Helper()
		r := w.run(nil, append([]string{"--agent", "claude", "-p", "q", "--report", report}, more...)...)
		if r.code != 0 || r.stdout != "done" || strings.Contains(r.stderr, "undo") || state() == was {
			t.Fatalf("%+v", r)
		}
		data, err := os.ReadFile(report)
		var told struct{ Undo *taken }
		if err != nil || json.Unmarshal(data, &told) != nil {
			t.Fatalf("%v %s", err, data)
		}
		return told.Undo
	}
	told := run()
	if told == nil || told.Turn == nil || told.Late {
		t.Fatalf("the report says %+v", told)
	}
	between := state()
	r := w.run(nil, "undo", "--dry-run", *told.Turn)
	if r.code != 0 || !strings.Contains(r.stdout, "nothing saw who wrote it") || state() != between {
		t.Errorf("what nobody saw would be taken back: %+v", r)
	}
	if r := w.run(nil, "undo", *told.Turn, "--take-all"); r.code != 0 || state() != was {
		t.Errorf("%+v\n%s\nwas\n%s", r, state(), was)
	}
	if told := run("--undo", "off"); told != nil {
		t.Errorf("without snapshots the report says %+v", told)
	}
	if r := w.run(nil, "undo"); r.code != 5 {
		t.Errorf("a run without snapshots is taken back: %+v", r)
	}
}

// TestARehearsedRunIsTakenBack has the native agent write a file on a script, in a home that is removed.
func TestARehearsedRunIsTakenBack(t *testing.T) {
	w := newWorld(t)
	script := w.file("../script.json", `[{"write":{"path":"made.txt","content":"x"}},{"say":"done"}]`)
	made := filepath.Join(w.root, "made.txt")
	r := w.run(nil, "--agent", "native", "--rehearse="+script, "--yolo", "-p", "q")
	if _, err := os.Stat(made); r.code != 0 || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	r = w.run(nil, "undo")
	if _, err := os.Stat(made); r.code != 0 || err == nil {
		t.Errorf("the file is there after undo: %+v", r)
	}
}

// TestWhatUndoDoesNotCoverIsSaid works in the home directory.
func TestWhatUndoDoesNotCoverIsSaid(t *testing.T) {
	w := newWorld(t)
	r := w.run(nil, "--agent", "codex", "-p", "q", "--cwd", w.home)
	if r.code != 0 || !strings.Contains(r.stderr, "undo does not cover this run: ") ||
		!strings.Contains(r.stderr, "whole home directory") {
		t.Errorf("%+v", r)
	}
	if r := w.run(nil, "--agent", "codex", "-p", "q", "--cwd", w.home, "--undo", "off"); r.stderr != "" {
		t.Errorf("%+v", r)
	}
}
