package sandbox

import "golang.org/x/sys/unix"

// bpfCalls returns what the filter has to know about this machine, and its answers. last is the highest call that was
// considered.
func bpfCalls(inet bool) (machine, last uint32, calls map[uint32][]unix.SockFilter) {
	return unix.AUDIT_ARCH_AARCH64, unix.SYS_RSEQ_SLICE_YIELD, bpfCommon(inet)
}
