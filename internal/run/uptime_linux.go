package run

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long the machine has been up, the time that it slept included. since counts where that is not known.
func uptime(since time.Time) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(since)
	}
	return time.Duration(t.Nano())
}
