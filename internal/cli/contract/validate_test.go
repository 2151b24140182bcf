package contract

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

func TestRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.run(t, "ruled", "--mode", "remote", "--folder", "x")
	a.refused(t, fault.Invalid)
	problems := a.problems(t)
	same(t, "problems", slices.Sorted(maps.Keys(problems)), []string{"folder", "host", "user"})
	same(t, "missing_args", a.at(t, "error.missing_args"), []any{"host", "user"})
	same(t, "code of what excludes", problems["folder"]["code"], "ARG_ERROR")
	same(t, "value of what excludes", problems["folder"]["value"], "x")

	well := w.inside(t, nil, []string{"ruled", "--mode", "remote", "--host", "h", "--user", "u"})
	well.succeeded(t)
	same(t, "the default", well.value(t, "port"), "22")
	well = w.inside(t, nil, []string{"ruled", "--mode", "remote", "--host", "h", "--user", "u", "--port", "23"})
	same(t, "not the default", well.value(t, "port"), "23")
	for _, args := range [][]string{
		{"ruled", "--mode", "local", "--folder", "x"},
		{"ruled", "--folder", "x"},
		{"ruled", "--host", "h"},
	} {
		a := w.inside(t, nil, args)
		a.succeeded(t)
		same(t, "port without the rule", a.value(t, "port"), nil)
	}
	same(t, "the schema", w.inside(t, nil, []string{"ruled", "--schema"}).at(t, "data.requires"), []any{map[string]any{
		"if_flag": "mode", "if_value": "remote", "then_required": []any{"host", "user"}, "prohibited": []any{"folder"},
		"default": map[string]any{"port": "22"},
	}})
}

func TestSecretParams(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-and-more"
	t.Run("command_line", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{{"--token", secret}, {"--token=" + secret}, {"--password=" + secret}} {
			w := newWorld(t)
			a := w.run(t, append([]string{"secretive"}, args...)...)
			a.refused(t, fault.SecretOnCommandLine)
			if strings.Contains(a.stdout+a.stderr, secret) {
				t.Errorf("%s: the secret is repeated: %s %s", args[0], a.stdout, a.stderr)
			}
			message, _ := a.at(t, "error.message").(string)
			if strings.Contains(args[0], "token") && (!strings.Contains(message, "--token-from-env") ||
				!strings.Contains(message, "--token-from-file")) {
				t.Errorf("the two forms are not in %q", message)
			}
		}
		w := newWorld(t)
		held := "sk-ant-api03-" + strings.Repeat("aB3dE5gH", 12) // refused because it looks like a secret
		a := w.run(t, "echo", held)
		a.refused(t, fault.SecretOnCommandLine)
		if strings.Contains(a.stdout+a.stderr, held) {
			t.Errorf("the secret is repeated: %s %s", a.stdout, a.stderr)
		}
	})
	t.Run("from_env", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env = append(w.env, "MY_VARIABLE="+secret, "NOTHING=")
		a := w.run(t, "secretive", "--token-from-env", "MY_VARIABLE")
		a.succeeded(t)
		same(t, "the value", a.at(t, "data.value"), "of 16 bytes")
		for _, unset := range []string{"NO_SUCH_VARIABLE", "NOTHING"} {
			a := w.inside(t, nil, []string{"secretive", "--token-from-env", unset})
			a.refused(t, fault.Invalid)
			same(t, "value", a.problems(t)["token-from-env"]["value"], unset)
		}
		w.inside(t, nil, []string{"secretive", "--token-from-env", "no name"}).refused(t, fault.Invalid)
	})
	t.Run("from_file", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for content, want := range map[string]string{
			secret + "\n": "of 16 bytes", secret: "of 16 bytes",
			secret + "\r\n": "of 16 bytes", " " + secret + " \n": "of 18 bytes", "a\nb\n": "of 3 bytes",
		} {
			file := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			a := w.inside(t, nil, []string{"secretive", "--token-from-file", file})
			a.succeeded(t)
			same(t, "the value", a.at(t, "data.value"), want)
		}
		a := w.run(t, "secretive", "--token-from-file", "missing")
		a.refused(t, fault.Invalid)
		same(t, "code", a.problems(t)["token-from-file"]["code"], "FILE_NOT_FOUND")
	})
	t.Run("audit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env = append(w.env, "MY_VARIABLE="+secret)
		if err := os.WriteFile(filepath.Join(w.dir, "s"), []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"--token-from-env", "MY_VARIABLE"},
			{"--token-from-file", "s"},
			{"--token", secret},
			{"--password=" + secret},
		} {
			a := w.run(t, append([]string{"secretive", "--debug"}, args...)...)
			if strings.Contains(a.stdout+a.stderr, secret) {
				t.Errorf("%s: the secret is in a stream: %s %s", args[0], a.stdout, a.stderr)
			}
		}
		log, err := os.ReadFile(filepath.Join(w.home, ".local", "share", "oatest", "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(log), "\n"); lines != 4 || strings.Contains(string(log), secret) {
			t.Errorf("%d lines in the log: %s", lines, log)
		}
	})
}

func TestSuspiciousInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("ids", func(t *testing.T) {
		t.Parallel()
		for value, corrected := range map[string]string{
			"../etc/passwd": "passwd", "..": "", "../": "", "..%2fname": "name", "..%5cname": "name",
			"%2e%2e/name": "name", "%2e": "", "a%2fb": "b", "a%40b": "", "a%2Eb": "a.b",
			"%252e%252e%252fname": "name", "id?fields=name": "id", "id&x=1": "id", "id#anchor": "id", "a/b": "b",
			`a\b`: "b", "a b": "a-b", "a\x00b": "ab", "%252e": "", "a b;c": "",
			"<id>": "", "{id}": "", "${ID}": "", "[id]": "", "$ID": "", "YOUR_ID": "", "...": "", "null": "",
			"undefined": "", "None": "", "NaN": "",
		} {
			a := w.inside(t, nil, []string{"echo", "--id=" + value})
			a.refused(t, fault.InvalidAgentInput)
			same(t, value+": input_value", a.at(t, "error.input_value"), strings.ReplaceAll(value, "\x00", "\uFFFD"))
			same(t, value+": rejected_pattern", a.at(t, "error.rejected_pattern"), idPattern)
			got, _ := a.at(t, "error.corrected_input").(string)
			same(t, value+": corrected_input", got, corrected)
			if got != "" {
				w.inside(t, nil, []string{"echo", "--id=" + got}).succeeded(t)
			}
		}
		w.inside(t, nil, []string{"echo", "a.b-c_9"}).succeeded(t)
		w.run(t, "echo", "..%2fname").refused(t, fault.InvalidAgentInput)
	})
	t.Run("metacharacters", func(t *testing.T) {
		t.Parallel()
		for _, r := range shellCharacters {
			value := "a" + string(r) + "b"
			for _, args := range [][]string{
				{"echo", "--id=" + value},
				{"starts", "--id=" + value},
				{"starts", "--file=" + value},
			} {
				a := w.inside(t, nil, args)
				if a.code != 2 || a.at(t, "error.phase") != "validation" {
					t.Errorf("%q: exit %d", args, a.code)
				}
			}
			for _, name := range []string{"text"} {
				a := w.inside(t, nil, []string{"starts", "--" + name + "=" + value})
				a.succeeded(t)
				same(t, "text", a.value(t, name), strings.ReplaceAll(value, "\r", ""))
			}
			if r != '\n' && r != '\r' {
				own := w.inside(t, nil, []string{"starts", "--own-file=" + value})
				own.succeeded(t)
				same(t, "a path that stays here", own.value(t, "own-file"), value)
			}
		}
		prompt := "list $(rm -rf /); `id` | cat > \"x\" && <tag> {name} ../.. %2e"
		a := w.run(t, "starts", "--text", prompt)
		a.succeeded(t)
		same(t, "a prompt", a.value(t, "text"), prompt)
	})
	t.Run("paths", func(t *testing.T) {
		t.Parallel()
		for _, value := range []string{
			"..%2fetc", "%2e%2e/etc", "a%5cb", "a%00b", "a\x00b", "<file>", "{path}",
			"${FILE}", "YOUR_FILE", "null", "undefined", "a\nb", "a\rb", "a%252eb",
		} {
			w.inside(t, nil, []string{"echo", "--file=" + value}).refused(t, fault.InvalidAgentInput)
		}
		for _, value := range []string{"..", "../x", "../../a/b", ".", "./x", "a/../b"} {
			a := w.inside(t, nil, []string{"echo", "--file", value})
			a.succeeded(t)
			same(t, "path", a.value(t, "file"), value)
		}
	})
	t.Run("pattern", func(t *testing.T) {
		t.Parallel()
		w.inside(t, nil, []string{"echo", "--code", "abc-12"}).succeeded(t)
		for _, value := range []string{"abc", "xabc-12", "abc-12x", "abc-12\n"} {
			a := w.inside(t, nil, []string{"echo", "--code", value})
			a.refused(t, fault.Invalid)
			same(t, "rejected_pattern", a.at(t, "error.rejected_pattern"), `^[a-z]{3}-[0-9]+$`)
			problem := a.problems(t)["code"]
			same(t, "pattern", problem["pattern"], `^[a-z]{3}-[0-9]+$`)
			if message, _ := problem["message"].(string); !strings.Contains(message,
				"--code must match ^[a-z]{3}-[0-9]+$") {
				t.Errorf("the message %q does not name parameter and pattern", message)
			}
		}
	})
	t.Run("plain_path_passes", func(t *testing.T) {
		t.Parallel()
		for _, value := range []string{
			"/home/u/f.txt", "a name with blanks.txt", "ünï.txt", "a%20b", "100%",
			"nullable", "a&b=c?d#e", "~/x", "a;b",
		} {
			a := w.inside(t, nil, []string{"echo", "--file", value})
			a.succeeded(t)
			same(t, "path", a.value(t, "file"), value)
		}
	})
}

