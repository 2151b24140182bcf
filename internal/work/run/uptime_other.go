//go:build !linux

package run

import "time"

// uptime returns the time since since. It includes sleep if the system's clock does.
func uptime(since time.Time) time.Duration { return time.Since(since) }
