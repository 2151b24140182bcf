//go:build !linux

package run

import "time"

// uptime is the time since a moment. What the machine slept counts where the system's clock counts it.
func uptime(since time.Time) time.Duration { return time.Since(since) }
