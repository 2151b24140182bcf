//go:build unix

package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// shells are the shells of this machine that a line may meet.
func shells(t *testing.T, test func(t *testing.T, change func(*Options))) {
	for _, path := range []string{"/bin/bash", "/bin/sh", "/bin/dash"} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			if !exists(path) {
				t.Skipf("there is no %s", path)
			}
			test(t, func(o *Options) {
				o.Starter = func(line, dir string, env []string) (process.Plan, error) {
					argv := []string{"sh", "-c", script, "sh", line}
					if strings.HasSuffix(path, "bash") {
						argv = []string{"bash", "--noprofile", "--norc", "-c", script, "bash", line}
					}
					return process.Plan{Argv: argv, Path: path, Dir: dir, Env: env}, nil
				}
			})
		})
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	shells(t, func(t *testing.T, with func(*Options)) {
		s := open(t, with)
		for _, c := range []struct {
			line, out, err string
			exit           int
		}{
			{"echo hi", "hi\n", "", 0},
			{"false", "", "", 1},
			{"echo e 1>&2", "", "e\n", 0},
			{"echo o; echo e >&2; exit 3", "o\n", "e\n", 3},
			{"printf 'no end'", "no end", "", 0},
			{"# nothing but a comment", "", "", 0},
			{"true >/dev/null", "", "", 0},
			{"read x; echo \"[$x]\"", "[]\n", "", 0},
			{"cat", "", "", 0},
			{"echo $# \"$@\"", "0\n", "", 0},
			{"\n\necho a\necho b\n", "a\nb\n", "", 0},
			{"cat <<X\nhere $((1+1))\nX\n", "here 2\n", "", 0},
			{"f() { return 4; }; f", "", "", 4},
			{"set -e; false; echo no", "", "", 1},
			{"exec sh -c 'exit 6'", "", "", 6},
			{"trap 'echo bye' EXIT; exit 7", "bye\n", "", 7},
			{"(exit 9)", "", "", 9},
			{"printf 'a\\rb\\n'", "b\n", "", 0},
			{"printf '\\033[31mred\\033[0m\\n'", "red\n", "", 0},
			{"printf 'x\\377y\\n'", "x\uFFFDy\n", "", 0},
			{"set -x; cd .", "", "", 0},
		} {
			o := run(t, s, c.line)
			// the shells differ in how they show it, and none shows what we added
			if strings.HasPrefix(c.line, "set -x") {
				if strings.Contains(o.Stderr, "pwd") || !strings.Contains(o.Stderr, "cd .") {
					t.Errorf("%q: %+v", c.line, o)
				}
				continue
			}
			if o.Stdout != c.out || o.Stderr != c.err || o.Exit != c.exit || o.Reason != ByItself || o.Moved != "" {
				t.Errorf("%q: got %+v", c.line, o)
			}
		}
		if o := run(t, s, "if then"); o.Exit != 2 || !strings.Contains(o.Stderr, "then") ||
			strings.Contains(o.Stderr, "eval \"") {
			t.Errorf("%+v", o)
		}
		if o := run(t, s, "kill -SEGV $$"); o.Exit != -1 || o.Signal != "SIGSEGV" {
			t.Errorf("%+v", o)
		}
	})
}

func TestTheDirectoryStays(t *testing.T) {
	t.Parallel()
	shells(t, func(t *testing.T, with func(*Options)) {
		s := open(t, with)
		root := s.Dir()
		outside := t.TempDir()
		check(t, os.MkdirAll(filepath.Join(root, "sub", "deep\nname"), 0o700))
		check(t, os.Symlink(outside, filepath.Join(root, "way out")))
		check(t, os.Symlink("sub", filepath.Join(root, "way in")))
		for _, c := range []struct {
			line, dir, moved string
			exit             int
		}{
			{"cd sub", "sub", "", 0},
			{"pwd", "sub", "", 0},
			{"cd deep*; exit 5", "sub/deep\nname", "", 5},
			{"false", "sub/deep\nname", "", 1},
			{"(cd ..)", "sub/deep\nname", "", 0},
			{"cd ../..; false", "", "", 1},
			{"cd 'way in'", "sub", "", 0},
			{"cd ..; cd 'way out'", "", outside, 0},
			{"cd sub; cd /", "", "/", 0},
			{"cd sub; exec true", "", "", 0}, // told nothing
			{"cd sub; set -e; false", "sub", "", 1},
			{"mkdir gone; cd gone; rmdir ../gone", "sub", "", 0}, // where it was before
		} {
			o := run(t, s, c.line)
			if c.moved != "" {
				want, err := filepath.EvalSymlinks(c.moved)
				check(t, err)
				c.moved = want
			}
			if s.Dir() != filepath.Join(root, c.dir) || o.Moved != c.moved || o.Exit != c.exit || o.Stderr != "" {
				t.Fatalf("%q: in %q after %+v", c.line, s.Dir(), o)
			}
			if o = run(t, s, "pwd -P"); o.Stdout != filepath.Join(root, c.dir)+"\n" {
				t.Fatalf("%q: then in %q", c.line, o.Stdout)
			}
		}
		run(t, s, "cd sub")
		check(t, os.Rename(filepath.Join(root, "sub"), filepath.Join(root, "was")))
		check(t, os.Symlink(outside, filepath.Join(root, "sub")))
		if o := run(t, s, "pwd -P"); o.Stdout != root+"\n" {
			t.Errorf("a link led to %q", o.Stdout)
		}
	})
}

