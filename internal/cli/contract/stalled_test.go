package contract

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// stalling are commands for readers that stop reading.
func stalling() []*Command {
	return []*Command{
		quick(Command{
			Path: "flood", Class: Listing, Output: TypeOf[itemData](), List: &List{
				Key: "items", ID: "name", Order: "given",
			},
			Run: func(_ context.Context, c *Call) (Result, error) {
				rows := func(yield func(item) bool) {
					for yield(item{Name: strings.Repeat("x", 1000)}) {
					}
				}
				return Result{Data: itemData{Rows[item]{Seq: rows}}}, nil
			},
		}),
		quick(Command{Path: "chatter", Run: func(_ context.Context, c *Call) (Result, error) {
			for range 400 {
				c.Log("%s", strings.Repeat("x", 1000))
			}
			return Result{Data: anyData{"done"}}, nil
		}}),
		quick(Command{Path: "large", Run: func(context.Context, *Call) (Result, error) {
			return Result{Data: anyData{strings.Repeat("x", 900_000)}}, nil
		}}),
		quick(Command{Path: "lender", Run: func(context.Context, *Call) (Result, error) {
			child, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "sleep 20"},
				&os.ProcAttr{Files: []*os.File{nil, os.Stdout, nil}})
			if err != nil {
				return Result{}, err
			}
			defer func() { time.AfterFunc(5*time.Second, func() { _ = child.Kill() }) }()
			return Result{Data: anyData{"done"}}, nil
		}}),
	}
}

// TestStalledReaders: a reader that holds its pipe open and reads nothing cannot keep a call alive beyond its clock or
// a signal.
func TestStalledReaders(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		signal bool
	}{
		"rows and the clock":     {[]string{"flood", "--stream", "--limit", "0", "--timeout", "500ms"}, false},
		"rows and a signal":      {[]string{"flood", "--stream", "--limit", "0"}, true},
		"one answer, and signal": {[]string{"large"}, true},
		"standard error":         {[]string{"chatter"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "OMNIAGENT_MAX_OUTPUT_BYTES=0")
			cmd := w.command(c.args...)
			outR, outW, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = outR.Close() }()
			cmd.Stdout, cmd.Stderr = outW, outW
			if c.args[0] == "chatter" {
				cmd.Stdout = nil // only standard error has such a reader
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = outW.Close()
			if c.signal { // the first byte says that it is writing
				if _, err := outR.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			select {
			case <-done:
			case <-time.After(hermetic.Patience):
				_ = cmd.Process.Kill()
				t.Fatal("it did not end")
			}
		})
	}
}

// TestLentStdout: a child that was given our standard output is not waited for.
func TestLentStdout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run(t, "lender")
	if a.code != 0 || a.took > hermetic.Patience {
		t.Fatalf("exit %d after %s: %s", a.code, a.took, a.stdout)
	}
}

// TestCutKeepsTheMarks: whatever is cut, foreign text is never shown without the marks that it had.
func TestCutKeepsTheMarks(t *testing.T) {
	t.Parallel()
	tree := (&walker{}).tree(map[string]any{"a": Foreign[map[string]string]{map[string]string{
		"name":  strings.Repeat("y", 300),
		"other": "z",
	}}, "b": strings.Repeat("w", 200)})
	for budget := range 400 {
		cut := (&cutter{}).fit(tree, budget, "")
		o, _ := cut.(object)
		inner, _ := o.get("a")
		if shown, ok := inner.(object); ok {
			trusted, marked := shown.get("_trusted")
			source, _ := shown.get("_source")
			if !marked || trusted != false || source != "external" {
				t.Fatalf("budget %d: %s", budget, appendJSON(nil, cut))
			}
		}
	}
}

// TestAbandonedFailure: a safe command whose reader has left ends with 0 and says nothing, even if it failed.
func TestAbandonedFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer func() { _ = out.Close() }()
	cmd := w.command("fail")
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v %q", err, stderr.String())
	}
}
