package contract

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"omniagent/internal/testkit/hermetic"
)

func TestStrayPrints(t *testing.T) {
	t.Parallel()
	stray := func(t *testing.T, a answered) any {
		t.Helper()
		a.wantEnd(t, 0)
		for _, w := range a.at(t, "meta.warnings").([]any) {
			if w := w.(map[string]any); w["code"] == "THIRD_PARTY_STDOUT" {
				return w["detail"].(map[string]any)["text"]
			}
		}
		t.Fatalf("no warning: %s", a.stdout)
		return nil
	}
	t.Run("descriptor", func(t *testing.T) {
		t.Parallel()
		for how, want := range map[string]string{"print": "stray words", "descriptor": "stray bytes"} {
			if got := stray(t, newWorld(t).run(t, "stray", how)); got != want {
				t.Errorf("%s: the warning holds %q", how, got)
			}
		}
	})
	t.Run("json like", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "stray", "json", "--debug")
		stray(t, a)
		if strings.Contains(a.stdout, `data\":`) || !strings.Contains(a.stderr, `{"ok":true,"data":"stray"}`) {
			t.Errorf("%q %q", a.stdout, a.stderr)
		}
		b := newWorld(t).run(t, "stray", "json")
		stray(t, b)
		if strings.Contains(b.stderr, "data") {
			t.Errorf("without --debug: %q", b.stderr)
		}
	})
	t.Run("after the end", func(t *testing.T) {
		t.Parallel()
		for range 2 {
			newWorld(t).run(t, "stray", "forever", "--timeout", "50ms").wantEnd(t, 10)
		}
	})
}

func TestStreaming(t *testing.T) {
	t.Parallel()
	t.Run("rows", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		f := w.follow(t, "rows", "3", "--wait", "go", "--stream")
		if got := f.line(t); got != `{"name":"row-0","size":0}`+"\n" {
			t.Fatalf("first %q", got)
		}
		w.make(t, "go") // only now may the handler go on
		lines, code := f.end(t)
		if code != 0 || len(lines) != 3 || lines[0] != `{"name":"row-1","size":1}`+"\n" ||
			lines[1] != `{"name":"row-2","size":2}`+"\n" {
			t.Errorf("exit %d %q", code, lines)
		}
	})
	t.Run("summary", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "rows", "25", "--stream")
		lines := strings.Split(strings.TrimSuffix(a.stdout, "\n"), "\n")
		if a.code != 0 || len(lines) != 21 {
			t.Fatalf("exit %d, %d lines: %s", a.code, len(lines), a.stdout)
		}
		s := decode(t, lines[20])
		p, _ := s["pagination"].(map[string]any)
		if s["_summary"] != true || s["total"] != 25.0 || p["returned"] != 20.0 || p["has_more"] != true ||
			p["next_cursor"] == nil {
			t.Errorf("%s", lines[20])
		}
		a = w.run(t, "rows", "2", "--output", "jsonl", "--no-stream")
		if a.code != 0 || a.stdout != `{"name":"row-0","size":0}`+"\n"+`{"name":"row-1","size":1}`+"\n" {
			t.Errorf("exit %d: %s", a.code, a.stdout)
		}
	})
	t.Run("not supported", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "ok", "--stream")
		a.wantEnd(t, 2)
		a.wantAt(t, map[string]any{"error.code": "STREAMING_NOT_SUPPORTED"})
	})
	t.Run("nothing after the answer", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "rows", "--limit", "0", "--wait", "never", "--stream", "--timeout", "100ms")
		lines := strings.Split(strings.TrimSuffix(a.stdout, "\n"), "\n")
		last := len(lines) - 1
		validEnvelope(t, lines[last]+"\n")
		if a.code != 10 || last != 1 || strings.Contains(a.stdout, "late") {
			t.Errorf("exit %d, %s", a.code, a.stdout)
		}
	})
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	t.Run("stdout", func(t *testing.T) {
		t.Parallel()
		home := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var out writes
			if code := inside(t, home, &out, &bytes.Buffer{}, "long", "--heartbeat-ms", "10000"); code != 0 {
				t.Errorf("exit %d", code)
			}
			all := out.lines()
			last := len(all) - 1
			if last < 2 {
				t.Fatalf("%q", all)
			}
			for i, line := range all[:last] {
				if b := decode(t, line); b["status"] != "running" || b["heartbeat"] != true ||
					b["elapsed_ms"] != float64(10_000*(i+1)) {
					t.Errorf("%s", line)
				}
			}
			if e := validEnvelope(t, all[last]); e["heartbeat"] != nil {
				t.Errorf("%v", e)
			}
		})
		w := newWorld(t)
		f := w.follow(t, "long", "--heartbeat-ms", "5")
		for range 2 {
			if b := decode(t, f.line(t)); b["heartbeat"] != true {
				t.Errorf("%v", b)
			}
		}
		w.make(t, "go")
		lines, code := f.end(t)
		if code != 0 || len(lines) == 0 {
			t.Fatalf("exit %d %q", code, lines)
		}
		validEnvelope(t, lines[len(lines)-1])
	})
	t.Run("stderr", func(t *testing.T) {
		t.Parallel()
		home := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var out, errs writes
			inside(t, home, &out, &errs, "long", "--heartbeat-interval", "5", "--heartbeat-ms", "0")
			if got := strings.Join(errs.lines(), ""); !strings.HasPrefix(got, "[5s] ") ||
				!strings.Contains(got, "\n[10s] ") {
				t.Errorf("%q", got)
			}
			var quiet writes
			inside(t, home, &out, &quiet, "long", "--heartbeat-interval", "5", "--quiet")
			if len(quiet.lines()) > 0 {
				t.Errorf("%q", quiet.lines())
			}
		})
	})
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		home := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			var out writes
			inside(t, home, &out, &bytes.Buffer{}, "long", "--heartbeat-ms", "0")
			validEnvelope(t, strings.Join(out.lines(), ""))
			var unasked writes
			inside(t, home, &unasked, &bytes.Buffer{}, "long")
			validEnvelope(t, strings.Join(unasked.lines(), ""))
		})
	})
	t.Run("short command", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "ok", "--heartbeat-ms", "5")
		a.wantEnd(t, 2)
		if got := a.at(t, "error.errors").([]any)[0].(map[string]any)["code"]; got != "UNKNOWN_FLAG" {
			t.Errorf("%v", got)
		}
		for _, args := range [][]string{{"ok"}, {"rows", "3", "--stream"}, {"steps", "--output", "jsonl"}} {
			var out writes
			inside(t, t.TempDir(), &out, &bytes.Buffer{}, args...)
			if args[0] == "ok" && len(out.lines()) != 1 {
				t.Errorf("%q", out.lines())
			}
			for _, w := range out.lines() {
				if strings.Count(w, "\n") != 1 || !strings.HasSuffix(w, "\n") {
					t.Errorf("%v: one write has %q", args, w)
				}
			}
		}
	})
}

