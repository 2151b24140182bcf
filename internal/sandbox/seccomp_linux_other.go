//go:build linux && !amd64 && !arm64

package sandbox

import "golang.org/x/sys/unix"

// bpfCalls knows nothing of this machine, so there is no filter for it.
func bpfCalls(bool) (machine, last uint32, calls map[uint32][]unix.SockFilter) { return 0, 0, nil }
