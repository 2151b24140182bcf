package contract

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestMeta(t *testing.T) {
	t.Parallel()
	t.Run("identity", func(t *testing.T) {
		w := newWorld(t)
		a := w.run(t, "group", "leaf").must(t, 0)
		a.want(t, "meta.command", `"group.leaf"`)
		at, err := time.Parse(time.RFC3339, a.at(t, "meta.timestamp").(string))
		if err != nil || time.Since(at) > time.Minute || time.Until(at) > time.Minute {
			t.Errorf("%v, %v", at, err)
		}
		if id := a.at(t, "meta.request_id").(string); !regexp.MustCompile(`^[0-9a-v]{26}$`).MatchString(id) {
			t.Errorf("%q", id)
		}
		if log := w.auditLog(t); !strings.Contains(log, a.at(t, "meta.request_id").(string)) {
			t.Error("the log has another request")
		}
		seen := map[string]bool{}
		for range 20 {
			seen[w.hosted(t, nil, "ok").at(t, "meta.request_id").(string)] = true
		}
		if len(seen) != 20 {
			t.Errorf("%d ids of 20", len(seen))
		}
	})
	t.Run("versions", func(t *testing.T) {
		w := newWorld(t)
		a := w.run(t, "group", "leaf").must(t, 0)
		a.want(t, "meta.schema_version", `"1.0"`)
		a.want(t, "meta.contract_version", `"2.3.4"`)
		a.want(t, "meta.tool_version", `"`+strings.TrimSpace(w.run(t, "--version").stdout)+`"`)
		for _, args := range [][]string{{"group", "leaf"}, {"fail"}, {"ok", "--bad"}, {"ok", "--no-update-check"}} {
			if _, there := w.hosted(t, nil, args...).at(t, "meta").(map[string]any)["update_available"]; there {
				t.Errorf("%q speaks of updates", args)
			}
		}
	})
	t.Run("config", func(t *testing.T) {
		w := newWorld(t)
		none := w.run(t, "ok").must(t, 0)
		none.want(t, "meta.config_sources", "[]")
		hash := none.at(t, "meta.effective_config_hash")
		if again := w.hosted(t, nil, "numbered").at(t, "meta.effective_config_hash"); again != hash ||
			len(hash.(string)) < 8 {
			t.Errorf("%v, then %v", hash, again)
		}
		file := w.configure(t, "lock_timeout = \"3s\"\n")
		a := w.run(t, "ok").must(t, 0)
		a.want(t, "meta.config_sources", `["`+file+`"]`)
		if a.at(t, "meta.effective_config_hash") == hash {
			t.Error("another configuration, the same hash")
		}
		a.want(t, "meta.audit_log_path", `"`+filepath.Join(w.home, ".local", "share", "oatest", "audit.jsonl")+`"`)
		if _, err := os.Stat(a.at(t, "meta.audit_log_path").(string)); err != nil {
			t.Error(err)
		}
	})
	t.Run("duration", durations)
	t.Run("headless", func(t *testing.T) {
		screen := func(h *Host) { h.StdoutTerminal = true }
		w := newWorld(t).with("OMNIAGENT_OUTPUT=json")
		for _, row := range []struct {
			name string
			env  []string
			pipe bool
			want bool
		}{
			{"a screen", []string{"DISPLAY=:0"}, false, false},
			{"wayland", []string{"WAYLAND_DISPLAY=w"}, false, false},
			{"no screen", nil, false, true},
			{"ssh", []string{"DISPLAY=:0", "SSH_TTY=/dev/pts/1"}, false, true},
			{"CI", []string{"DISPLAY=:0", "CI=true"}, false, true},
			{"pipe", []string{"DISPLAY=:0"}, true, true},
		} {
			change := screen
			if row.pipe {
				change = nil
			}
			_, said := w.with(row.env...).hosted(t, change, "ok").must(t, 0).at(t, "meta").(map[string]any)["headless"]
			if said != row.want {
				t.Errorf("%s: headless is %v", row.name, said)
			}
		}
	})
}

func durations(t *testing.T) {
	for _, row := range []struct {
		args       []string
		code       int
		least, top float64
	}{
		{[]string{"second"}, 0, 1000, 1200},
		{[]string{"second", "--timeout", "200ms"}, 10, 200, 400},
		{[]string{"hang", "--timeout", "1s"}, 10, 1000, 1800}, // with the grace of half a second
		{[]string{"ok"}, 0, 0, 200},
		{[]string{"fail"}, 5, 0, 200},
		{[]string{"panic"}, 1, 0, 200},
		{[]string{"ok", "--bad"}, 2, 0, 200},
	} {
		if row.args[0] == "hang" { // its goroutine never ends, which a bubble does not allow
			a := newWorld(t).run(t, row.args...)
			checkDuration(t, a, row.code, row.least, row.top+2000)
			continue
		}
		w := newWorld(t)
		synctest.Test(t, func(t *testing.T) {
			checkDuration(t, w.hosted(t, nil, row.args...), row.code, row.least, row.top)
		})
	}
}

func checkDuration(t *testing.T, a answered, code int, least, top float64) {
	t.Helper()
	a.must(t, code)
	if ms := a.at(t, "meta.duration_ms").(float64); ms < least || ms > top || ms != float64(int(ms)) {
		t.Errorf("%v is %v ms, want %v to %v", a.at(t, "meta.command"), ms, least, top)
	}
}

// configure writes the user's configuration.
func (w *world) configure(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(w.home, ".config", "oatest", "config.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