func TestVerbosity(t *testing.T) {
	t.Parallel()
	t.Run("quiet", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{
			{"ok"},
			{"talks"},
			{"warns"},
			{"fail"},
			{"panic"},
			{"hooks", "hang"},
			{
				"hang", "--timeout",
				"50ms",
			},
			{"ok", "--no-such-flag"},
			{"ok", "--help"},
			{"stray", "print"},
			{"no-such-command"},
			{"fail", "-q"},
		} {
			if a := newWorld(t).run(t, append(args, "--quiet")...); a.stderr != "" || a.stdout == "" {
				t.Errorf("%v: %q", args, a.stderr)
			}
		}
	})
	t.Run("debug", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env = append(w.env, "OMNIAGENT_LOCK_TIMEOUT=77s")
		a := w.run(t, "talks", "--debug", "--timeout=9s")
		if !strings.Contains(a.stderr, `["talks","--debug","--timeout=9s"]`) ||
			!strings.Contains(a.stderr, `"lock_timeout":"77s"`) || !strings.Contains(a.stderr, "a detail") {
			t.Errorf("%s", a.stderr)
		}
	})
	t.Run("exclusive", func(t *testing.T) {
		t.Parallel()
		for _, two := range [][]string{{"--quiet", "--verbose"}, {"--verbose", "--debug"}, {"--debug", "--quiet"}} {
			newWorld(t).run(t, append([]string{"ok"}, two...)...).wantEnd(t, 2)
		}
	})
	t.Run("automatic", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if a := w.run(t, "talks"); strings.Contains(a.stderr, "progress") || strings.Contains(a.stderr, "detail") ||
			!strings.Contains(a.stderr, "an error") {
			t.Errorf("%q", a.stderr)
		}
		if a := w.run(t, "talks", "--verbose"); !strings.Contains(a.stderr, "progress") ||
			strings.Contains(a.stderr, "detail") {
			t.Errorf("--verbose: %q", a.stderr)
		}
		if a := w.run(t, "fail"); !strings.Contains(a.stderr, "the file x does not exist") {
			t.Errorf("fail: %q", a.stderr)
		}
	})
}

