package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// runs returns the names with which the command make ran.
func (w *world) runs(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "runs"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	t.Run("repeat", func(t *testing.T) {
		w := newWorld(t)
		call := []string{"make", "x", "--text", "a b", "--idempotency-key", "k1"}
		first, second := w.run(t, call...).must(t, 0), w.run(t, call...).must(t, 0)
		if got := w.runs(t); !slices.Equal(got, []string{"x"}) {
			t.Errorf("it ran for %q", got)
		}
		first.want(t, "data", `{"effect":"created","list":[],"name":"x","none":null,"text":"a b"}`)
		second.want(t, "data", `{"effect":"noop","list":[],"name":"x","none":null,"text":"a b"}`)
		second.want(t, "meta.idempotency_hit", "true")
		second.want(t, "meta.effect", `"noop"`)
		if slices.Contains(keysOf(first.at(t, "meta")), "idempotency_hit") {
			t.Error("the first call was no repetition")
		}
		w.run(t, "make", "--raw-payload", `{name: "x", text: "a b"}`, "--idempotency-key", "k1").must(t, 0).want(t,
			"meta.idempotency_hit", "true")
		w.run(t, "make", "x", "--text", "a b", "--idempotency-key", "k2").must(t, 0)
		w.run(t, "make", "x", "--text", "a b").must(t, 0)
		if got := w.runs(t); len(got) != 3 {
			t.Errorf("it ran for %q", got)
		}
	})
	t.Run("no_data", func(t *testing.T) { // a call without a result is carried out once, too
		w := newWorld(t)
		for range 3 {
			w.hosted(t, nil, "make", "nothing", "--idempotency-key", "k").must(t, 0).want(t, "data", "null")
		}
		if got := w.runs(t); len(got) != 1 {
			t.Errorf("it ran for %q", got)
		}
	})
	t.Run("dry_run", func(t *testing.T) { // trying does not use the key up
		w := newWorld(t)
		w.hosted(t, nil, "make", "x", "--idempotency-key", "k", "--dry-run").must(t, 0).want(t, "data.effect",
			`"would_create"`)
		w.hosted(t, nil, "make", "x", "--idempotency-key", "k").must(t, 0).want(t, "data.effect", `"created"`)
	})
	t.Run("unmasked", func(t *testing.T) { // one unmasked answer does not permit the next
		w := newWorld(t)
		call := []string{"make", "x", "--text", testKey, "--idempotency-key", "k"}
		w.hosted(t, nil, append(call, "--unmask")...).must(t, 0).want(t, "data.text", `"`+testKey+`"`)
		again := w.hosted(t, nil, call...).must(t, 0)
		again.want(t, "meta.idempotency_hit", "true")
		if strings.Contains(again.stdout, testKey) {
			t.Error(again.stdout)
		}
	})
	t.Run("other_call", func(t *testing.T) {
		w := newWorld(t)
		w.run(t, "make", "x", "--idempotency-key", "k").must(t, 0)
		if err := os.Mkdir(filepath.Join(w.dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"make", "y"}, {"make", "x", "--text", "z"}, {"make", "x", "--cwd", "sub"}} {
			a := w.run(t, append(args, "--idempotency-key", "k")...).must(t, 6)
			a.want(t, "error.code", `"IDEMPOTENCY_KEY_REUSED"`)
			a.want(t, "error.retryable", "false")
			a.want(t, "data", "null")
		}
		if got := w.runs(t); len(got) != 1 {
			t.Errorf("it ran for %q", got)
		}
	})
	t.Run("safe_command", func(t *testing.T) {
		w := newWorld(t)
		a := w.run(t, "ok", "--idempotency-key", "k").must(t, 2)
		if !strings.Contains(a.stdout, "UNKNOWN_FLAG") {
			t.Error(a.stdout)
		}
		w.hosted(t, nil, "make", "x", "--idempotency-key", "../k").must(t, 2)
	})
}

