package sandbox

import "golang.org/x/sys/unix"

// bpfCalls returns what the filter has to know about this machine, and its answers. last is the highest call that was
// considered.
func bpfCalls(inet bool) (machine, last uint32, calls map[uint32][]unix.SockFilter) {
	return unix.AUDIT_ARCH_AARCH64, unix.SYS_RSEQ_SLICE_YIELD, bpfCommon(inet)
}

// oldCalls, oldOpen and oldDeed are about calls that this machine does not have.
func oldCalls() []uint32 { return nil }

func oldOpen() (number uint32, ok bool) { return 0, false }

func oldDeed(uint32, [6]uint64) (deed, bool) { return deed{}, false }
