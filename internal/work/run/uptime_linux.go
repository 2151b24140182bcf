package run

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns how long the machine has been up, including sleep, or time.Since(since) if that is unknown.
func uptime(since time.Time) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(since)
	}
	return time.Duration(t.Nano())
}
