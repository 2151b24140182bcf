//go:build !linux

package run

import "time"

// uptime returns time.Since(since), which includes sleep if the system's clock does.
func uptime(since time.Time) time.Duration { return time.Since(since) }