func TestValidateBeforeRun(t *testing.T) {
	t.Parallel()
	t.Run("all_at_once", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "put", "--count", "99", "--level", "hgh", "--wait", "soon")
		a.refused(t, fault.Invalid)
		for name, want := range map[string]map[string]any{
			"count": {
				"param": "count", "field": "count", "code": "ARG_ERROR", "value": "99",
				"message": "--count takes a number from 1 to 9",
			},
			"level": {
				"param": "level", "field": "level", "code": "ARG_ERROR", "value": "hgh",
				"message": "--level takes one of low, high; did you mean high?", "corrected": "high",
			},
			"wait": {
				"param": "wait", "field": "wait", "code": "ARG_ERROR", "value": "soon",
				"message": "--wait takes a duration with a unit, such as 90s or 5m",
			},
			"name": {
				"param": "name", "field": "name", "code": "MISSING_ARGUMENT", "value": "",
				"message": "put needs NAME: the name", "pattern": nil,
			},
		} {
			problem := a.problems(t)[name]
			for member, value := range want {
				same(t, name+" "+member, problem[member], value)
			}
		}
		same(t, "problems", slices.Sorted(maps.Keys(a.problems(t))), []string{"count", "level", "name", "wait"})
		same(t, "meta.errors", a.at(t, "meta.errors"), a.at(t, "error.errors"))
		same(t, "fix_required", a.at(t, "error.fix_required"), "correct count, level, name, wait")

		// The problems that the command itself finds are reported with the others, but not twice.
		a = w.inside(t, nil, []string{"checked", "--text", "wrong", "--id", "..", "--count", "0"})
		a.refused(t, fault.Invalid)
		same(t, "problems", slices.Sorted(maps.Keys(a.problems(t))), []string{"count", "id", "text"})
		same(t, "number of problems", len(a.at(t, "error.errors").([]any)), 3)
		same(t, "the first to complain of id", a.problems(t)["id"]["code"], "INVALID_AGENT_INPUT")

		// Unknown flags are reported all at once, too.
		a = w.inside(t, nil, []string{"echo", "--cuont", "5", "--nothing", "-z"})
		a.refused(t, fault.Invalid)
		same(t, "unknown flags", slices.Sorted(maps.Keys(a.problems(t))), []string{"cuont", "nothing", "z"})
		same(t, "what was meant", a.problems(t)["cuont"]["corrected"], "--count")
		w.inside(t, nil, []string{"echo", "a", "b", "c"}).refused(t, fault.Invalid)
		w.inside(t, nil, []string{"echo", "--count"}).refused(t, fault.Invalid)
	})
	t.Run("not_run", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for _, args := range [][]string{
			{"wipe", "..", "--confirm-destructive"},
			{"wipe", "--confirm-destructive"},
			{"put", "n", "--count", "0"},
			{"put", "n", "--quiet", "--verbose"},
			{"careful", "n", "--live", "--dry-run"},
			{"careful", "a/b", "--live"},
			{"put", "n", "--schema-version", "2"},
			{"put", "n", "more"},
			{"put", "n", "--nothing"},
			{"put", "n", "--idempotency-key", "a b"},
			{"put", "n", "--cwd", "missing"},
			{"put", "n", "--config", "missing"},
			{"put", "n", "--context", "missing"},
			{"put", "--raw-payload", `{"name":"n","count":0}`},
		} {
			a := w.run(t, args...)
			validEnvelope(t, a.stdout)
			if left := w.left(t); a.code != 2 || len(left) > 0 || a.at(t, "error.phase") != "validation" {
				t.Errorf("%s: exit %d, left %s: %s", args, a.code, left, a.stdout)
			}
		}
		w.run(t, "put", "n").succeeded(t)
		// This proves that the file would show a run above.
		same(t, "left by a good call", w.left(t), []string{filepath.Join(w.dir, "ran")})
	})
	t.Run("too_long", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for _, args := range [][]string{
			{"put", strings.Repeat("a", 33)},
			{"put", "n", "--text", strings.Repeat("ü", 501)},
			{"put", "n", "--session-id", strings.Repeat("a", 65)},
			{"put", "n", "--url", "http://x.example/" + strings.Repeat("a", 64<<10)}, // its declaration has no limit
		} {
			a := w.inside(t, nil, args)
			a.refused(t, fault.FieldTooLarge)
			if left := w.left(t); len(left) > 0 {
				t.Errorf("left %s", left)
			}
		}
		w.inside(t, nil, []string{"put", strings.Repeat("a", 32), "--text", strings.Repeat("ü", 500)}).succeeded(t)
	})
}

func TestValidateOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("good", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for _, args := range [][]string{
			{"put", "n"},
			{"wipe", "n", "--confirm-destructive"},
			{"wipe", "n"},
			{"careful", "n", "--live"},
			{"put", "n", "--idempotency-key", "k"},
			{"hang"},
			{"drink"},
		} {
			a := w.run(t, append(args, "--validate-only")...)
			a.succeeded(t)
			same(t, "data", a.at(t, "data"), nil)
			same(t, "meta.validation_only", a.at(t, "meta.validation_only"), true)
			if left := w.left(t); len(left) > 0 {
				t.Errorf("%s left %s", args, left)
			}
		}
	})
	t.Run("bad", func(t *testing.T) {
		t.Parallel()
		a := w.run(t, "put", "--count", "0", "--level", "odd", "--validate-only")
		a.refused(t, fault.Invalid)
		same(t, "problems", slices.Sorted(maps.Keys(a.problems(t))), []string{"count", "level", "name"})
		if left := w.left(t); len(left) > 0 {
			t.Errorf("left %s", left)
		}
	})
}

// FuzzSuspicious checks what the checks of a value promise, whatever the value.
func FuzzSuspicious(f *testing.F) {
	for _, s := range []string{
		"a", "..", "%2e%2e%2f", "%252e", "<id>", "a\x00b", "a/b", `a\b`, "null", "a b", "%",
		"%zz", "\xff", "${A}", "a\n", "......", "?#&", "ü", ".hidden", "-x",
	} {
		f.Add(s)
	}
	id, file := Param{Name: "id", Kind: ID}, Param{Name: "file", Kind: File}
	f.Fuzz(func(t *testing.T, value string) {
		problems := id.check(value)
		if len(problems) == 0 && value != "" && strings.ContainsAny(value, "/\\%?#& \x00<>|;$`\r\n") {
			t.Errorf("the id %q passes", value)
		}
		for _, p := range slices.Concat(problems, file.check(value)) {
			if p.Message == "" || p.Code == "" {
				t.Errorf("%q: a problem without words: %v", value, p)
			}
		}
		for _, p := range problems {
			if again := id.check(p.Corrected); p.Corrected != "" && len(again) > 0 {
				t.Errorf("%q is corrected to %q, which is refused: %v", value, p.Corrected, again)
			}
		}
		if reason, _ := suspicious(Text, value); (reason != "") != strings.Contains(value, "\x00") {
			t.Errorf("the text %q: %q", value, reason)
		}
	})
}
