package command

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The memory of a process through which much flows but in which little lives. An agent that says hundreds of megabytes
// makes garbage of as many, and the collector waits until there is as much of it as of what lives.
const (
	memoryLimit = 36 << 20 // collect more often from here on
	mostAlive   = 24 << 20 // unless so much lives: then the time is worth more
)

// saveMemory keeps the process small as long as little lives in it, unless the environment decides.
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

// afterCollection calls do after each collection, as long as it wants.
func afterCollection(do func() (again bool)) {
	type mark struct{ _ [32]byte }
	runtime.SetFinalizer(&mark{}, func(*mark) {
		if do() {
			afterCollection(do)
		}
	})
}
