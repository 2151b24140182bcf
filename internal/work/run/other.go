//go:build !linux

package run

import (
	"io/fs"
	"net"
	"time"
)

// kin is an agent's process and its descendants.
type kin struct {
	agent []int
	cpu   time.Duration
}

// family is not supported on this system.
func family(int) kin { return kin{} }

// inputOf is not supported on this system.
func inputOf(int) fs.FileInfo { return nil }

// checkPeer returns nil, because only the user may enter the directory of the socket.
func checkPeer(net.Conn) error { return nil }

// uptime returns time.Since(since), which includes sleep if the system's clock does.
func uptime(since time.Time) time.Duration { return time.Since(since) }
