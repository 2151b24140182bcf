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

// markAllDescriptors marks all descriptors in one call, since Linux 5.11.
func markAllDescriptors() error { return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

// stat is what we need from /proc/PID/stat.
type stat struct {
	state   byte
	parent  int
	group   int
	session int
	start   string // in clock ticks since the machine started
}

func (s stat) runs() bool { return s.state != 'Z' && s.state != 'X' }

func statOf(pid int) (stat, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	// The second field is the name in parentheses, which may contain blanks and parentheses.
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, false
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 20 {
		return stat{}, false
	}
	parent, errParent := strconv.Atoi(fields[1])
	group, errGroup := strconv.Atoi(fields[2])
	session, errSession := strconv.Atoi(fields[3])
	return stat{fields[0][0], parent, group, session, fields[19]}, errors.Join(errParent, errGroup, errSession) == nil
}

func parentOf(pid int) int {
	s, _ := statOf(pid)
	return s.parent
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

// identity returns a text that no other process with this number ever has: the boot of the machine and the start of the
// process.
func identity(pid int) (string, bool) {
	s, ok := statOf(pid)
	if !ok || !s.runs() {
		return "", false
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)) + ":" + s.start, true
}

// withMark returns our processes that were started with the mark in their environment.
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
		// FindProcess opened a pidfd: checking again makes sure that it is for the process that had the mark.
		if hasMark(pid, mark) {
			found = append(found, p)
			continue
		}
		_ = p.Release()
	}
	return found
}

func hasMark(pid int, mark string) bool {
	marked, _ := lookForMark(pid, mark)
	return marked
}

// lookForMark searches the environment with which a process was started. between means that it has none at this moment,
// because it is in the middle of an exec or is exiting.
func lookForMark(pid int, mark string) (marked, between bool) {
	place := "/proc/" + strconv.Itoa(pid)
	text, err := readWhole(place + "/environ")
	if err != nil || len(text) > 0 {
		return bytes.Contains(text, []byte(mark)), false
	}
	if arguments, err := readWhole(place + "/cmdline"); err == nil && len(arguments) == 0 {
		return false, true // every program has a name
	}
	text, _ = readWhole(place + "/environ") // the arguments appear a little earlier
	return bytes.Contains(text, []byte(mark)), false
}

// readWhole reads without os.File, whose poller doubles the cost: this runs for every process of the machine.
func readWhole(path string) (text []byte, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for block := make([]byte, 16<<10); ; {
		n, err := unix.Read(fd, block)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 || err != nil {
			return text, err
		}
		text = append(text, block[:n]...)
	}
}
