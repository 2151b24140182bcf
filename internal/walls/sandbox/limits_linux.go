package sandbox

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ofStage is added to the limit of processes, for the threads of process 1.
const ofStage = 16

// limit sets the limits that the kernel enforces per process or user. It never raises a limit.
func limit(o *order) error {
	if err := lowerLimit(unix.RLIMIT_CORE, 0); err != nil {
		return err
	}
	most := uint64(cmp.Or(o.Limits.Processes, defaultProcesses) + ofStage)
	if o.Tier == Landlock && os.Geteuid() != 0 { // the user's processes outside count too
		most += tasksOfUser()
	}
	return lowerLimit(unix.RLIMIT_NPROC, most)
}

func lowerLimit(which int, to uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(which, &now); err != nil {
		return err
	}
	to = min(to, now.Max)
	return unix.Setrlimit(which, &unix.Rlimit{Cur: min(to, now.Cur), Max: to})
}

// limitMemory is called last, because it limits this process too. It leaves room for what the runtime of this process
// may still need. Set from outside, the limit would come only after the command has started.
func limitMemory(bytes int64) {
	most := max(uint64(bytes), ownData()+roomOfStage)
	_ = lowerLimit(unix.RLIMIT_DATA, most)
}

const roomOfStage = 64 << 20

// ownData returns how much of this process counts for the limit; 0: not known.
func ownData() uint64 {
	n, _ := strconv.ParseUint(strings.TrimSuffix(statusField("/proc/self/status", "VmData"), " kB"), 10, 54)
	return n << 10
}

// statusField returns a field of a file of the kernel such as /proc/self/status, or "".
func statusField(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// tasksOfUser returns how many processes and threads count for the limit.
func tasksOfUser() (count uint64) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Getuid() {
			continue
		}
		n, _ := strconv.ParseUint(statusField("/proc/"+entry.Name()+"/status", "Threads"), 10, 32)
		count += n
	}
	return count
}

// dropPrivileges drops every capability of this thread and its children for ever: not even the superuser gets one back
// by executing a program.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	have, err := capabilities()
	if err != nil {
		return err
	}
	if have[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		if err := boundCapabilities(nil); err != nil {
			return err
		}
		// NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, locked; KEEP_CAPS locked
		const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
			return err
		}
	}
	// The other threads of the runtime too. In a program that is linked with C that is impossible, so each thread of a
	// supervisor also does it for itself.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, pointer(&header), pointer(&none[0]), 0)
	if errno != 0 && errno != syscall.ENOTSUP {
		return errno
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if os.Getenv(confinedMark) != "" {
		return nil // all of this process is in the sandbox, and the supervisor has to read its memory
	}
	// No process in the sandbox may inspect this process, whose other threads are outside of it.
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// boundCapabilities removes all capabilities but kept from those that programs of this thread can ever have.
func boundCapabilities(kept []uintptr) error {
	for capability := uintptr(0); ; capability++ {
		if slices.Contains(kept, capability) {
			continue
		}
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); {
		case errors.Is(err, unix.EINVAL): // the last one was before
			return nil
		case err != nil:
			return err
		}
	}
}

// capabilities returns the capabilities of this thread.
func capabilities() (have [2]unix.CapUserData, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	err = unix.Capget(&header, &have[0])
	return have, err
}

func setCapabilities(wanted [2]unix.CapUserData) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&header, &wanted[0])
}

// dropCapabilities drops all capabilities of this thread.
func dropCapabilities() error {
	none := [2]unix.CapUserData{}
	if err := setCapabilities(none); err != nil {
		return err
	}
	have, err := capabilities()
	if err != nil {
		return err
	}
	if have != none {
		return errors.New("capabilities are left")
	}
	return nil
}
