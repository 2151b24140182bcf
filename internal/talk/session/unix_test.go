//go:build unix

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/kit/fault"
)

// fillDisk writes a record that the system takes only a part of, and then one that there is room for.
func fillDisk(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	own, err := Open(dir).Create(context.Background(), Begin{ID: "full", Provider: "p", Model: "m"})
	if err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	usual := limit.Cur
	limit.Cur = 10_000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if _, err := own.Append(user(strings.Repeat("x", 50_000))); err == nil {
		return errors.New("there was room")
	}
	limit.Cur = usual
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	n, err := own.Append(user("after"))
	fmt.Println(n)
	return err
}

func TestARecordThatHasNoRoomLeavesNothing(t *testing.T) {
	s := store(t)
	cmd, _, out := other(t, "full", s.dir)
	if line, err := out.ReadString('\n'); line != "2\n" {
		t.Errorf("%q %v", line, err)
	}
	check(t, cmd.Wait())
	data, err := os.ReadFile(s.file("full", journalEnding))
	check(t, err)
	own := resume(t, s, "full")
	if len(data) > 1000 || own.State().Damaged > 0 || said(own.Messages()) != "u after" {
		t.Errorf("%d bytes, %d damaged, %s", len(data), own.State().Damaged, said(own.Messages()))
	}
}

// TestAPipeInPlaceOfAJournal must not keep anybody waiting.
func TestAPipeInPlaceOfAJournal(t *testing.T) {
	s := store(t)
	check(t, os.MkdirAll(s.dir, 0o700))
	check(t, syscall.Mkfifo(s.file("pipe", journalEnding), 0o600))
	_, err := s.Show("pipe")
	wantCode(t, err, fault.Unsafe)
}
