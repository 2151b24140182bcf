//go:build !linux

package run

import "net"

// checkPeer relies on the directory of the socket, which only the user may enter.
func checkPeer(net.Conn) error { return nil }
