//go:build !linux

package run

import "time"

// uptime is how long this process has run. Time that the machine slept counts where the system's clock counts it.
func uptime() time.Duration { return time.Since(began) }
