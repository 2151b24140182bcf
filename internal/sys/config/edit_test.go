package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/testkit/hermetic"
)

// writerVariable makes the test binary a process that writes one key and says how it went.
const writerVariable = "CONFIG_TEST_WRITER"

func TestMain(m *testing.M) {
	if job := os.Getenv(writerVariable); job != "" {
		file, key, _ := strings.Cut(job, "|")
		_, changed, err := Write(context.Background(), Edit{
			File: file, Key: key, Keys: manyKeys(), Value: "1", Wait: 50 * time.Millisecond,
		})
		fmt.Println(outcome(changed, err))
		return
	}
	hermetic.InMemory()
	os.Exit(m.Run())
}

func outcome(changed bool, err error) string {
	switch {
	case err == nil && changed:
		return "written"
	case errors.Is(err, fault.ConcurrentModification) && fault.Of(err).RetryAfter > 0:
		return "busy"
	}
	return fmt.Sprintf("changed=%v %v", changed, err)
}

func manyKeys() []Key {
	var keys []Key
	for i := range 20 {
		keys = append(keys, Key{Name: fmt.Sprintf("t%d.key", i), Type: Int})
	}
	return keys
}

func TestManyWritersAtOnce(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(file, key string) string{
		"goroutines": func(file, key string) string {
			_, changed, err := Write(context.Background(), Edit{
				File: file, Key: key, Keys: manyKeys(), Value: "1", Wait: 50 * time.Millisecond,
			})
			return outcome(changed, err)
		},
		"processes": func(file, key string) string {
			command := exec.Command(binary)
			command.Env = append(os.Environ(), writerVariable+"="+file+"|"+key)
			out, err := command.CombinedOutput()
			if err != nil {
				return fmt.Sprintf("%s: %v", out, err)
			}
			return strings.TrimSpace(string(out))
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "dir", "config.toml")
			results := make([]string, 20)
			var all sync.WaitGroup
			for i, key := range manyKeys() {
				all.Go(func() { results[i] = write(file, key.Name) })
			}
			all.Wait()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := literal.ParseTOML(data)
			if err != nil {
				t.Fatalf("torn: %v\n%s", err, data)
			}
			won := 0
			for i, result := range results {
				_, there := tree.Lookup(fmt.Sprintf("t%d", i), "key")
				if result != "written" && result != "busy" || there != (result == "written") {
					t.Errorf("%d: %s, there %v", i, result, there)
				}
				if there {
					won++
				}
			}
			if won == 0 {
				t.Error("nobody won")
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*tmp*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestWriteAndRemove(t *testing.T) {
	p := newPlace(t)
	edit := func(key, value string) Edit {
		return Edit{File: p.user, Key: key, Keys: testKeys(), Value: value, LockDir: filepath.Join(p.home, "locks")}
	}
	for _, step := range []struct {
		key, value, old string
		remove, changed bool
		want            string
	}{
		{"model", "small", "", true, false, ""}, // nothing there: not even the directory is made
		{"model", "small", "", false, true, "model = \"small\"\n"},
		{"model", "large", "small", false, true, "model = \"large\"\n"},
		{"model", "large", "large", false, false, "model = \"large\"\n"},
		{"audit.keep", "30d", "", false, true, "model = \"large\"\n\n[audit]\nkeep = \"30d\"\n"},
		{
			"audit.max_size", "4KiB", "", false, true,
			"model = \"large\"\n\n[audit]\nkeep = \"30d\"\nmax_size = \"4KiB\"\n",
		},
		{
			"audit.max_size", "4096", "4096", false, true,
			"model = \"large\"\n\n[audit]\nkeep = \"30d\"\nmax_size = 4096\n",
		},
		{"audit.keep", "", "30d", true, true, "model = \"large\"\n\n[audit]\nmax_size = 4096\n"},
		{"audit.keep", "", "", true, false, "model = \"large\"\n\n[audit]\nmax_size = 4096\n"},
		{"audit.max_size", "", "4096", true, true, "model = \"large\"\n\n[audit]\n"},
		{"color", "yes", "", false, true, "model = \"large\"\ncolor = true\n\n[audit]\n"},
		{"scopes", "a, b", "", false, true, "model = \"large\"\ncolor = true\nscopes = [\"a\", \"b\"]\n\n[audit]\n"},
		{"scopes", `["c,d"]`, "a,b", false, true, "model = \"large\"\ncolor = true\nscopes = [\"c,d\"]\n\n[audit]\n"},
		{"scopes", "", `["c,d"]`, true, true, "model = \"large\"\ncolor = true\n\n[audit]\n"},
		{
			"current_context", "v1.2", "", false, true,
			"model = \"large\"\ncolor = true\ncurrent_context = \"v1.2\"\n\n[audit]\n",
		},
		{
			"context.v1.2.audit.keep", "1h", "", false, true,
			"model = \"large\"\ncolor = true\ncurrent_context = " +
				"\"v1.2\"\n\n[audit]\n\n[context.\"v1.2\".audit]\nkeep = \"1h\"\n",
		},
	} {
		act := Write
		if step.remove {
			act = Remove
		}
		old, changed, err := act(context.Background(), edit(step.key, step.value))
		got, _ := os.ReadFile(p.user)
		if err != nil || old != step.old || changed != step.changed || string(got) != step.want {
			t.Errorf("%s=%s: old %q, changed %v, %v\n got %q\nwant %q", step.key, step.value, old, changed, err, got,
				step.want)
		}
	}
	if info, _ := os.Stat(p.user); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if info, _ := os.Stat(filepath.Dir(p.user)); info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the directory %v", info.Mode())
	}
	if left, _ := os.ReadDir(filepath.Dir(p.user)); len(left) != 1 {
		t.Errorf("left beside the file: %v", left)
	}
	if set := p.load(); set.Duration("audit.keep") != time.Hour || set.ContextName() != "v1.2" {
		t.Errorf("keep %v in %q", set.Duration("audit.keep"), set.ContextName())
	}
}

func TestWriteRefuses(t *testing.T) {
	p := newPlace(t)
	for _, c := range []struct {
		before, key, value string
		code               fault.Code
		want               string
	}{
		{"", "modle", "x", fault.ConfigKeyUnknown, `there is no key "modle"; did you mean model?`},
		{"", "audit", "x", fault.ConfigKeyUnknown, `"audit" is a table of keys, such as audit.`},
		{"", "output", "jsno", fault.ArgError, `output must be one of json, human, not "jsno"`},
		{"", "retries", "1.5", fault.ArgError, `retries must be a whole number of at least 0, not "1.5"`},
		{"", "model", "\xff", fault.ArgError, `model is not UTF-8`},
		{"", "model", strings.Repeat("x", maxFile), fault.ConfigInvalid, `the file would be larger than 1 MiB`},
		{"a = 1\nb = \n", "model", "x", fault.ConfigInvalid, p.user + ":2:5: expected a value, found end of line"},
		{"audit = 1\n", "audit.keep", "1h", fault.ConfigInvalid, p.user + ": audit is not a table"},
		{"[model]\n", "model", "x", fault.ConfigInvalid, p.user + ": model is a table and not a value"},
	} {
		p.write(p.user, c.before)
		_, changed, err := Write(context.Background(), Edit{File: p.user, Key: c.key, Keys: testKeys(), Value: c.value})
		if !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.want) || changed ||
			fault.Of(err).Suggestion == "" {
			t.Errorf("%s: %v", c.key, err)
		}
		if got, _ := os.ReadFile(p.user); string(got) != c.before {
			t.Errorf("%s: the file became %q", c.key, got)
		}
	}
	held, err := workspace.Lock(context.Background(), p.user+".lock", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	_, _, err = Write(context.Background(), Edit{
		File: p.user, Key: "model", Keys: testKeys(), Value: "x", Wait: 5 * time.Millisecond,
	})
	if f := fault.Of(err); outcome(false, err) != "busy" || !f.Retryable() || f.Detail["holder_pid"] != os.Getpid() {
		t.Errorf("got %v", err)
	}
}

func TestWriteTrustsAgainOnlyWhatWasTrusted(t *testing.T) {
	p := newPlace(t)
	write := func(value string) error {
		_, _, err := Write(context.Background(), Edit{
			File: p.project, Key: "model", Keys: testKeys(), Value: value, Root: p.repo, Trust: OpenTrust(p.list),
		})
		return err
	}
	if err := write("first"); err != nil || p.load().String("model") != "first" {
		t.Errorf("%v, a new file is not trusted", err)
	}
	if err := write("second"); err != nil || p.load().String("model") != "second" {
		t.Errorf("%v, a trusted file lost its trust", err)
	}
	p.write(p.project, "retries = 99 # theirs\n")
	if err := write("third"); err != nil || p.load().String("model") != "" {
		t.Errorf("%v, a file that was not trusted is trusted now", err)
	}
	outside := filepath.Join(p.home, "outside.toml")
	p.write(outside, "")
	if err := os.Remove(p.project); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, p.project); err != nil {
		t.Skip("no symbolic link can be made here (Windows needs its developer mode): ", err)
	}
	if err := write("x"); !errors.Is(err, fault.Unsafe) {
		t.Errorf("wrote through a link: %v", err)
	}
}

// Two processes read the trust file before either of them writes: the second has to look again once it is its turn.
func TestWriteAfterAnotherWriterIsStillTrusted(t *testing.T) {
	dir := t.TempDir()
	file, trustFile := filepath.Join(dir, ".omniagent", "config.toml"), filepath.Join(dir, "state", "trust.json")
	first, second := OpenTrust(trustFile), OpenTrust(trustFile)
	for i, trust := range []*Trust{first, second} {
		e := Edit{File: file, Root: dir, Trust: trust, Keys: manyKeys(), Key: "t0.key", Value: fmt.Sprint(i + 1)}
		if _, changed, err := Write(context.Background(), e); err != nil || !changed {
			t.Fatalf("%s", outcome(changed, err))
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !OpenTrust(trustFile).Trusted(file, content) {
		t.Error("what the second writer wrote is not trusted, though nobody else has touched the file")
	}
}
