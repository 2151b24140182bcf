package sandbox

import "golang.org/x/sys/unix"

// bpfCalls are what the filter needs to know of this machine, and its answers. last is the highest call that was looked
// at.
func bpfCalls(inet bool) (machine, last uint32, calls map[uint32][]unix.SockFilter) {
	return unix.AUDIT_ARCH_AARCH64, unix.SYS_RSEQ_SLICE_YIELD, bpfCommon(inet)
}
