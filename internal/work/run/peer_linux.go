package run

import (
	"net"
	"os"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
)

// checkPeer refuses a caller that is another user.
func checkPeer(c net.Conn) error {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	failed := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET,
			unix.SO_PEERCRED)
	})
	if failed != nil || err != nil {
		return fault.New(fault.PermissionDenied, "the caller is not known")
	}
	if peer.Uid != uint32(os.Geteuid()) && peer.Uid != 0 {
		return fault.New(fault.PermissionDenied, "the caller is another user")
	}
	return nil
}