func TestNothingIsThereToAsk(t *testing.T) {
	t.Parallel()
	s := open(t)
	o := run(t, s, `readlink /proc/$$/fd/0 || echo /dev/null; test -t 0 || echo none; (: </dev/tty) 2>/dev/null || echo nobody
		sh -c 'for n in 3 4 5 6 7 8 9 10 11; do (: >&$n) 2>/dev/null && echo has $n; done; true'`)
	if o.Stdout != "/dev/null\nnone\nnobody\n" {
		t.Errorf("%+v", o)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	evil := filepath.Join(t.TempDir(), "rc")
	check(t, os.WriteFile(evil, []byte("echo evil\n"), 0o600))
	home := t.TempDir()
	for _, name := range []string{".bashrc", ".profile", ".bash_profile"} {
		check(t, os.WriteFile(filepath.Join(home, name), []byte("echo evil\n"), 0o600))
	}
	s := open(t, func(o *Options) {
		o.Env = Environment(append(os.Environ(), "BASH_ENV="+evil, "ENV="+evil, "HOME="+home))
	})
	if o := run(t, s, "echo $TERM $NO_COLOR ${CI-unset} ${BASH_ENV-unset}"); o.Stdout != "dumb 1 unset unset\n" ||
		o.Stderr != "" {
		t.Errorf("%+v", o)
	}
}

func TestTimeIsLimited(t *testing.T) {
	t.Parallel()
	s := open(t)
	const limit = 3 * time.Second // a slow machine takes some of it to start a shell
	for _, c := range []struct{ line, signal string }{
		{"echo first; printf unended; sleep 1000", "SIGTERM"},
		{"trap '' TERM; echo first; printf unended; sleep 1000 & while :; do sleep 0.01; done", "SIGKILL"},
	} {
		t.Run(c.signal, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			began := time.Now()
			o, err := s.Run(t.Context(), Command{Line: c.line, Timeout: limit})
			check(t, err)
			if o.Reason != OutOfTime || o.Limit != limit || o.Stdout != "first\nunended" || o.Exit != -1 &&
				o.Exit != 143 {
				t.Errorf("%q: %+v", c.line, o)
			}
			if took := time.Since(began); took < limit || took > hermetic.Patience {
				t.Errorf("%q took %v", c.line, took)
			}
		})
	}
	if o := run(t, s, "true"); o.Limit != DefaultTimeout {
		t.Errorf("%+v", o)
	}
	if o, err := s.Run(t.Context(), Command{Line: "true", Timeout: time.Hour}); err != nil ||
		o.Limit != MaxTimeout {
		t.Errorf("%+v %v", o, err)
	}
}

func TestTheCallerMayStopIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		await(t, "the command", func() bool { return exists(filepath.Join(s.Dir(), "there")) })
		cancel()
	}()
	o, err := s.Run(ctx, Command{Line: "echo so far; : >there; sleep 1000"})
	if err != nil || o.Reason != Stopped || o.Stdout != "so far\n" {
		t.Errorf("%+v %v", o, err)
	}
	_, err = s.Run(ctx, Command{Line: ": >started"})
	wantCode(t, err, fault.Interrupted)
	if exists(filepath.Join(s.Dir(), "started")) {
		t.Error("it was started")
	}
}

func TestTheEndOfTheConversationStopsIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	go func() {
		await(t, "the command", func() bool { return exists(filepath.Join(s.Dir(), "there")) })
		s.Close()
	}()
	o, err := s.Run(t.Context(), Command{Line: ": >there; sleep 1000", Timeout: 20 * time.Second})
	if err != nil || o.Reason != Stopped {
		t.Errorf("%+v %v", o, err)
	}
}

func TestLinesThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	s := open(t)
	for line, code := range map[string]fault.Code{
		"": fault.MissingArgument, " \n": fault.MissingArgument, "a\x00b": fault.ArgError, ": " + strings.Repeat("x",
			1<<20): fault.FieldTooLarge,
	} {
		_, err := s.Run(t.Context(), Command{Line: line})
		wantCode(t, err, code)
		_, err = s.Start(t.Context(), Command{Line: line})
		wantCode(t, err, code)
	}
	_, err := New(Options{Root: filepath.Join(s.Dir(), "none")})
	wantCode(t, err, fault.FileMissing)
	s.Close()
	_, err = s.Run(t.Context(), Command{Line: "true"})
	wantCode(t, err, fault.Interrupted)
}

func TestLongOutputIsCutAndKept(t *testing.T) {
	t.Parallel()
	private := t.TempDir()
	s := open(t, func(o *Options) { o.Private = private })
	o := run(t, s, `for n in $(seq 20000); do echo "line $n"; done; echo "only error" >&2`)
	if o.Stderr != "only error\n" {
		t.Errorf("stderr %q", o.Stderr)
	}
	if n := utf8.RuneCountInString(o.Stdout); n > MaxShown+300 || n < MaxShown-1000 {
		t.Errorf("%d characters", n)
	}
	if !strings.HasPrefix(o.Stdout, "line 1\nline 2\n") || !strings.HasSuffix(o.Stdout, "\nline 20000\n") {
		t.Errorf("got %.50q … %q", o.Stdout, o.Stdout[len(o.Stdout)-50:])
	}
	path := fileIn(t, o.Stdout)
	if filepath.Dir(path) != private {
		t.Errorf("kept in %s", path)
	}
	info, err := os.Stat(path)
	check(t, err)
	text, err := os.ReadFile(path)
	check(t, err)
	var want strings.Builder
	for n := range 20000 {
		fmt.Fprintf(&want, "line %d\n", n+1)
	}
	if info.Mode().Perm() != 0o600 || string(text) != want.String() {
		t.Errorf("%v, %d bytes", info.Mode(), len(text))
	}
	head, rest, _ := strings.Cut(o.Stdout, "[")
	note, tail, _ := strings.Cut(rest, "]\n")
	var left, all int
	if _, err := fmt.Sscanf(note, "%d of %d bytes", &left, &all); err != nil || all != want.Len() ||
		left != all-len(head)-len(tail) {
		t.Errorf("%q: %v", note, err)
	}
	if files, _ := os.ReadDir(private); len(files) != 1 { // the other stream was shown whole
		t.Errorf("left %v", files)
	}
}

// fileIn is the file that the line in the middle names.
func fileIn(t *testing.T, text string) string {
	t.Helper()
	_, rest, _ := strings.Cut(text, " in /")
	path, _, ok := strings.Cut(rest, " until the conversation ends")
	if !ok {
		t.Fatalf("no file is named in %.200q", text)
	}
	return "/" + path
}

func TestTheTwoStreamsShareTheRoom(t *testing.T) {
	t.Parallel()
	s := open(t)
	o := run(t, s, "seq 100000; seq 100000 >&2")
	if n := utf8.RuneCountInString(o.Stdout + o.Stderr); n > MaxShown+600 || len(o.Stderr) < MaxShown/3-1000 {
		t.Errorf("%d and %d", len(o.Stdout), len(o.Stderr))
	}
	if a, b := fileIn(t, o.Stdout), fileIn(t, o.Stderr); a == b || !strings.HasSuffix(a, "-stdout.txt") ||
		!strings.HasSuffix(b, "-stderr.txt") {
		t.Errorf("%s and %s", a, b)
	}
	dir := filepath.Dir(fileIn(t, o.Stdout))
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	s.Close()
	if exists(dir) {
		t.Error("the temporary directory is there")
	}
}

func TestBackgroundOutputIsReadWhileItIsPrinted(t *testing.T) {
	t.Parallel()
	s := open(t)
	job, err := s.Start(t.Context(), Command{Line: `printf 'dots '; for n in 1 2 3; do printf .; while [ ! -e $n ]; do sleep 0.01; ` +
		`done; done; echo; echo e >&2; printf '50%%\rend'`})
	check(t, err)
	var read []string
	await(t, "the command", func() bool {
		now, err := s.Output(job.ID, nil)
		check(t, err)
		if more := now.Outcome.Stdout + now.Outcome.Stderr; more != "" {
			read = append(read, more)
		}
		// it goes on only when its dots were read
		dots := strings.Count(strings.Join(read, ""), ".")
		_ = os.WriteFile(filepath.Join(s.Dir(), fmt.Sprint(dots)), nil, 0o600)
		return !now.Running
	})
	all := strings.Join(read, "")
	if len(read) < 3 || !strings.HasPrefix(all, "dots ...") || !strings.Contains(all, "e\n") ||
		!strings.Contains(all, "end") {
		t.Errorf("read %q", read)
	}
}
