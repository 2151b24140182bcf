//go:build linux && !amd64 && !arm64

package sandbox

import "golang.org/x/sys/unix"

// bpfCalls returns nothing: there is no filter for this machine.
func bpfCalls(bool) (machine, last uint32, calls map[uint32][]unix.SockFilter) { return 0, 0, nil }

func bpfOutside(map[uint32][]unix.SockFilter) {}

func bpfHeld(map[uint32][]unix.SockFilter) {}

func bpfAttributes(map[uint32][]unix.SockFilter) {}

func bpfModes(map[uint32][]unix.SockFilter) {}

func bpfWriting(map[uint32][]unix.SockFilter) {}

func (r *pathCall) bytes(uint64, int) ([]byte, error) { return nil, unix.ENOSYS }

func (r *pathCall) mark(change) error { return unix.EPERM }

func (r *pathCall) seeMark(change) {}

func changeOf(uint32, [6]uint64) (change, bool) { return change{}, false }

const newfstatat = 0

func oldLooks() (machine uint32, opening, others []uint32) { return 0, nil, nil }

func opensNothing(uint32) bool { return false }

func looksHere(uint32) bool { return false }

func narrowMachine() (machine uint32, numbers privateCalls) { return 0, privateCalls{} }
