package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Conceal takes the values of secret variables out of what other processes can read of our environment
// (/proc/PID/environ), and returns how many there were. We have them still, and so has whom we hand them to. What the
// kernel shows there is the memory that it filled when this program began, of which the runtime has made a copy; so it
// is overwritten. Making the process not dumpable would hide all of it, but then /proc/PID belongs to root: a process
// without privileges could map no user into a namespace, and a guard around us could not see our mark.
//
// A debugger of the same user still reads the copy, where the system lets it attach.
func Conceal(secret func(entry string) bool) int {
	if !slices.ContainsFunc(os.Environ(), secret) {
		return 0
	}
	n := 0
	for block := environmentBlock(); len(block) > 0; { // all of them: a name may stand there twice
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

// environmentBlock is the memory that the kernel shows as our environment; nil where it cannot be told.
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
	// The runtime's strings of the arguments lie in the kernel's memory, near the environment.
	first := unsafe.Pointer(unsafe.StringData(os.Args[0]))
	at := uint64(uintptr(first))
	if at < place[0] || at >= place[1] || place[2] < place[1] || place[3] <= place[2] {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(first, int(place[2]-at))), int(place[3]-place[2]))
}
