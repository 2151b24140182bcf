//go:build unix

package run

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestARunGoesOnAsItWasStarted: an answer and a retry ask the model that the run was started with, by its flags, and
// what keeps a rehearsed run a rehearsal begins its script again, without the question that was answered.
func TestARunGoesOnAsItWasStarted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var mu sync.Mutex
	models := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(strings.Builder)
		_, _ = io.Copy(body, r.Body)
		mu.Lock()
		defer mu.Unlock()
		for _, name := range []string{"fake-one", "fake-two"} {
			if strings.Contains(body.String(), name) {
				models[name]++
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(`data: {"choices":[{"index":0,"delta":{"content":"It is done."},"finish_reason":"stop"}]}` +
			"\n\ndata: [DONE]\n\n"))
	}))
	t.Cleanup(server.Close)
	flags := []string{"--yolo", "--provider", "openai", "--api-base", server.URL + "/v1", "--undo", "off", "--sandbox"}
	asked := p.run("native", append(flags, "off", "--model", "fake-one", "--require", "colour=Which colour?")...)
	asked.is(t, 4, "needs_input", "missing_input")
	answered := p.call("answer", asked.Data.ID, "blue")
	answered.is(t, 0, "succeeded", "done_unchanged")
	if models["fake-one"] != 1 {
		t.Errorf("the model was asked %v times: %s", models, answered)
	}
	p.call("runs", "retry", asked.Data.ID).is(t, 0, "succeeded", "done_unchanged")
	p.call("runs", "retry", asked.Data.ID, "--detach")
	p.call("runs", "list")
	again := p.newest()
	_, _ = p.command("runs", "watch", again).Output()
	if a := p.call("runs", "status", again); a.Code != 0 || models["fake-one"] != 3 {
		t.Errorf("the model was asked %v times: %s", models, a)
	}
	if turns, _ := filepath.Glob(filepath.Join(p.home, ".local/state/omniagent/undo/*")); len(turns) > 0 {
		t.Errorf("with --undo off there is %v", turns)
	}
	elsewhere := p.call("runs", "retry", asked.Data.ID, "--provider", "anthropic")
	if elsewhere.Code != 8 || models["fake-one"] != 3 {
		t.Errorf("another provider was asked at the address of the first: %v: %s", models, elsewhere)
	}
}

// TestARetriedRehearsal plays its script from the beginning, without the question that was answered.
func TestARetriedRehearsal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.call("run", "--rehearse", "-p", "greet")
	first.is(t, 4, "needs_input", "question")
	p.call("answer", first.Data.ID, "yes").is(t, 0, "succeeded", "done")
	if err := os.Remove(filepath.Join(p.work, "greeting.txt")); err != nil {
		t.Fatal(err)
	}
	again := p.call("runs", "retry", first.Data.ID)
	again.is(t, 0, "succeeded", "done")
	if p.read("greeting.txt") == "" {
		t.Errorf("it wrote nothing: %s", again)
	}
}

// TestFurtherDirectories: the agent may work in the directories of --add-dir, in a retried run too. One that cannot is
// not started.
func TestFurtherDirectories(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; touch began`)
	more := filepath.Join(filepath.Dir(p.work), "more")
	p.put(filepath.Join(more, "there.txt"), "it is there\n")
	p.put(filepath.Join(p.home, "script.json"),
		`[{"write":{"path":"`+filepath.Join(more, "made.txt")+`","content":"x\n"}},{"say":"done"}]`)
	args := []string{"run", "--rehearse", "--script", filepath.Join(p.home, "script.json"), "--auto-edit", "-p", "go"}
	first := p.call(append(args, "--add-dir", "../more")...)
	made := func(a answer, want bool) {
		t.Helper()
		if err := os.Remove(filepath.Join(more, "made.txt")); (err == nil) != want || a.Code != 0 {
			t.Errorf("%v: %s", err, a)
		}
	}
	made(first, true)
	made(p.call("runs", "retry", first.Data.ID), true)
	made(p.call(args...), false)
	if a := p.run("scribe", "--yolo", "--add-dir", more); a.Code == 0 ||
		!strings.Contains(a.Error.Message, "does not accept further directories") || p.read("began") != "" {
		t.Errorf("%s", a)
	}
}

// TestAFurtherDirectoryIsNotLookedAt: a report does not say that nothing has changed there, and what replaced such a
// directory while the run waited is not opened to the agent.
func TestAFurtherDirectoryIsNotLookedAt(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	more, made := filepath.Join(filepath.Dir(p.work), "more"), filepath.Join(filepath.Dir(p.work), "more/made.txt")
	p.put("../more/there.txt", "it is there\n")
	p.put("../other/there.txt", "it is there\n")
	p.put("../script.json", `[{"write":{"path":"`+made+`","content":"x\n"}},{"ask":"Go on?"},{"write":{"path":"`+
		filepath.Join(filepath.Dir(p.work), "other/made.txt")+`","content":"x\n"}},{"say":"done"}]`)
	args := []string{"run", "--rehearse", "--script", "../script.json", "--yolo", "-p", "go", "--add-dir", "../more"}
	out, err := p.command(append(args, "--output", "plain")...).CombinedOutput()
	said := string(out)
	if err == nil || strings.Contains(said, "No file has changed") || !strings.Contains(said, "Not looked at: "+more) {
		t.Errorf("%v %s", err, said)
	}
	if os.RemoveAll(more) != nil || os.Symlink(filepath.Join(filepath.Dir(p.work), "other"), more) != nil {
		t.Fatal("it is not replaced")
	}
	if a := p.call("answer", "yes"); a.Code == 0 || !strings.Contains(a.Error.Message, "leads elsewhere") {
		t.Errorf("%s", a)
	}
	if got := p.read("../other/made.txt"); got != "" {
		t.Errorf("%q", got)
	}
}
