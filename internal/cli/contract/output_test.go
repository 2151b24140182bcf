package contract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

func TestFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run(t, "numbered", "--fields", "size,nothing, name", "--limit", "2").must(t, 0)
	a.want(t, "data.items", `[{"name":"n000000","size":0},{"name":"n000001","size":1}]`)
	a.want(t, "meta.pagination.total", "25")
	if !strings.Contains(a.stdout, `{"name":"n000000","size":0}`) {
		t.Errorf("the members stand in another order: %s", a.stdout)
	}
	whole := w.hosted(t, nil, "show", "full").must(t, 0)
	a = w.hosted(t, nil, "show", "full", "--fields", "pointer", "--fields", "list").must(t, 0)
	a.want(t, "data", `{"list":["a"],"pointer":0}`)
	for _, path := range []string{"meta", ""} {
		got, want := keysOf(a.envelope), keysOf(whole.envelope)
		if path != "" {
			got, want = keysOf(a.at(t, path)), keysOf(whole.at(t, path))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q has %q, want %q", path, got, want)
		}
	}
	w.hosted(t, nil, "show", "full", "--fields", "ok,meta").must(t, 0).want(t, "data", "{}")
	for format, want := range map[string]string{
		"tsv": "size\n0\n1\n", "jsonl": "{\"size\":0}\n{\"size\":1}\n",
		"id": "n000000\nn000001\n",
	} {
		if a := w.hosted(t, nil, "numbered", "--fields", "size", "--limit", "2", "--output", format); a.stdout != want {
			t.Errorf("%s: %q", format, a.stdout)
		}
	}
}

