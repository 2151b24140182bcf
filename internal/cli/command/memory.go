package command

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A process that passes on hundreds of megabytes has little live memory and much garbage. With the defaults of the
// garbage collector, its memory would grow far beyond the live part.
const (
	memoryLimit = 36 << 20 // collect more often from here on
	mostAlive   = 24 << 20 // stop that with more live memory, because it would cost too much time
)

// saveMemory makes the collector run earlier while the live memory is small, unless GOGC or GOMEMLIMIT is set.
func saveMemory() {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	debug.SetMemoryLimit(memoryLimit)
	afterCollection(func() (again bool) {
		alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(alive)
		if alive[0].Value.Kind() == metrics.KindUint64 && alive[0].Value.Uint64() <= mostAlive {
			return true
		}
		debug.SetMemoryLimit(math.MaxInt64)
		return false
	})
}

// afterCollection calls do after each garbage collection until it returns false.
func afterCollection(do func() (again bool)) {
	type mark struct{ _ [32]byte }
	runtime.SetFinalizer(&mark{}, func(*mark) {
		if do() {
			afterCollection(do)
		}
	})
}
