package run_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/engine"
	"omniagent/internal/work/run"
)

// TestSecretAnswers: a text does not answer whether a tool may run, and one that is secret is kept nowhere.
func TestSecretAnswers(t *testing.T) {
	const canary = "hunter2-canary"
	const script = `[{"call":{"name":"Write","input":{"file_path":"made","content":"x"}}},{"say":"ok"}]`
	b := newBench(t, script, engine.Options{})
	told := make(chan error, 1)
	r := b.alone(run.Task{Text: "go", Approval: setting.Prompt}, func(o *run.Owner) {
		o.Patience = time.Minute
		o.Tell = func(p run.Progress) {
			if p.Event == nil || p.Event.Kind != event.Question {
				return
			}
			go func() {
				r, err := b.store.Load(t.Context(), o.Run.ID)
				for err == nil && len(r.Open()) == 0 {
					r, err = b.store.Load(t.Context(), o.Run.ID)
				}
				if err != nil {
					told <- err
					return
				}
				if err := b.store.Tell(t.Context(), r, "", run.Answer{Text: "yes please"}); fault.Of(err) == nil ||
					fault.Of(err).Code != fault.ArgError {
					t.Errorf("a text alone: %v", err)
				}
				told <- b.store.Tell(t.Context(), r, "", run.Answer{Option: run.Approve, Text: canary, Secret: true})
			}()
		}
	})
	if err := <-told; err != nil || r.State != run.Succeeded {
		t.Fatalf("%v %s %+v", err, r.State, r.Result)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "made")); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{b.store.Dir, b.store.Sessions.Dir()} {
		files := 0
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, _ := os.ReadFile(path)
			if files++; bytes.Contains(data, []byte(canary)) {
				t.Errorf("%s has it", path)
			}
			return nil
		})
		if files == 0 {
			t.Errorf("there is nothing in %s", dir)
		}
	}
}

// TestInherit: what nobody answered is asked again, and so is what was answered with a secret.
func TestInherit(t *testing.T) {
	b := newBench(t, `[{"say":"ok"}]`, engine.Options{})
	create := func() *run.Run {
		r, err := b.store.Create(t.Context(), run.Task{Text: "go", Agents: []string{"inner"}, Dir: b.dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Release() })
		return r
	}
	first, second := create(), create()
	for key, a := range map[string]*run.Answer{
		"open": nil, "plain": {Text: "blue"}, "secret": {Text: "hunter2", Secret: true},
	} {
		first.Ask(key, key+"?")
		if a != nil {
			if err := first.Answer(key, *a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := second.Inherit(first.Record); err != nil {
		t.Fatal(err)
	}
	if open := second.Open(); len(open) != 2 || len(second.Questions) != 3 {
		t.Errorf("open: %+v", open)
	}
}

// TestDamagedRecords can be deleted, and runs that stay do not keep others from being pruned.
func TestDamagedRecords(t *testing.T) {
	b := newBench(t, `[{"say":"ok"}]`, engine.Options{})
	r := b.alone(run.Task{Text: "go", Approval: setting.Default}, func(*run.Owner) {})
	stay := filepath.Join(b.store.Dir, "run-")
	for i := range 60 { // what a process leaves that was killed before the first record
		if err := os.Mkdir(stay+string(rune('a'+i/10))+string(rune('0'+i%10)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; ; n++ {
		b.store.Prune(t.Context(), time.Nanosecond)
		if _, err := b.store.Load(t.Context(), r.ID); err != nil {
			break
		}
		if n == 1000 {
			t.Fatal("the run is never pruned")
		}
	}
	r = b.alone(run.Task{Text: "go", Approval: setting.Default}, func(*run.Owner) {})
	if err := os.WriteFile(filepath.Join(b.store.Path(r.ID), "run.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Delete(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	if err := b.store.Delete(t.Context(), r.ID); fault.Of(err).Code != fault.NotFoundCode {
		t.Errorf("again: %v", err)
	}
}

// TestAnsweredOnce: a second answer is told who gave the first, also when it names no question.
func TestAnsweredOnce(t *testing.T) {
	r := run.Record{ID: "r", Questions: []run.Question{{ID: "q", Answer: &run.Answer{By: 4711, At: time.Now()}}}}
	for _, id := range []string{"", "q"} {
		if _, err := r.Question(id); err == nil || !strings.Contains(err.Error(), "by process 4711") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