func TestInstance(t *testing.T) {
	t.Parallel()
	t.Run("apart", func(t *testing.T) {
		w := newWorld(t)
		plain, a, b := w.run(t, "where").must(t, 0), w.run(t, "where", "--instance-id", "A").must(t, 0), w.run(t,
			"where", "--instance-id", "B").must(t, 0)
		for _, path := range []string{"data.state", "data.data", "data.cache", "data.lock", "meta.audit_log_path"} {
			one, other, none := a.at(t, path), b.at(t, path), plain.at(t, path)
			if one == other || one == none || other == none || !strings.Contains(fmt.Sprint(one), "/instances/A") {
				t.Errorf("%s: %v, %v, %v", path, one, other, none)
			}
		}
		a.want(t, "meta.instance_id", `"A"`)
		if a.at(t, "data.config") != plain.at(t, "data.config") {
			t.Error("the user's configuration belongs to all instances")
		}
		if slices.Contains(keysOf(plain.at(t, "meta")), "instance_id") {
			t.Error("there is no instance")
		}
		if log := w.auditLog(t, "instances", "A"); strings.Count(log, "\n") != 1 ||
			!strings.Contains(log, `"instance_id":"A"`) {
			t.Error(log)
		}
		if log := w.auditLog(t); strings.Count(log, "\n") != 1 {
			t.Error(log)
		}
		for _, instance := range []string{"A", "B", "A"} { // a key counts within its instance
			w.hosted(t, nil, "make", "x", "--idempotency-key", "k", "--instance-id", instance).must(t, 0)
		}
		if got := w.runs(t); len(got) != 2 {
			t.Errorf("it ran for %q", got)
		}
	})
	t.Run("environment", func(t *testing.T) {
		w := newWorld(t)
		flag, env := w.run(t, "where", "--instance-id", "A").must(t, 0), w.with("OMNIAGENT_INSTANCE_ID=A").run(t,
			"where").must(t, 0)
		for _, path := range []string{
			"data.state", "data.data", "data.cache", "meta.audit_log_path",
			"meta.instance_id",
		} {
			if flag.at(t, path) != env.at(t, path) {
				t.Errorf("%s: %v, %v", path, flag.at(t, path), env.at(t, path))
			}
		}
		w.with("OMNIAGENT_INSTANCE_ID=A").hosted(t, nil, "where", "--instance-id", "B").must(t, 0).want(t,
			"meta.instance_id", `"B"`)
		for _, bad := range []string{"../x", "a/b", "/tmp", "..", ".", "a b", strings.Repeat("a", 65)} {
			a := w.with("OMNIAGENT_INSTANCE_ID="+bad).hosted(t, nil, "make", "x").must(t, 2)
			if !strings.Contains(a.stdout, "OMNIAGENT_INSTANCE_ID") ||
				strings.Contains(fmt.Sprint(a.at(t, "meta.audit_log_path")), "instances") {
				t.Errorf("%q: %s", bad, a.stdout)
			}
			w.hosted(t, nil, "make", "x", "--instance-id", bad).must(t, 2)
		}
		if got := w.runs(t); len(got) > 0 {
			t.Errorf("it ran for %q", got)
		}
	})
}

// batch runs lines and returns an answer for each, and what the batch itself came to.
func (w *world) batch(t *testing.T, lines string, args ...string) (answers []answered, code int) {
	t.Helper()
	in := *w
	in.stdin = lines
	whole := in.run(t, append([]string{"exec"}, args...)...)
	for line := range strings.Lines(whole.stdout) {
		a := answered{stdout: line, code: whole.code}
		a.envelope = validEnvelope(t, line)
		answers = append(answers, a)
	}
	return answers, whole.code
}

