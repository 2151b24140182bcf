package shell

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// brood is a family of kinds that are hard to be rid of. there is written when all of them are under way.
const brood = `trap '' TERM INT HUP
sleep 1000 &
setsid sleep 1000 &
(setsid sh -c 'trap "" TERM INT HUP; sleep 1000 & while :; do sleep 0.01; done' &)
sh -c 'kill -STOP $$' &
nohup setsid sh -c '(sleep 1000 &) ; sleep 0.03' >/dev/null 2>&1 &
: >there
`

func newCookie() string { return fmt.Sprintf("%s%x", cookieVariable, rand.Uint64()) }

// survivors are the living processes with the cookie in their environment.
func survivors(cookie string) []int {
	var all []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !bytes.Contains(env, []byte(cookie)) {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, rest, ok := bytes.Cut(status, []byte(") ")); err == nil && ok && rest[0] != 'Z' && rest[0] != 'X' {
			all = append(all, pid)
		}
	}
	return all
}

func killAll(cookie string) {
	for _, pid := range survivors(cookie) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// withCookie is a shell whose commands carry the cookie.
func withCookie(t *testing.T) (s *Shell, cookie string) {
	cookie = newCookie()
	t.Cleanup(func() { killAll(cookie) })
	return open(t, func(o *Options) {
		o.Env = append(Environment(os.Environ()), cookie)
		o.Grace = 50 * time.Millisecond
	}), cookie
}

func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		timeout    time.Duration
		reason     Reason
	}{
		{"ended", brood + "exit 5", time.Minute, ByItself},
		{"out of time", brood + "while :; do sleep 0.01; done", 400 * time.Millisecond, OutOfTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, cookie := withCookie(t)
			for range 3 {
				o, err := s.Run(t.Context(), Command{Line: c.line, Timeout: c.timeout})
				check(t, err)
				if left := survivors(cookie); len(left) > 0 || o.Reason != c.reason { // at once, not soon
					t.Errorf("left %v after %+v", left, o)
				}
			}
		})
	}
	for _, how := range []string{"killed", "closed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, cookie := withCookie(t)
			j, err := s.Start(t.Context(), Command{Line: brood + "while :; do sleep 0.01; done"})
			check(t, err)
			await(t, "the brood", func() bool { return exists(filepath.Join(s.Dir(), "there")) })
			if len(survivors(cookie)) < 4 {
				t.Error("there is no brood")
			}
			if how == "killed" {
				_, err = s.Kill(j.ID)
				check(t, err)
			} else {
				s.Close()
			}
			if left := survivors(cookie); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// TestNothingOutlivesUs kills the process that holds the commands at random moments.
func TestNothingOutlivesUs(t *testing.T) {
	t.Parallel()
	moments := 16
	if n, err := strconv.Atoi(os.Getenv("OMNIAGENT_TEST_MOMENTS")); err == nil {
		moments = n
	}
	exe, err := os.Executable()
	check(t, err)
	born := 0
	for n := range moments {
		cookie, root := newCookie(), t.TempDir()
		t.Cleanup(func() { killAll(cookie) })
		how := []string{"foreground", "background"}[n%2]
		cmd := exec.Command(exe, root, brood+"while :; do sleep 0.01; done")
		cmd.Env = append(os.Environ(), holderVariable+"="+how, cookie)
		cmd.Stderr = os.Stderr
		check(t, cmd.Start())
		if n%4 < 2 {
			await(t, "the brood", func() bool { return exists(filepath.Join(root, "there")) })
		}
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond) // a random moment
		if len(survivors(cookie)) > 1 {
			born++
		}
		check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		time.Sleep(10 * time.Millisecond) // one that execs late is seen only then
		await(t, "the end of all", func() bool { return len(survivors(cookie)) == 0 })
	}
	if born < moments/3 {
		t.Errorf("only %d of the moments had somebody to kill", born)
	}
}

// BenchmarkRun is for people: plain is what os/exec takes for the same shell.
func BenchmarkRun(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/bash", "--noprofile", "--norc", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, line := range []string{"true", "ls /"} {
		b.Run(strings.ReplaceAll(line, " /", ""), func(b *testing.B) {
			s, err := New(Options{Root: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for b.Loop() {
				if _, err := s.Run(b.Context(), Command{Line: line}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
