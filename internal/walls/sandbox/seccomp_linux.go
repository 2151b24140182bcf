package sandbox

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
)

// A filter lists what is refused, and allows the rest. A list of allowed calls would break programs that nobody thought
// of, and gain little: what matters is a few dozen calls that reach past the other parts of the sandbox. Calls newer
// than the list do not exist for a filtered program: they return ENOSYS, as on an older kernel, which every libc can
// handle.
//
// The kernel compares 32 bits of an argument where it takes an int, so the filter looks at the low half of such
// arguments only: bits above them cannot hide anything.

// Offsets in struct seccomp_data. Both machines store the low half of an argument first.
const (
	bpfNumber       = 0
	bpfMachine      = 4
	bpfArguments    = 16
	bpfNumberLimit  = 1 << 30 // the bit of x32: the same calls with other types, on the same machine
	bpfFarthestJump = 255
)

// bpfAllow and the next functions end a filter.
func bpfAllow() []unix.SockFilter { return []unix.SockFilter{bpfReturn(unix.SECCOMP_RET_ALLOW)} }

func bpfRefuse(with unix.Errno) []unix.SockFilter {
	return []unix.SockFilter{bpfReturn(unix.SECCOMP_RET_ERRNO | uint32(with))}
}

func bpfReturn(what uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
}

func bpfLoad(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// bpfIf continues with yes or with no, both of which end the filter.
func bpfIf(test uint16, value uint32, yes, no []unix.SockFilter) []unix.SockFilter {
	code := []unix.SockFilter{{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jf: uint8(len(yes))}}
	if len(yes) > bpfFarthestJump { // an unconditional jump has no limit
		code[0].Jf = 1
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(no))})
		return append(append(code, no...), yes...)
	}
	return append(append(code, yes...), no...)
}

// bpfOneOf continues with yes if the masked argument is one of the values.
func bpfOneOf(argument int, mask uint32, values []uint32, yes, no []unix.SockFilter) []unix.SockFilter {
	code := no
	for _, v := range slices.Backward(values) {
		code = bpfIf(unix.BPF_JEQ, v, yes, code)
	}
	head := []unix.SockFilter{bpfLoad(bpfArguments + 8*uint32(argument))}
	if mask != 0 {
		head = append(head, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask})
	}
	return append(head, code...)
}

// holding says which calls are held for a supervisor.
type holding int

const (
	holdsNothing    holding = iota
	holdsNames              // those that open files for writing and change names
	holdsModes              // and those that change modes, to know of them
	holdsAttributes         // and those that change modes, owners, times and extended attributes
)

// systemCalls returns the filter for this machine, or nil if none is known. With inet a program may use TCP and UDP.
// Sockets with a name in the file system or in the abstract namespace are always refused, because each leads to a
// program outside. With Landlock alone it also refuses calls that reach processes outside by number, or queues by name.
func systemCalls(tier Tier, inet bool, held holding) []unix.SockFilter {
	machine, last, calls := bpfCalls(inet)
	if machine == 0 {
		return nil
	}
	if tier == Landlock {
		bpfOutside(calls)
	}
	if held >= holdsNames {
		bpfHeld(calls)
	}
	if held == holdsModes {
		bpfModes(calls)
	}
	if held >= holdsAttributes {
		bpfAttributes(calls)
	}
	calls[last+1] = nil // from here on, none is known
	kill := []unix.SockFilter{bpfReturn(unix.SECCOMP_RET_KILL_PROCESS)}
	return filterOf(machine, calls, kill, kill)
}

// filterOf returns a filter with the answers to some calls; all others are allowed. The nil answer is ENOSYS for its
// call and all above. strange is the answer to calls with x32 numbers, elsewhere that to calls of another machine.
func filterOf(machine uint32, calls map[uint32][]unix.SockFilter, strange, elsewhere []unix.SockFilter,
) []unix.SockFilter {
	type stretch struct { // calls from this number to the next stretch
		from uint32
		code []unix.SockFilter
	}
	stretches := []stretch{{0, bpfAllow()}}
	add := func(from uint32, code []unix.SockFilter) {
		top := &stretches[len(stretches)-1]
		switch {
		case top.from == from:
			top.code = code
		case !slices.Equal(top.code, code):
			stretches = append(stretches, stretch{from, code})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(calls)) {
		if calls[n] == nil {
			add(n, bpfRefuse(unix.ENOSYS))
			break
		}
		add(n, calls[n])
		add(n+1, bpfAllow())
	}

	// A binary search: eight comparisons for any call. Since Linux 5.11 the kernel skips them for calls whose number
	// alone decides: it evaluates such a filter once and remembers what is always allowed.
	var search func(list []stretch) []unix.SockFilter
	search = func(list []stretch) []unix.SockFilter {
		if len(list) == 1 {
			return list[0].code
		}
		middle := len(list) / 2
		return bpfIf(unix.BPF_JGE, list[middle].from, search(list[middle:]), search(list[:middle]))
	}
	code := append([]unix.SockFilter{bpfLoad(bpfNumber)},
		bpfIf(unix.BPF_JGE, bpfNumberLimit, strange, search(stretches))...)
	// Another machine has other numbers, and a 64-bit kernel may run 32-bit programs.
	return append([]unix.SockFilter{bpfLoad(bpfMachine)}, bpfIf(unix.BPF_JEQ, machine, code, elsewhere)...)
}

// asksForWalls are flags that no kernel knows. The filter of a supervisor answers them, so a process can tell that it
// runs behind our walls.
const asksForWalls = 1 << 31

// withinWalls is the reason to give then.
const withinWalls = "walls of omniagent stand around this program already, and inside of them no others can be built"

// walled reports whether a supervisor stands around this process.
func walled() bool {
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, asksForWalls)
	return errno == unix.EALREADY
}

// install puts this OS thread, and every program that it executes or starts, behind the filter, for ever. From then on
// set-user-ID programs gain nothing, which the kernel requires first.
func install(filter []unix.SockFilter) error {
	_, err := installWith(filter, 0)
	return err
}

// listenTo installs a filter, and returns the descriptor on which the kernel reports the calls that it holds.
func listenTo(filter []unix.SockFilter) (listener int, err error) {
	const listening = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	listener, err = installWith(filter, listening|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) { // before Linux 5.19
		listener, err = installWith(filter, listening)
	}
	return listener, err
}

func installWith(filter []unix.SockFilter, flags uintptr) (int, error) {
	if len(filter) == 0 {
		return -1, fault.New(fault.Blocked, "no filter of system calls is known for %s", runtime.GOARCH).
			Hint("Use amd64 or arm64, or do without the sandbox.")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fault.New(fault.Blocked, "privileges cannot be given up: %v", err).Because(err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	result, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, fault.New(fault.Blocked, "no filter of system calls can be set: %v", errno).Because(errno).
			Hint("Use a kernel with CONFIG_SECCOMP_FILTER; in a container, allow seccomp in its profile.")
	}
	return int(result), nil
}