func TestTrace(t *testing.T) {
	t.Parallel()
	t.Run("meta", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if a := w.run(t, "ok"); strings.Contains(a.stdout, "trace_id") {
			t.Errorf("%s", a.stdout)
		}
		for _, variable := range []string{"OMNIAGENT_TRACE_ID", "TOOL_TRACE_ID"} {
			w := newWorld(t)
			w.env = append(w.env, variable+"=trace-7")
			w.run(t, "ok").wantAt(t, map[string]any{"meta.trace_id": "trace-7"})
			if entries := w.audit(t); entries[0]["trace_id"] != "trace-7" {
				t.Errorf("%v", entries)
			}
		}
	})
	t.Run("stderr", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env = append(w.env, "OMNIAGENT_TRACE_ID=trace-7")
		for _, args := range [][]string{
			{"talks", "--debug"},
			{"fail"},
			{"panic", "--debug"},
			{"warns", "--output", "plain"},
		} {
			a := w.run(t, args...)
			if a.stderr == "" {
				t.Errorf("%v says nothing", args)
			}
			for line := range strings.Lines(a.stderr) {
				if !strings.HasPrefix(line, "[TRACE trace-7] ") && line != "TOOL_FAILED=1\n" {
					t.Fatalf("%v: %q", args, line)
				}
			}
		}
	})
}

func TestWarningsAsErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(t, "warns").wantEnd(t, 0)
	a := w.run(t, "warns", "--warnings-as-errors")
	a.wantEnd(t, 1)
	a.wantAt(t, map[string]any{
		"error.code": "WARNINGS_AS_ERRORS", "warnings": list("ODD: something is odd"),
		"data.value": "done",
	})
	w.run(t, "ok", "--warnings-as-errors").wantEnd(t, 0)
	w.run(t, "fail", "--warnings-as-errors").wantEnd(t, 5)
	if entries := w.audit(t); entries[1]["exit_code"] != 1.0 {
		t.Errorf("%v", entries)
	}
}

// TestInputWhileItComes: a command that reads lines answers each before the next one is there.
func TestInputWhileItComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := w.command("exec")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	f := followed(t, cmd)
	for n := 1; n <= 3; n++ {
		_, _ = io.WriteString(in, `{"_cmd":"ok"}`+"\n")
		e := validEnvelope(t, f.line(t))
		if meta, _ := e["meta"].(map[string]any); meta["_line"] != float64(n) {
			t.Errorf("line %d: %v", n, e["meta"])
		}
	}
	_ = in.Close()
	if lines, code := f.end(t); code != 0 || len(lines) != 0 {
		t.Errorf("exit %d %q", code, lines)
	}
}

// TestManyLines: any number of lines is carried out, one by one. A line that is longer than the limit ends the batch,
// and the lines before it have their answers.
func TestManyLines(t *testing.T) {
	hermetic.Long(t)
	w := newWorld(t)
	const line = `{"_cmd":"echo","text":"x"}` + "\n"
	w.stdin = strings.Repeat(line, 5000) // 130 kB
	if a := w.run(t, "exec"); a.code != 0 || strings.Count(a.stdout, "\n") != 5000 {
		t.Errorf("%d lines of 5000 have an answer: %d %s", strings.Count(a.stdout, "\n"), a.code, a.stderr)
	}
	w.stdin = line + line + `{"_cmd":"echo","text":"` + strings.Repeat("x", 65536) + "\"}\n" + line
	a := w.run(t, "exec")
	if rows := strings.Split(strings.TrimSpace(a.stdout), "\n"); a.code == 0 || len(rows) != 2 ||
		!strings.Contains(rows[1], `"_line":2`) || !strings.Contains(a.stderr, "the limit is 65536") {
		t.Errorf("%d: %.2000s", a.code, a.stdout)
	}
}
