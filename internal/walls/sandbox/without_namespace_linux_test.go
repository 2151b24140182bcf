package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/testkit/hermetic"
)

// confinesItself does what a program does that wants to have no right to write.
func confinesItself() error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled(1)}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno == 0 {
		_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	}
	if errno == 0 {
		_ = os.WriteFile("written", nil, 0o600)
		return errors.New("confined, though a supervisor acts for it")
	}
	if errno != unix.EOPNOTSUPP || !walled() {
		return errno
	}
	return nil
}

// TestNoWallsInside: what confines itself is told that it cannot, because the supervisor would act for it all the same.
func TestNoWallsInside(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		w := g.walls(t, tier)
		if r := g.run(t, w, g.attacker, "confines"); r.ending.ExitCode != 0 || exists(g.root+"/written") {
			t.Errorf("%+v", r)
		}
		r := g.run(t, w, g.attacker, "probes")
		if !strings.Contains(r.out, "walls of omniagent stand around this program already") {
			t.Errorf("%+v", r)
		}
	})
}

// probesInside says why no walls can be built.
func probesInside() error {
	_, err := Open(Policy{}, Probe(context.Background(), self("ends")), Options{})
	fmt.Println(err)
	return nil
}

// signalsSupervisor sends signals to the supervisor by each call that the kernel has.
func signalsSupervisor() error {
	parent := os.Getppid()
	var got []string
	for id := parent; id < parent+40; id++ {
		for name, call := range map[string][4]uintptr{
			"kill":   {unix.SYS_KILL, uintptr(id), 0},
			"tkill":  {unix.SYS_TKILL, uintptr(id), 0},
			"tgkill": {unix.SYS_TGKILL, uintptr(parent), uintptr(id), 0},
		} {
			if id != parent && name == "kill" {
				if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", parent, id)); err != nil {
					continue
				}
			}
			if id == os.Getpid() || name == "tkill" && !isThreadOf(parent, id) {
				continue
			}
			if _, _, errno := unix.Syscall(call[0], call[1], call[2], call[3]); errno == 0 {
				got = append(got, fmt.Sprint(name, " ", id-parent))
			}
		}
	}
	if len(got) > 0 {
		return fmt.Errorf("reached by %s", strings.Join(got, ", "))
	}
	return nil
}

func isThreadOf(process, id int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", process, id))
	return err == nil
}

// TestSupervisorIsNotReached: no thread of the supervisor can be stopped or ended by a command.
func TestSupervisorIsNotReached(t *testing.T) {
	if abi, err := landlockABI(); err != nil || abi < 6 {
		t.Skip("this kernel has no scopes of signals")
	}
	g := newGround(t)
	w := g.walls(t, Landlock)
	if r := g.run(t, w, g.attacker, "signals"); r.ending.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
}
