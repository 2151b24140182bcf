package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

func TestArgumentsArriveAsTheyAre(t *testing.T) {
	want := []string{
		"*", "$(touch x)", "`id`", "a b", "", "two\nlines", `quo"ted`, "it's", `back\slash\`, "%PATH%",
		"; rm -rf", "-x", "\x01é😀",
	}
	r, err := Run(t.Context(), as(t, "arguments", want...))
	check(t, err)
	var got []string
	check(t, json.Unmarshal(r.Stdout, &got))
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if r.Duration <= 0 || r.ExitCode != 0 || r.OutputTruncated {
		t.Fatalf("got %+v", r)
	}
}

func TestInputIsGivenOrEmptyButNeverOpen(t *testing.T) {
	s := as(t, "cat")
	for _, input := range [][]byte{nil, {}, []byte("hello"), bytes.Repeat([]byte("x"), 500_000)} {
		s.Stdin = input
		r, err := Run(t.Context(), s)
		check(t, err)
		if !bytes.Equal(r.Stdout, input) {
			t.Fatalf("%d bytes came back, want %d", len(r.Stdout), len(input))
		}
	}
	s = as(t, "exit", "0") // one that does not read what it is given
	s.Stdin = bytes.Repeat([]byte("x"), 5_000_000)
	_, err := Run(t.Context(), s)
	check(t, err)
}

func TestFloodIsDrainedNotKept(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const size = 100 << 20
	r, err := Run(t.Context(), as(t, "flood", "104857600"))
	check(t, err)
	runtime.ReadMemStats(&after)
	if r.StdoutBytes != size || len(r.Stdout) != defaultMaxOutput || !r.OutputTruncated {
		t.Fatalf("%d of %d bytes kept, truncated %v", len(r.Stdout), r.StdoutBytes, r.OutputTruncated)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*defaultMaxOutput {
		t.Fatalf("%d bytes were allocated", grown)
	}
	s := as(t, "flood", "100")
	for limit, kept := range map[int64]int{10: 10, 100: 100, -1: 0} {
		s.MaxOutput = limit
		r, err := Run(t.Context(), s)
		check(t, err)
		if len(r.Stdout) != kept || r.OutputTruncated != (kept < 100) {
			t.Fatalf("limit %d: kept %d, truncated %v", limit, len(r.Stdout), r.OutputTruncated)
		}
	}
}

func TestEndingIsAResult(t *testing.T) {
	r, err := Run(t.Context(), as(t, "exit", "42"))
	check(t, err)
	if r.ExitCode != 42 || r.Signal != "" {
		t.Fatalf("got %+v", r)
	}
	r, err = Run(t.Context(), as(t, "die"))
	check(t, err)
	if runtime.GOOS != "windows" && (r.ExitCode != -1 || r.Signal != "SIGKILL") {
		t.Fatalf("got %+v", r)
	}
}

func TestEndOfContextAsksThenKills(t *testing.T) {
	for _, c := range []struct {
		role  string
		grace time.Duration
		least time.Duration
	}{{"polite", time.Hour, 0}, {"stubborn", 200 * time.Millisecond, 200 * time.Millisecond}} {
		if runtime.GOOS == "windows" && c.role == "polite" {
			continue // no console to hear Ctrl-Break from
		}
		file := temporary(t, "ready")
		ctx, cancel := context.WithCancel(t.Context())
		var pid int
		var asked time.Time
		go func() {
			pid, _ = awaitPID(ctx, file)
			asked = time.Now()
			cancel()
		}()
		s := as(t, c.role, file)
		s.Grace = c.grace
		r, err := Run(ctx, s)
		wantCode(t, err, fault.Interrupted)
		if took := time.Since(asked); took < c.least || took > hermetic.Patience {
			t.Fatalf("%s ended after %v", c.role, took)
		}
		if c.role == "polite" && (string(r.Stdout) != "goodbye\n" || r.ExitCode != 0) {
			t.Fatalf("got %+v", r)
		}
		if c.role == "stubborn" && runtime.GOOS != "windows" && r.Signal != "SIGKILL" {
			t.Fatalf("got %+v", r)
		}
		wantGone(t, pid)
	}
}

func TestDeadlineIsATimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	s := as(t, "sleep")
	s.Grace = time.Second
	_, err := Run(ctx, s)
	wantCode(t, err, fault.TimedOut)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	_, err = Run(ctx, s) // over before it began
	wantCode(t, err, fault.TimedOut)
}

func TestWhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("x"), 0o600))
	env := []string{"PATH=" + dir + string(os.PathListSeparator) + "relative"}
	for _, c := range []struct {
		spec Spec
		want fault.Code
	}{
		{Spec{Env: env}, fault.MissingArgument},
		{Spec{Env: env, Argv: []string{""}}, fault.MissingArgument},
		{Spec{Env: env, Argv: []string{"omniagent-no-such-program"}}, fault.NotInstalled},
		{Spec{Env: env, Argv: []string{"git status", "x"}}, fault.NotInstalled},
		{Spec{Env: env, Argv: []string{"git status"}}, fault.ShellString},
		{Spec{Env: env, Argv: []string{"ls|wc"}}, fault.ShellString},
		{Spec{Env: env, Argv: []string{"/bin/ls -l"}}, fault.ShellString},
		{Spec{Env: env, Argv: []string{dir}}, fault.NotInstalled},
	} {
		_, err := Run(t.Context(), c.spec)
		wantCode(t, err, c.want)
	}
	_, err := Run(t.Context(), Spec{Env: env, Argv: []string{"plain"}})
	f := wantCode(t, err, fault.NotInstalled)
	if f.Detail["program"] != "plain" || !slices.Equal(f.Detail["searched"].([]string), []string{dir}) {
		t.Fatalf("got %v", f.Detail)
	}
	s := as(t, "exit", "0")
	s.Dir = filepath.Join(dir, "none")
	_, err = Run(t.Context(), s)
	wantCode(t, err, fault.FileMissing)
	s = as(t, "exit", "a\x00b")
	_, err = Run(t.Context(), s)
	wantCode(t, err, fault.ArgError)
}

func TestEnvironment(t *testing.T) {
	base := []string{"HOME=/h", "PAGER=less", "X=1", "broken", "=bad", "X=2", "CI=", "LC_ALL=de_DE.UTF-8", "EDITOR=vi"}
	always := "PAGER=cat GIT_PAGER=cat MANPAGER=cat LESS=-F·-X·-R MORE= PYTHONUNBUFFERED=1"
	quiet := "EDITOR=true VISUAL=true GIT_EDITOR=true CI=1 NO_UPDATE_NOTIFIER=1 HOMEBREW_NO_AUTO_UPDATE=1 " +
		"PIP_DISABLE_PIP_VERSION_CHECK=1 GIT_TERMINAL_PROMPT=0"
	locale := "LC_ALL=C LC_NUMERIC=C"
	kept := "HOME=/h X=2"
	for _, c := range []struct {
		name string
		o    EnvOptions
		want []string
	}{
		{"zero", EnvOptions{}, []string{kept, always, quiet, locale}},
		{"interactive", EnvOptions{Interactive: true}, []string{kept, always, locale, "CI= EDITOR=vi"}},
		{"locale", EnvOptions{PreserveLocale: true}, []string{kept, always, quiet, "LC_ALL=de_DE.UTF-8"}},
		{
			"all",
			EnvOptions{TraceID: "t1", NoColor: true, Extra: map[string]string{"CI": "0", "B": "2", "A": "1"}},
			[]string{
				kept, always, strings.Replace(quiet, "CI=1", "CI=0", 1), locale,
				"OMNIAGENT_TRACE_ID=t1 NO_COLOR=1 A=1 B=2",
			},
		},
	} {
		got := Environment(base, c.o)
		var want []string
		for _, entry := range strings.Fields(strings.Join(c.want, " ")) {
			want = append(want, strings.ReplaceAll(entry, "·", " "))
		}
		if !slices.Equal(got, Environment(base, c.o)) || !slices.Equal(Environment(got, c.o), got) {
			t.Errorf("%s: the order is not stable", c.name)
		}
		slices.Sort(want)
		sorted := slices.Sorted(slices.Values(got))
		if runtime.GOOS != "windows" && !slices.Equal(sorted, want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, sorted, want)
		}
	}
}
