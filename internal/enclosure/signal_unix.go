//go:build unix

package enclosure

import "golang.org/x/sys/unix"

// number is that of a signal's name.
func number(name string) int { return int(unix.SignalNum(name)) }
