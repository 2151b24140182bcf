//go:build unix

package policy

import "golang.org/x/sys/unix"

// number returns the number of a signal.
func number(name string) int { return int(unix.SignalNum(name)) }
