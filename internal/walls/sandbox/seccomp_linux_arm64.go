package sandbox

import "golang.org/x/sys/unix"

// bpfCalls returns what the filter has to know about this machine, and its answers. last is the highest call that was
// considered.
func bpfCalls(inet bool) (machine, last uint32, calls map[uint32][]unix.SockFilter) {
	return unix.AUDIT_ARCH_AARCH64, unix.SYS_RSEQ_SLICE_YIELD, bpfCommon(inet)
}

// oldCalls, oldOpen and oldChangeOf are about calls that this machine does not have.
func oldCalls() []uint32 { return nil }

func oldOpen() (number uint32, ok bool) { return 0, false }

func oldChangeOf(uint32, [6]uint64) (change, bool) { return change{}, false }

// oldAttributes and oldAttribute too.
func oldAttributes() []uint32 { return nil }

func oldModes() []uint32 { return nil }

func oldAttribute(
	uint32, [6]uint64, func(dir int32, path, flags uint64, apply applying) (change, bool),
) (change, bool) {
	return change{}, false
}

const newfstatat = unix.SYS_FSTATAT

// oldLooks are the calls that look at a path without a directory, of which this machine has none of its own.
func oldLooks() (machine uint32, opening, others []uint32) { return unix.AUDIT_ARCH_AARCH64, nil, nil }

// opensNothing reports whether a call only tells whether a file exists and what it is.
func opensNothing(number uint32) bool { return number == newfstatat || number == unix.SYS_STATX }

// looksHere reports whether a call takes no directory.
func looksHere(number uint32) bool { return number == unix.SYS_CHDIR }

// narrowMachine is arm, whose programs this machine may run, and the numbers of its private calls.
func narrowMachine() (machine uint32, numbers privateCalls) {
	return unix.AUDIT_ARCH_ARM, privateCalls{ioctl: 54, keys: [3]uint32{311, 309, 310}}
}