func TestOutputFormats(t *testing.T) {
	t.Parallel()
	hermetic.Long(t)
	w := newWorld(t)
	terminal := func(h *Host) { h.StdoutTerminal = true }
	output := func(t *testing.T, args ...string) string {
		t.Helper()
		a := w.run(t, args...)
		if a.code != 0 {
			t.Fatalf("%q: exit %d: %s %s", args, a.code, a.stdout, a.stderr)
		}
		return a.stdout
	}
	t.Run("json", func(t *testing.T) {
		a := w.run(t, "numbered", "--output", "json").must(t, 0)
		if strings.Contains(a.stderr, "n0000") || strings.Contains(a.stdout, ": ") {
			t.Errorf("%q %q", a.stdout, a.stderr)
		}
		w.hosted(t, terminal, "numbered", "--output", "json").must(t, 0)
	})
	t.Run("jsonl", func(t *testing.T) {
		if got := output(t, "numbered", "--output", "jsonl", "--limit",
			"2"); got != `{"name":"n000000","size":0,"pad":""}`+"\n"+`{"name":"n000001","size":1,"pad":""}`+"\n" {
			t.Errorf("%q", got)
		}
		if got := output(t, "ok", "--output", "jsonl"); got != `{"value":"done"}`+"\n" {
			t.Errorf("%q", got)
		}
		if got := output(t, "numbered", "--output", "jsonl", "--count", "0"); got != "" {
			t.Errorf("%q", got)
		}
		w.hosted(t, nil, "fail", "--output", "jsonl").must(t, 5).want(t, "error.code", `"FILE_NOT_FOUND"`)
		w.hosted(t, nil, "numbered", "--output", "jsonl", "--limit", "-1").must(t, 2)
	})
	t.Run("tsv", func(t *testing.T) {
		if got := output(t, "numbered", "--output", "tsv", "--limit",
			"2"); got != "name\tsize\tpad\nn000000\t0\t\nn000001\t1\t\n" {
			t.Errorf("%q", got)
		}
		if got := output(t, "show", "cells", "--output", "tsv"); got != "id\ttext\n"+`tab\there`+"\t"+
			`line\nbreak \\ back`+"\n" {
			t.Errorf("%q", got)
		}
		if got := output(t, "numbered", "--output", "tsv", "--count", "0"); got != "name\tsize\tpad\n" {
			t.Errorf("without rows: %q", got)
		}
	})
	t.Run("plain", func(t *testing.T) {
		for _, args := range [][]string{{"numbered"}, {"lengthy"}, {"show", "full"}, {"foreign"}, {"ok"}} {
			got := output(t, append(args, "--output", "plain")...)
			var v any
			if got == "" || json.Unmarshal([]byte(got), &v) == nil || strings.Contains(got, "\x1b") ||
				strings.Contains(got, `"ok"`) {
				t.Errorf("%q: %q", args, got)
			}
		}
		if got := output(t, "numbered", "--output", "plain", "--limit", "2"); !strings.Contains(got, "n000000  0") {
			t.Errorf("%q", got)
		}
		if a := w.hosted(t, terminal, "ok"); a.code != 0 || !strings.Contains(a.stdout, "done") || a.envelope != nil {
			t.Errorf("on a terminal: %q", a.stdout)
		}
		a := w.run(t, "fail", "--output", "plain")
		if a.code != 5 || a.stdout != "" || !strings.HasPrefix(a.stderr, "oatest: the file x does not exist\nhint: ") {
			t.Errorf("%d %q %q", a.code, a.stdout, a.stderr)
		}
	})
	t.Run("id", func(t *testing.T) {
		if got := output(t, "numbered", "--output", "id", "--limit", "3"); got != "n000000\nn000001\nn000002\n" {
			t.Errorf("%q", got)
		}
		if got := output(t, "show", "cells", "--output", "id"); got != "tab here\n" {
			t.Errorf("%q", got)
		}
		a := w.run(t, "lengthy", "--output", "id")
		if a.code != 2 || a.stdout != "" || !strings.Contains(a.stderr, "has no id") {
			t.Errorf("no id: %d %q %q", a.code, a.stdout, a.stderr)
		}
	})
	t.Run("environment", func(t *testing.T) {
		set := w.with("OMNIAGENT_OUTPUT=tsv")
		if a := set.run(t, "ok"); a.stdout != "value\ndone\n" {
			t.Errorf("%q", a.stdout)
		}
		set.run(t, "ok", "--output", "json").must(t, 0)
		if a := set.hosted(t, terminal, "ok"); a.stdout != "value\ndone\n" {
			t.Errorf("on a terminal: %q", a.stdout)
		}
		for _, bad := range []string{"yaml", "JSON", "table"} {
			a := w.with("OMNIAGENT_OUTPUT="+bad).run(t, "ok").must(t, 2)
			if message, _ := a.at(t, "error.message").(string); !strings.Contains(message+a.stdout,
				"OMNIAGENT_OUTPUT") {
				t.Error(a.stdout)
			}
			w.hosted(t, nil, "ok", "--output", bad).must(t, 2)
		}
		w.with("OUTPUT=tsv", "TOOL_OUTPUT=tsv").run(t, "ok").must(t, 0)
	})
}

func TestStableOutput(t *testing.T) {
	t.Parallel()
	hermetic.Long(t)
	w := newWorld(t)
	for _, args := range [][]string{
		{"ok"}, {"numbered", "--limit", "3"}, {"where"}, {"show", "many"}, {"fail"}, {"ok", "--no-such-flag"}, {
			"tell",
			"--text", "x",
		}, {"make", "x", "--dry-run"}, {"ok", "--help"}, {"ok", "--schema"},
	} {
		args = append(args, "--stable-output")
		first, second := w.run(t, args...), w.run(t, args...)
		if first.stdout != second.stdout || first.code != second.code {
			t.Errorf("%q:\n%s\n%s", args, first.stdout, second.stdout)
		}
		validEnvelope(t, first.stdout)
		if slices.Contains(args, "--no-such-flag") {
			continue
		}
		meta := first.at(t, "meta").(map[string]any)
		if meta["request_id"] != nil || meta["timestamp"] != nil || meta["duration_ms"] != 0.0 {
			t.Errorf("%q: %v", args, meta)
		}
	}
	if a := w.hosted(t, nil, "ok"); !strings.Contains(a.stdout, `"request_id"`) {
		t.Error(a.stdout)
	}
}
