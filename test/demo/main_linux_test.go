package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// inside names the built program, once this process is alone with its loopback device.
const inside = "OMNIAGENT_TEST_INSIDE"

var (
	program string
	alone   bool // there is no network
)

// TestMain runs the tests in a network namespace that has only a loopback device, where the system allows one.
func TestMain(m *testing.M) {
	if program = os.Getenv(inside); program != "" {
		if err := loopback(); err != nil {
			fmt.Fprintln(os.Stderr, "the loopback device cannot be started:", err)
			os.Exit(1)
		}
		alone = true
		os.Exit(hermetic.Sample(m, "TestFacts", "TestPipe", "TestTerminal"))
	}
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		again := exec.Command("/proc/self/exe", os.Args[1:]...)
		again.Env = append(os.Environ(), inside+"="+program)
		again.Stdout, again.Stderr = os.Stdout, os.Stderr
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if err := again.Start(); err != nil {
			fmt.Println("with the network of this machine: a namespace of its own is not allowed here:", err)
			return hermetic.Sample(m, "TestFacts", "TestPipe", "TestTerminal")
		}
		if again.Wait() != nil {
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

// room is a home with something in it, and nothing else of anybody.
type room struct {
	home, dir string
	env       []string
}

func newRoom(t *testing.T, set ...string) room {
	t.Helper()
	r := room{home: place(t), dir: t.TempDir()}
	write(t, filepath.Join(r.home, ".config", "mine"), "mine\n")
	write(t, filepath.Join(r.dir, "mine"), "mine\n")
	// The last one of a name counts.
	r.env = append([]string{
		"HOME=" + r.home, "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + t.TempDir(),
		"TERM=xterm-256color",
	}, set...)
	return r
}

// place is a directory that does not lie below /tmp, of which commands behind walls have one of their own.
func place(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{os.Getenv("HOME"), "/var/lib", here} {
		if base == "" || strings.HasPrefix(base+"/", "/tmp/") || strings.HasPrefix(base+"/", "/var/tmp/") {
			continue
		}
		if dir, err := os.MkdirTemp(base, ".test-"); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			return dir
		}
	}
	t.Skip("there is no place to write outside of /tmp")
	return ""
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run calls the program in a pipe.
func (r room) run(t *testing.T, name string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// tree is everything below a directory, with times and contents.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Mode(), info.Size())
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%q %v\n", data, info.ModTime())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// alive are the processes that have this home, or run below it.
func (r room) alive(t *testing.T) []string {
	t.Helper()
	var found []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && strings.Contains(string(env), r.home) {
			line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func readAll(f io.Reader) string {
	data, _ := io.ReadAll(f)
	return string(data)
}
