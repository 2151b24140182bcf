//go:build unix

package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/sandbox"
)

const holderVariable = "SHELL_TEST_HOLDER"

// TestMain lets the test binary be the guard, and the holder of commands that the tests kill.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	if sandbox.IsStage(os.Args) {
		syscall.Exit(sandbox.Stage())
	}
	if how := os.Getenv(holderVariable); how != "" {
		hold(how, os.Args[1], os.Args[2])
		os.Exit(0)
	}
	hermetic.InMemory()
	hermetic.AtOnce("4")
	os.Exit(m.Run())
}

// hold runs a line, in the foreground or the background, and does not end.
func hold(how, root, line string) {
	o := Options{Root: root, Env: append(Environment(os.Environ()), cookieOf(os.Environ()))}
	_, err := behindWalls(&o)
	var s *Shell
	if err == nil {
		s, err = New(o)
	}
	if err == nil && how == "background" {
		_, err = s.Start(context.Background(), Command{Line: line})
	}
	if err == nil && how == "foreground" {
		_, err = s.Run(context.Background(), Command{Line: line})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	time.Sleep(time.Hour)
}

func cookieOf(env []string) string {
	for _, entry := range env {
		if strings.HasPrefix(entry, cookieVariable) {
			return entry
		}
	}
	return cookieVariable + "none"
}

const cookieVariable = "SHELL_TEST_COOKIE="

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// open is a shell in a directory of its own.
func open(t *testing.T, change ...func(*Options)) *Shell {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	o := Options{Root: root, Grace: 200 * time.Millisecond}
	for _, f := range change {
		f(&o)
	}
	done, err := behindWalls(&o)
	check(t, err)
	t.Cleanup(func() { check(t, done()) })
	s, err := New(o)
	check(t, err)
	t.Cleanup(s.Close)
	return s
}

func run(t *testing.T, s *Shell, line string) Outcome {
	t.Helper()
	o, err := s.Run(t.Context(), Command{Line: line})
	check(t, err)
	return o
}

// await asks until the answer is yes.
func await(t *testing.T, what string, yes func() bool) {
	t.Helper()
	over := time.Now().Add(hermetic.Patience)
	for gap := time.Millisecond; !yes(); gap = min(2*gap, 20*time.Millisecond) {
		if time.Now().After(over) {
			t.Fatalf("waited too long for %s", what)
		}
		time.Sleep(gap)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
