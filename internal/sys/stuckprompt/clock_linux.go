package stuckprompt

import (
	"bytes"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bits of the operation of a futex.
const (
	futexPrivate  = 128
	futexRealtime = 256
)

// sleeps judges a sleep: it is Resting if the time is negative, which means no end, or longer than the wait.
func (p person) sleeps(d time.Duration) Wait {
	if d < 0 || p.within > 0 && d >= p.within {
		return Resting
	}
	return Working
}

// until judges a wait whose time stands at an address of the process: how long, or until which point in time. Without
// an address it has no end.
func (p person) until(pid int, address uint64, point bool) Wait {
	if address == 0 {
		return Resting
	}
	var t unix.Timespec
	size := int(unsafe.Sizeof(t))
	block := make([]byte, size)
	local := unix.Iovec{Base: &block[0]}
	local.SetLen(size)
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{local},
		[]unix.RemoteIovec{{Base: uintptr(address), Len: size}}, 0)
	if err != nil || n != size {
		return Unknown
	}
	t = *(*unix.Timespec)(unsafe.Pointer(&block[0]))
	if t.Sec > int64(forever/time.Second) {
		return Resting
	}
	d := time.Duration(t.Nano())
	if point {
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
			return Unknown
		}
		if d -= time.Duration(now.Nano()); d > forever/2 { // it is a time of the day
			d = time.Until(time.Unix(0, t.Nano()))
		}
		d = max(0, d)
	}
	return p.sleeps(d)
}

// forever is longer than any wait, and fits into nanoseconds.
const forever = 100 * 365 * 24 * time.Hour

// dead reports whether a process is a zombie.
func dead(process string) bool {
	stat, _ := os.ReadFile(process + "/stat")
	rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(rest) > 0 && (rest[0][0] == 'Z' || rest[0][0] == 'X')
}
