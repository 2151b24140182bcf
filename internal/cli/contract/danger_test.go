package contract

import (
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

func TestConfirmation(t *testing.T) {
	t.Parallel()
	files := map[string]any{"files": []any{"a.txt", "b.txt"}}
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "wipe", "n", "--yes")
		a.refused(t, fault.ConfirmationRequired)
		same(t, "error.would_affect", a.at(t, "error.would_affect"), files)
		same(t, "error.requires", a.at(t, "error.requires"), "--confirm-destructive")
		if left := w.left(t); len(left) > 0 {
			t.Errorf("it ran: %s", left)
		}
		preview, _ := a.at(t, "error.preview_command").(string)
		again := w.inside(t, nil, shellWords(t, preview)[1:])
		again.succeeded(t)
		same(t, preview, again.at(t, "data.would_affect"), files)
		if left := w.left(t); len(left) > 0 {
			t.Errorf("%s left %s", preview, left)
		}
	})
	t.Run("given", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "wipe", "n", "--confirm-destructive")
		a.succeeded(t)
		same(t, "meta.confirmed", a.at(t, "meta.confirmed"), true)
		same(t, "data.effect", a.at(t, "data.effect"), "deleted")
		if left := w.left(t); len(left) != 1 {
			t.Errorf("it did not run: %s", left)
		}
		_, told := w.inside(t, nil, []string{"put", "n"}).at(t, "meta").(map[string]any)["confirmed"]
		same(t, "meta.confirmed where there is nothing to confirm", told, false)
	})
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	t.Run("effect", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for command, effect := range map[string]string{
			"put": "would_create", "wipe": "would_delete",
			"careful": "would_update",
		} {
			a := w.run(t, command, "n", "--dry-run")
			a.succeeded(t)
			same(t, command+": what the handler saw", a.at(t, "data.dry_run"), true)
			same(t, command+": data.effect", a.at(t, "data.effect"), effect)
			same(t, command+": meta.effect", a.at(t, "meta.effect"), effect)
			same(t, command+": meta.dry_run", a.at(t, "meta.dry_run"), true)
			bad := w.inside(t, nil, []string{command, "a/b", "--dry-run"})
			bad.refused(t, fault.InvalidAgentInput)
		}
		if left := w.left(t); len(left) > 0 {
			t.Errorf("left %s", left)
		}
		a := w.run(t, "put", "n")
		same(t, "data.effect", a.at(t, "data.effect"), "created")
		same(t, "meta.dry_run", a.at(t, "meta.dry_run"), false)
	})
	t.Run("would_affect", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.inside(t, nil, []string{"put", "n", "--dry-run"})
		same(t, "data.would_affect", a.at(t, "data.would_affect"), map[string]any{"files": []any{"a.txt", "b.txt"}})
		a = w.inside(t, nil, []string{"put", "n"})
		if _, there := a.at(t, "data").(map[string]any)["would_affect"]; there {
			t.Error("a real run tells what it would affect")
		}
	})
	t.Run("safe_default", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "careful", "n")
		a.succeeded(t)
		same(t, "meta.dry_run", a.at(t, "meta.dry_run"), true)
		same(t, "data.effect", a.at(t, "data.effect"), "would_update")
		if left := w.left(t); len(left) > 0 {
			t.Errorf("left %s", left)
		}
		same(t, "the schema", w.inside(t, nil, []string{"careful", "--schema"}).at(t, "data.safe_default"), true)
	})
	t.Run("live", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "careful", "n", "--live")
		a.succeeded(t)
		same(t, "meta.dry_run", a.at(t, "meta.dry_run"), false)
		same(t, "meta.confirmed", a.at(t, "meta.confirmed"), true)
		same(t, "data.effect", a.at(t, "data.effect"), "updated")
		if left := w.left(t); len(left) != 1 {
			t.Errorf("it did not run: %s", left)
		}
	})
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, command, configured string
		exit                      int
		missing                   []any
		warned                    string
	}{
		{"covered", "scoped", "repo:read,repo:write", 0, nil, ""},
		{"missing", "scoped", "repo:read", 8, []any{"repo:write"}, ""},
		{"all missing", "scoped", "other", 8, []any{"repo:read", "repo:write"}, ""},
		{"too many", "scoped", "repo:read,repo:write,admin", 0, nil, "OVER_PRIVILEGED"},
		{"none configured", "scoped", "", 0, nil, ""},
		{"none needed", "ok", "admin", 0, nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "OMNIAGENT_SCOPES="+row.configured)
			for range 2 { // each call says it
				a := w.inside(t, nil, []string{row.command})
				validEnvelope(t, a.stdout)
				same(t, "exit", a.code, row.exit)
				if row.exit != 0 {
					same(t, "code", a.at(t, "error.code"), "MISSING_SCOPES")
					same(t, "missing_scopes", a.at(t, "error.missing_scopes"), row.missing)
					continue
				}
				warnings, _ := a.at(t, "warnings").([]any)
				if row.warned == "" {
					same(t, "warnings", warnings, []any{})
				} else if len(warnings) != 1 || !strings.HasPrefix(warnings[0].(string), row.warned) ||
					!strings.Contains(warnings[0].(string), "admin") {
					t.Errorf("warnings are %v", warnings)
				}
			}
		})
	}
}