func TestExec(t *testing.T) {
	t.Parallel()
	hermetic.Long(t)
	const mixed = `{"_cmd":"ok"}` + "\n" + `{"_cmd":"fail"}` + "\n" + `{"_cmd":"group.leaf"}` + "\n"
	t.Run("stops", func(t *testing.T) {
		w := newWorld(t)
		answers, code := w.batch(t, mixed)
		if code != 1 || len(answers) != 2 {
			t.Fatalf("exit %d, %d lines", code, len(answers))
		}
		for i, want := range []string{`["ok",1,true]`, `["fail",2,false]`} {
			meta := answers[i].at(t, "meta").(map[string]any)
			if got := fmt.Sprintf(`["%v",%v,%v]`, meta["_cmd"], meta["_line"], meta["ok"]); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		answers[1].want(t, "error.exit_code", "5")
		for _, line := range []string{
			`{"_cmd":"panic"}`, `{"_cmd":"second","_opts":{"timeout":"20ms"}}`,
			`{"_cmd":"nothing"}`, `{"_cmd":"exec"}`, `{}`, `not JSON`, `[1]`,
			`{"_cmd":"ok","_opts":{"output":"plain","help":true}}`, "{\"_cmd\":\"x\\u001b[2J\"}",
		} {
			answers, _ := w.batch(t, line+"\n"+`{"_cmd":"ok"}`, "--ignore-errors")
			if len(answers) != 2 || answers[1].at(t, "meta.ok") != true {
				t.Errorf("%s: %d answers", line, len(answers))
			}
			eachString(answers[0].envelope, func(s string) {
				if unclean(s) {
					t.Errorf("%s: %q", line, s)
				}
			})
		}
	})
	t.Run("ignore_errors", func(t *testing.T) {
		w := newWorld(t)
		answers, code := w.batch(t, mixed, "--ignore-errors")
		if code != 1 || len(answers) != 3 || answers[2].at(t, "meta.command") != "group.leaf" ||
			answers[2].at(t, "meta._line") != 3.0 {
			t.Errorf("exit %d, %d lines", code, len(answers))
		}
		for _, args := range [][]string{nil, {"--ignore-errors"}} {
			if answers, code := w.batch(t, `{"_cmd":"ok"}`+"\n"+`{"_cmd":"numbered","count":3,"_opts":{"limit":2},},`,
				args...); code == 0 || len(answers) != 2 {
				t.Errorf("a comma too many: exit %d, %d lines", code, len(answers))
			}
			answers, code := w.batch(t, `{"_cmd":"ok"}`+"\n"+`{_cmd:"numbered","count":3,"_opts":{"limit":2},}`,
				args...)
			if code != 0 || len(answers) != 2 {
				t.Fatalf("exit %d, %d lines", code, len(answers))
			}
			answers[1].want(t, "meta.pagination.returned", "2")
			answers[1].want(t, "meta.total", "3")
		}
		if log := w.auditLog(t); strings.Count(log, `"command":"fail"`) != 1 ||
			!regexp.MustCompile(`"command":"exec"`).MatchString(log) {
			t.Errorf("each line is a call of its own: %s", log)
		}
	})
	t.Run("dry_run", func(t *testing.T) {
		w := newWorld(t)
		lines := `{"_cmd":"make","name":"a"}` + "\n" + `{"_cmd":"ok"}` + "\n" +
			`{"_cmd":"make","name":"b","_opts":{"dry_run":false}}` + "\n" +
			`{"_cmd":"make","name":"c","_opts":{"dry_run":true}}` + "\n"
		answers, code := w.batch(t, lines, "--preview")
		if code != 0 || len(answers) != 4 {
			t.Fatalf("exit %d, %d lines", code, len(answers))
		}
		for i, want := range map[int]string{0: `"would_create"`, 2: `"created"`, 3: `"would_create"`} {
			answers[i].want(t, "meta.effect", want)
		}
		if got := w.runs(t); !slices.Equal(got, []string{"b"}) {
			t.Errorf("it ran for %q", got)
		}
		if _, code := w.batch(t, lines); code != 0 || len(w.runs(t)) != 3 {
			t.Errorf("without it: exit %d, %q", code, w.runs(t))
		}
	})
}
