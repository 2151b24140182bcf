package process

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// markAllDescriptors does it in one call, since Linux 5.11.
func markAllDescriptors() error { return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// waitLeader waits until the leader has exited and leaves it to be reaped: as long as it is a zombie, its number is not given away.
func (g *group) waitLeader() {
	for {
		err := unix.Waitid(unix.P_PID, g.leader, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// groupRuns looks through /proc for a member of the group that is no zombie.
func groupRuns(id int) bool {
	for _, pid := range everyProcess() {
		if s, ok := statOf(pid); ok && s.group == id && s.runs() {
			return true
		}
	}
	return false
}

// stat is what we need of /proc/PID/stat.
type stat struct {
	state byte
	group int
	start string // in clock ticks since the machine started
}

func (s stat) runs() bool { return s.state != 'Z' && s.state != 'X' }

func statOf(pid int) (stat, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	// The second field is the name in parentheses, which may itself have blanks and parentheses.
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, false
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 20 {
		return stat{}, false
	}
	group, err := strconv.Atoi(fields[2])
	return stat{fields[0][0], group, fields[19]}, err == nil
}

func everyProcess() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// identity tells a process from every other that ever has its number: the start of the machine and the process's own.
func identity(pid int) (string, bool) {
	s, ok := statOf(pid)
	if !ok || !s.runs() {
		return "", false
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)) + ":" + s.start, true
}

// withMark returns the processes of ours that have the mark in the environment that they were started with.
func withMark(mark string) []*os.Process {
	var found []*os.Process
	for _, pid := range everyProcess() {
		if pid == os.Getpid() || !hasMark(pid, mark) {
			continue
		}
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		// FindProcess opened a pidfd: looking once more makes sure that what is signalled later is what was looked at.
		if hasMark(pid, mark) {
			found = append(found, p)
			continue
		}
		_ = p.Release()
	}
	return found
}

// hasMark reads the environment without os.File, whose poller doubles the price: this is asked about every process of the machine.
func hasMark(pid int, mark string) bool {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/environ", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var text []byte
	for block := make([]byte, 16<<10); ; {
		n, err := unix.Read(fd, block)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 || err != nil {
			return bytes.Contains(text, []byte(mark))
		}
		text = append(text, block[:n]...)
	}
}
