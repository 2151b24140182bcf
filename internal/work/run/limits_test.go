package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/native/tool"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// TestReportsAreShort: a report is a part of another agent's conversation, however much an agent did and said.
func TestReportsAreShort(t *testing.T) {
	r := &Run{Record: Record{Result: &Result{Text: strings.Repeat("word ", 10_000), Changed: &Changes{Count: 300}}}}
	for i := range 300 {
		r.Result.Changed.Files = append(r.Result.Changed.Files, snapshot.Change{Path: fmt.Sprint(i)})
	}
	var out Report
	out.fill(t.Context(), r, tool.Packet{})
	if n := len(out.Summary); n > longestSummary+3 || len(out.Files) != mostReported || out.More != 300-mostReported {
		t.Errorf("a summary of %d bytes, %d files and %d more", n, len(out.Files), out.More)
	}
	lines := out.Lines()
	if n := len(lines); n > mostLines+3 || !strings.Contains(strings.Join(lines, "\n"), "and 280 more") {
		t.Errorf("%q", lines)
	}
	e := Ending{Tools: map[string]*ToolCall{}}
	for i := range 3 * mostChecks {
		e.Tools[fmt.Sprint(i)] = &ToolCall{Number: i, Kind: event.Shell, Ended: true, Command: fmt.Sprint(i)}
	}
	if all := checks(e); len(all) != mostChecks || all[mostChecks-1].Command != "59" {
		t.Errorf("checks: %+v", all)
	}
	e = Ending{End: &event.End{OK: true, Text: "Which of these do you want, " + strings.Repeat("x", 10_000) + "?"}}
	if q := e.question(); q == nil || len(q.Text) > longestQuestion+3 {
		t.Errorf("the question is %+v", q)
	}
}

// TestReportAfterAnInterrupt: it has the files that a run changed before it was interrupted.
func TestReportAfterAnInterrupt(t *testing.T) {
	s, dir := Store{Dir: t.TempDir()}, t.TempDir()
	r, err := s.Create(t.Context(), Task{Text: "go", Agents: []string{"a"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release() //nolint:errcheck // the test is over
	if err := errors.Join(r.survey(t.Context()), os.WriteFile(filepath.Join(dir, "made"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r.sight.seen = touch.Only(func(string) bool { return true }) // the agent has written it
	r.Result = &Result{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out Report
	if out.fill(ctx, r, tool.Packet{}); len(out.Files) != 1 || out.Files[0].Path != "made" {
		t.Errorf("%+v", out)
	}
}

// TestLongRecord: a record of any size is not held in memory.
func TestLongRecord(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	id := NewID()
	file := filepath.Join(s.Path(id), recordFile)
	if err := errors.Join(os.MkdirAll(s.Path(id), 0o700), os.WriteFile(file, []byte("{}"), 0o600),
		os.Truncate(file, maxRecord+1)); err != nil { // the rest is a hole
		t.Fatal(err)
	}
	if _, err := s.Peek(id); !errors.Is(err, fault.FieldTooLarge) {
		t.Errorf("%v", err)
	}
}

// TestManyFilesChanged: the record of a run counts all changes and names some; who asks for them gets all.
func TestManyFilesChanged(t *testing.T) {
	r := &Run{Record: Record{ID: NewID(), Task: Task{Dir: t.TempDir(), Fork: "f"}}, store: Store{Dir: t.TempDir()}}
	if err := errors.Join(os.MkdirAll(r.Path(), 0o700), r.survey(t.Context())); err != nil {
		t.Fatal(err)
	}
	for i := range 1005 {
		if err := os.WriteFile(filepath.Join(r.Dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := r.changed(t.Context())
	if changed == nil || changed.Count != 1005 || len(changed.Files) != 1000 {
		t.Fatalf("not 1005 changes are recorded, 1000 of them by name")
	}
	r.Result = &Result{Changed: changed}
	if err := workspace.WriteJSON(filepath.Join(r.Path(), recordFile), r.Record, os.WriteFile); err != nil {
		t.Fatal(err)
	}
	if _, files, err := r.store.Changes(t.Context(), r.ID); err != nil || len(files) != 1005 {
		t.Errorf("asked for: %d, %v", len(files), err)
	}
}

// TestDesk: its socket has a name that every system takes, wherever runs and temporary files are kept, and it takes no
// call of any length.
func TestDesk(t *testing.T) {
	temp := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	s := Store{Dir: filepath.Join(t.TempDir(), strings.Repeat("long", 30))}
	r := &Run{Record: Record{ID: NewID()}, store: s}
	if err := os.MkdirAll(r.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	_, cancel := context.WithCancelCause(t.Context())
	d, err := listen(r, cancel)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for n, answered := range map[int]bool{10: true, maxCall + 1: false} {
		c, err := net.Dial("unix", d.socket.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, strings.Repeat("x", n)+"\n") // it hangs up where that is too much
		if answer, _ := io.ReadAll(c); answered != (len(answer) > 0) {
			t.Errorf("%d bytes: %s", n, answer)
		}
		_ = c.Close()
	}
}
