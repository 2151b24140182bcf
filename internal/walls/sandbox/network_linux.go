package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func pointer[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// network opens a listener in the namespace, the only thing that the command can reach, which the caller serves. It
// returns the port, or 0 if the network is off or open.
func network(o *order) (port int, err error) {
	if o.Network != "hosts" {
		return 0, nil
	}
	if err := loopback(); err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	at, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("a listener at %v", name)
	}
	if err := unix.Sendmsg(controlFile, []byte("listener"), unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL); err != nil {
		return 0, err
	}
	return at.Port, nil
}

// loopback brings up the loopback interface of the namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		return fmt.Errorf("loopback cannot be set up: %w", err)
	}
	return nil
}
