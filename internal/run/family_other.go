//go:build !linux

package run

import "time"

// family is not supported on this system.
func family(int) ([]int, time.Duration) { return nil, 0 }
