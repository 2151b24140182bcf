package sandbox

import "golang.org/x/sys/unix"

// bpfCalls returns what the filter has to know about this machine, and its answers. last is the highest call that was
// considered.
func bpfCalls(inet bool) (machine, last uint32, calls map[uint32][]unix.SockFilter) {
	calls = bpfCommon(inet)
	for _, n := range []uint32{
		unix.SYS_IOPL, unix.SYS_IOPERM, // ports of devices
		// of old kernels
		unix.SYS_CREATE_MODULE, unix.SYS_QUERY_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_USELIB, unix.SYS__SYSCTL,
	} {
		calls[n] = bpfRefuse(unix.EPERM)
	}
	return unix.AUDIT_ARCH_X86_64, unix.SYS_RSEQ_SLICE_YIELD, calls
}
