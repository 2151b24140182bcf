//go:build unix

package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// output asks a background command until the answer is yes, and returns all that it has said.
func output(t *testing.T, s *Shell, id string, filter *regexp.Regexp, enough func(j Job, all string) bool) (Job,
	string,
) {
	t.Helper()
	var all string
	var last Job
	await(t, "output of "+id, func() bool {
		j, err := s.Output(id, filter)
		check(t, err)
		last = j
		all += j.Outcome.Stdout + j.Outcome.Stderr
		return enough(j, all)
	})
	return last, all
}

func ended(j Job, _ string) bool { return !j.Running }

func TestBackgroundIsReadInPieces(t *testing.T) {
	t.Parallel()
	s := open(t)
	check(t, os.Mkdir(filepath.Join(s.Dir(), "sub"), 0o700))
	j, err := s.Start(t.Context(), Command{Line: `cd sub; echo one; printf 'ask: '
		while [ ! -e go ]; do sleep 0.01; done; echo two; echo err >&2; exit 3`})
	check(t, err)
	if j.ID != "bash_1" || !j.Running {
		t.Errorf("%+v", j)
	}
	output(t, s, j.ID, nil, func(j Job, all string) bool { return j.Running && all == "one\nask: " })
	if j, err = s.Output(j.ID, nil); err != nil || j.Outcome.Stdout != "" || !j.Running {
		t.Errorf("it came twice: %+v %v", j, err)
	}
	if jobs := s.Jobs(); len(jobs) != 1 || !jobs[0].Running {
		t.Errorf("%+v", jobs)
	}
	check(t, os.WriteFile(filepath.Join(s.Dir(), "sub", "go"), nil, 0o600))
	j, all := output(t, s, j.ID, nil, ended)
	if all != "two\nerr\n" && all != "err\ntwo\n" || j.Outcome.Exit != 3 {
		t.Errorf("%q %+v", all, j)
	}
	if j, err = s.Output(j.ID, nil); err != nil || j.Outcome.Stdout+j.Outcome.Stderr != "" || j.Outcome.Exit != 3 {
		t.Errorf("%+v %v", j, err)
	}
	if filepath.Base(s.Dir()) == "sub" {
		t.Error("it changed the directory of the others")
	}
	_, err = s.Output("bash_9", nil)
	wantCode(t, err, fault.NotFoundCode)
	if hint := fault.Of(err).Suggestion; !strings.Contains(hint, "bash_1") {
		t.Error(hint)
	}
}

func TestBackgroundIsFiltered(t *testing.T) {
	t.Parallel()
	s := open(t)
	j, err := s.Start(t.Context(), Command{Line: `for n in $(seq 30000); do echo "noise noise noise $n"
		case $n in *777) echo "HIT $n"; esac; done; printf 'HIT last'`})
	check(t, err)
	last, all := output(t, s, j.ID, regexp.MustCompile("^HIT"), ended)
	want := ""
	for n := 777; n <= 30000; n += 1000 {
		want += fmt.Sprintf("HIT %d\n", n)
	}
	if all != want+"HIT last" || last.Outcome.Stderr != "" {
		t.Errorf("got %q", all)
	}
}

func TestBackgroundThatPrintsMuch(t *testing.T) {
	t.Parallel()
	// It dies of the first signal, however busy the machine is: one that comes between fork and exec of a long sleep
	// would be lost.
	s := open(t, func(o *Options) { o.Grace = 10 * time.Second })
	j, err := s.Start(t.Context(), Command{Line: `seq 200000; : >done; while sleep 0.1; do :; done`})
	check(t, err)
	await(t, "the output", func() bool { return exists(filepath.Join(s.Dir(), "done")) })
	var parts []string
	output(t, s, j.ID, nil, func(j Job, all string) bool {
		if j.Outcome.Stdout != "" {
			parts = append(parts, j.Outcome.Stdout)
		}
		return strings.HasSuffix(all, "\n200000\n")
	})
	if len(parts[0]) > MaxShown+400 || !strings.HasPrefix(parts[0], "1\n2\n") ||
		!strings.Contains(parts[0], "are left out here; all of it is in /") {
		t.Errorf("%d bytes: %.40q", len(parts[0]), parts[0])
	}
	if text, err := os.ReadFile(fileIn(t, parts[0])); err != nil || !strings.HasSuffix(string(text), "\n200000\n") {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	j, err = s.Kill(j.ID)
	if err != nil || j.Running || j.Outcome.Reason != Stopped || j.Outcome.Signal != "SIGTERM" {
		t.Errorf("%+v %v", j, err)
	}
	if _, err = s.Kill(j.ID); err != nil { // it is dead already
		t.Error(err)
	}
}

func TestNoMoreThanSoManyAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t)
	var all sync.WaitGroup
	var began atomic.Int64
	for range 2 * maxJobs {
		all.Go(func() {
			if _, err := s.Start(t.Context(), Command{Line: "sleep 1000"}); err == nil {
				began.Add(1)
			}
		})
	}
	all.Wait()
	if began.Load() != maxJobs {
		t.Errorf("%d were started", began.Load())
	}
	_, err := s.Kill("bash_1")
	check(t, err)
	for range 2 { // one that cannot begin gives its place back
		_, err = s.Start(t.Context(), Command{Line: ""})
		wantCode(t, err, fault.MissingArgument)
	}
	_, err = s.Start(t.Context(), Command{Line: "true"})
	check(t, err)
}

func TestNoMoreThanSoManyInTheBackground(t *testing.T) {
	t.Parallel()
	s := open(t)
	for range maxJobs {
		_, err := s.Start(t.Context(), Command{Line: "sleep 1000"})
		check(t, err)
	}
	_, err := s.Start(t.Context(), Command{Line: "true"})
	wantCode(t, err, fault.TooManyRequests)
	_, err = s.Kill("bash_3")
	check(t, err)
	_, err = s.Start(t.Context(), Command{Line: "true"})
	check(t, err)
	s.Close()
	for _, j := range s.Jobs() {
		if j.Running {
			t.Errorf("%+v", j)
		}
	}
}

// TestEndedCommandsLetGo: commands that ended and that nobody asks about do not keep files open for ever.
func TestEndedCommandsLetGo(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	s := open(t)
	for range maxUnread + 20 {
		j, err := s.Start(t.Context(), Command{Line: "head -c 200000 /dev/zero | tr '\\0' x"})
		check(t, err)
		own, err := s.job(j.ID)
		check(t, err)
		<-own.ended
	}
	held := 0
	for _, j := range s.jobs {
		j.record.mu.Lock()
		if j.record.out.file != nil {
			held++
		}
		j.record.mu.Unlock()
	}
	if held > maxUnread+1 {
		t.Errorf("%d files are held", held)
	}
}

// TestInterruptedStart: a command whose turn ends while a starter prepares it is not started, and what was prepared is
// released.
func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	for _, background := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		released := false
		s := open(t)
		s.starter = func(line, dir string, env []string) (process.Plan, error) {
			cancel()
			plan, err := Plain(line, dir, env)
			plan.After = func(e *process.Ending) { released = e == nil }
			return plan, err
		}
		var err error
		if background {
			_, err = s.Start(ctx, Command{Line: "echo x >ran"})
		} else {
			_, err = s.Run(ctx, Command{Line: "echo x >ran"})
		}
		if !errors.Is(err, fault.Interrupted) || !released {
			t.Errorf("background %v: %v, released %v", background, err, released)
		}
		if _, err := os.Stat(filepath.Join(s.Dir(), "ran")); err == nil {
			t.Error("the command ran")
		}
	}
}
