package agents

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

const (
	directory = "OMNIAGENT_TEST_AGENTS" // of the agents' programs
	inside    = "OMNIAGENT_TEST_INSIDE" // the built program, once this process is alone with its loopback device
)

// bin holds the agents, program is ours.
var bin, program string

// TestMain builds the program and runs the tests in a network namespace that has only a loopback device, where the
// system allows one.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) { // of an agent that a test has opened a conversation with
		os.Exit(process.Guard())
	}
	if bin = os.Getenv(directory); bin == "" {
		os.Exit(m.Run())
	}
	if program = os.Getenv(inside); program != "" {
		if err := loopback(); err != nil {
			fmt.Fprintln(os.Stderr, "the loopback device cannot be started:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		alone := exec.Command("/proc/self/exe", os.Args[1:]...)
		alone.Env = append(os.Environ(), inside+"="+program)
		alone.Stdout, alone.Stderr = os.Stdout, os.Stderr
		alone.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if err := alone.Start(); err != nil {
			fmt.Println("with the network of this machine: a namespace of its own is not allowed here:", err)
			return m.Run()
		}
		if err := alone.Wait(); err != nil {
			return 1
		}
		return 0
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}

// loopback starts the device that a new namespace has, but switched off.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var request struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = unix.IFF_UP
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

// abroad gives the loopback device an address of the outside, for agents that fetch no page from this machine. It needs
// the namespace of TestMain.
func abroad(t *testing.T) string {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Skip("the network is not ours alone, so it gets no address of the outside")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var request struct {
		name   [unix.IFNAMSIZ]byte
		family uint16
		port   uint16
		ip     [4]byte
		_      [16]byte
	}
	copy(request.name[:], "lo:1")
	request.family, request.ip = unix.AF_INET, [4]byte{93, 184, 216, 34}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR,
		uintptr(unsafe.Pointer(&request))); errno != 0 {
		t.Fatal(errno)
	}
	return "93.184.216.34"
}
