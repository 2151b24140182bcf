package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func elapsed(f func()) int64 {
	start := time.Now()
	f()
	return int64(time.Since(start))
}

// auditLog is all that was recorded in a world.
func (w *world) auditLog(t *testing.T, below ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append(append([]string{w.home, ".local", "share", "oatest"}, below...),
		"audit.jsonl")...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMasking(t *testing.T) {
	t.Parallel()
	secrets := []string{"hunter2!", testJWT, testKey, "abcdefgh12345678", "0123456789", "sesame!!"}
	clean := func(t *testing.T, what, s string) {
		t.Helper()
		for _, secret := range secrets {
			if strings.Contains(s, secret) {
				t.Errorf("%s shows %q:\n%s", what, secret, s)
			}
		}
	}
	t.Run("data", func(t *testing.T) {
		w := newWorld(t)
		a := w.run(t, "show", "secrets").must(t, 0)
		clean(t, "data", a.stdout)
		a.want(t, "data",
			`{"blob":"`+testBlob+`","claim":"[JWT: sub=ann, exp=2023-11-14T22:13:20Z]","empty_token":"","key":"see [KEY: `+testKey[:8]+`...]","password":"[REDACTED]"}`)
		a.want(t, "meta.masked", "true")
		for _, format := range []string{"plain", "tsv", "jsonl"} {
			clean(t, format, w.hosted(t, nil, "show", "secrets", "--output", format).stdout)
		}
	})
	t.Run("harmless", func(t *testing.T) {
		w := newWorld(t)
		a := w.hosted(t, nil, "show", "harmless").must(t, 0)
		if raw := w.hosted(t, nil, "show", "harmless", "--unmask").must(t, 0); len(keysOf(a.at(t, "data"))) != 7 {
			t.Errorf("%v", a.at(t, "data"))
		} else {
			for _, name := range keysOf(a.at(t, "data")) {
				if a.at(t, "data."+name) != raw.at(t, "data."+name) {
					t.Errorf("%s becomes %v", name, a.at(t, "data."+name))
				}
			}
		}
		if _, said := a.at(t, "meta").(map[string]any)["masked"]; said {
			t.Error("nothing was masked, and it says so")
		}
	})
	t.Run("unmask", func(t *testing.T) {
		w := newWorld(t)
		a := w.run(t, "show", "secrets", "--unmask").must(t, 0)
		for name, want := range map[string]string{
			"password": "hunter2!", "claim": testJWT, "key": "see " + testKey,
			"blob": testBlob,
		} {
			if got := a.at(t, "data."+name); got != want {
				t.Errorf("%s is %v", name, got)
			}
		}
		a.want(t, "meta.unmasked", "true")
		clean(t, "the environment", w.with("OMNIAGENT_UNMASK=1").hosted(t, nil, "show", "secrets").stdout)
	})
	t.Run("audit", func(t *testing.T) {
		w := newWorld(t)
		w.hosted(t, nil, "make", "x", "--text", "use "+testKey+" and password=hunter2! "+testJWT, "--idempotency-key",
			"order-17", "--token-limit", "5000").must(t, 0)
		w.hosted(t, nil, "make", "x", "--password", "hunter2!").must(t, 2)
		w.hosted(t, nil, "ok", "--api-token=hunter2!").must(t, 2)
		w.hosted(t, nil, "make", "--raw-payload", `{"name":"y","text":"`+testKey+`"}`).must(t, 0)
		log := w.auditLog(t)
		clean(t, "the log", log)
		if strings.Count(log, "\n") != 4 || strings.Count(log, "[REDACTED]") < 4 ||
			!strings.Contains(log, `"order-17"`) || !strings.Contains(log, `"5000"`) {
			t.Error(log)
		}
	})
	told := "use " + testKey + " and password=hunter2! " + testJWT
	t.Run("stderr", func(t *testing.T) {
		for _, level := range []string{"", "--verbose", "--debug"} {
			for _, format := range []string{"json", "plain"} {
				for _, fail := range []bool{false, true} {
					args := []string{"tell", "--text", told, "--output", format}
					if level != "" {
						args = append(args, level)
					}
					if fail {
						args = append(args, "--fail")
					}
					a := newWorld(t).hosted(t, nil, args...)
					clean(t, strings.Join(args[3:], " "), a.stderr)
					if fail || format == "plain" && level == "" {
						clean(t, "standard output of "+strings.Join(args[3:], " "),
							strings.Replace(a.stdout, "value", "", 1))
					}
					if level != "" && !strings.Contains(a.stderr, "progress use [") {
						t.Errorf("%q: %s", args, a.stderr)
					}
				}
			}
		}
	})
	t.Run("debug", func(t *testing.T) {
		a := newWorld(t).run(t, "tell", "--text", told, "--debug").must(t, 0)
		clean(t, "standard error", a.stderr)
		clean(t, "the answer", a.stdout)
		for _, header := range []string{"Authorization: ", "X-Api-Key: ", "API_TOKEN="} {
			if !strings.Contains(a.stderr, header) {
				t.Errorf("the trace has no %s: %s", header, a.stderr)
			}
		}
		args, _ := a.at(t, "meta.debug.args").([]any)
		if len(args) != 4 || args[0] != "tell" || !strings.Contains(args[2].(string), "[REDACTED]") {
			t.Errorf("%q", args)
		}
	})
}
