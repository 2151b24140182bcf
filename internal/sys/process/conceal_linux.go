package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Conceal removes the values of secret variables from /proc/PID/environ, where other processes can read our
// environment, and returns how many there were. This process still has them, and its children inherit them. The kernel
// shows the memory that it filled when this program began; the runtime works with a copy, so Conceal overwrites the
// original. Making the process not dumpable would hide everything, but then /proc/PID would belong to root: an
// unprivileged process could not map users into a namespace, and a guard around us could not see our mark.
//
// A debugger of the same user can still read the copy, if the system lets it attach.
func Conceal(secret func(entry string) bool) int {
	if !slices.ContainsFunc(os.Environ(), secret) {
		return 0
	}
	n := 0
	for block := environmentBlock(); len(block) > 0; { // all entries: a name may occur twice
		end := bytes.IndexByte(block, 0)
		if end < 0 {
			end = len(block)
		}
		if at := bytes.IndexByte(block[:end], '='); at > 0 && secret(string(block[:end])) {
			clear(block[at+1 : end])
			n++
		}
		block = block[min(end+1, len(block)):]
	}
	return n
}

// environmentBlock returns the memory that the kernel shows as our environment, or nil if it cannot be found.
func environmentBlock() []byte {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil || len(os.Args) == 0 {
		return nil
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	// proc(5): arg_start, arg_end, env_start and env_end are the fields 48 to 51; the third is the first behind the
	// name
	var place [4]uint64
	for i := range place {
		if at := 48 - 3 + i; at < len(fields) {
			place[i], _ = strconv.ParseUint(fields[at], 10, 64)
		}
	}
	// The runtime's argument strings point into that memory, near the environment.
	first := unsafe.Pointer(unsafe.StringData(os.Args[0]))
	at := uint64(uintptr(first))
	if at < place[0] || at >= place[1] || place[2] < place[1] || place[3] <= place[2] {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(first, int(place[2]-at))), int(place[3]-place[2]))
}
