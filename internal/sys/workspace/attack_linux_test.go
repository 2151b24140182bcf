package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// mount mounts below the workspace and takes it away in the end.
func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	if err := syscall.Mount(source, target, kind, flags, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(target, syscall.MNT_DETACH)) })
}

// TestMagicLinks has all of /proc in the workspace, where links lead to what no path names.
func TestMagicLinks(t *testing.T) {
	y := newYard(t)
	check(t, os.Mkdir(filepath.Join(y.in, "proc"), 0o755))
	mount(t, "proc", filepath.Join(y.in, "proc"), "proc", 0)
	secret, err := os.Open(filepath.Join(y.out, "secret"))
	check(t, err)
	defer secret.Close()
	beneath, err := unix.Open(y.out, unix.O_PATH|unix.O_DIRECTORY, 0)
	check(t, err)
	defer unix.Close(beneath)
	deleted, err := os.Create(filepath.Join(y.out, "deleted"))
	check(t, err)
	defer deleted.Close()
	check(t, os.Remove(deleted.Name()))
	for _, name := range []string{
		"root" + y.out + "/secret", "cwd/../../../../etc/passwd", "exe", fmt.Sprintf("fd/%d", secret.Fd()),
		fmt.Sprintf("fd/%d/secret", beneath),
		"task/self/root/etc/passwd", fmt.Sprintf("fd/%d", deleted.Fd()),
	} {
		name = "proc/self/" + name
		if _, err := y.ReadFile(name, 1<<20); err == nil {
			t.Errorf("%s was read", name)
		}
		if err := y.Replace(name, []byte(newText), ReplaceOptions{}); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	for _, name := range []string{"root", "cwd", fmt.Sprintf("fd/%d", beneath)} {
		if _, _, err := y.ReadDir("proc/self/"+name, 0); err == nil {
			t.Errorf("%s was listed", name)
		}
	}
	_, err = y.ReadFile(fmt.Sprintf("proc/self/fd/%d", secret.Fd()), 100)
	wantReason(t, "descriptor", err, "outside")
	wantContent(t, filepath.Join(y.out, "secret"), oldText)
	missed, err := y.Survey(context.Background(), fmt.Sprintf("proc/%d/fd", os.Getpid()), nil, Survey{
		Enter: func(f *Folder, entries []Entry) {
			for _, e := range entries {
				f.Take(e.Name)
				f.Descend(e.Name, nil)
			}
		},
		File: func(_ int, f *Folder, name string) {
			if _, err := f.ReadFile(name, 1<<20); err == nil {
				t.Errorf("the descriptor %s was read", name)
			}
		},
	})
	check(t, err)
	if missed == 0 {
		t.Error("no link was tried")
	}
}

// TestNamesOfTheRootThroughProc: they are names of the root, and those of what lies outside are not.
func TestNamesOfTheRootThroughProc(t *testing.T) {
	y := newYard(t)
	fd, err := unix.Open(y.in, unix.O_PATH|unix.O_DIRECTORY, 0)
	check(t, err)
	defer unix.Close(fd)
	out, err := unix.Open(y.out, unix.O_PATH|unix.O_DIRECTORY, 0)
	check(t, err)
	defer unix.Close(out)
	for _, written := range []string{
		"/proc/self/root" + y.in + "/sub/x", fmt.Sprintf("/proc/self/fd/%d/sub/x", fd),
		fmt.Sprintf("/dev/fd/%d/sub/x", fd),
	} {
		if name, err := y.Name(written); err != nil || name != "sub/x" {
			t.Errorf("%s: got %q, %v", written, name, err)
		}
	}
	for _, written := range []string{
		"/proc/self/root" + y.out + "/secret", fmt.Sprintf("/proc/self/fd/%d/secret", out),
		"/proc/self/cwd", "/dev/stdin", "/proc/1/root" + y.out,
	} {
		_, err := y.Name(written)
		wantReason(t, written, err, "outside")
	}
}

// TestAFileThatIsMounted cannot be replaced; it does not change, and no temporary file is left.
func TestAFileThatIsMounted(t *testing.T) {
	y := newYard(t)
	mount(t, filepath.Join(y.out, "secret"), filepath.Join(y.in, "file"), "", syscall.MS_BIND)
	wantReason(t, "mounted", y.Replace("file", []byte(newText), ReplaceOptions{}), "blocked")
	wantContent(t, filepath.Join(y.in, "file"), oldText)
	wantContent(t, filepath.Join(y.out, "secret"), oldText)
	if left := leftovers(t, y.in); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestADirectoryThatIsMounted belongs to the workspace, because a user who can mount decided that. Only a removal stops
// there.
func TestADirectoryThatIsMounted(t *testing.T) {
	y := newYard(t)
	check(t, os.Mkdir(filepath.Join(y.in, "mounted"), 0o755))
	small := filepath.Join(y.top, "small")
	check(t, os.Mkdir(small, 0o755))
	mount(t, "tmpfs", small, "tmpfs", 0)
	y.put(t, "small/file", oldText)
	mount(t, small, filepath.Join(y.in, "mounted"), "", syscall.MS_BIND)
	check(t, y.Replace("mounted/file", []byte(newText), ReplaceOptions{}))
	wantContent(t, filepath.Join(small, "file"), newText)
	_, err := RemoveTree(y.in, "mounted", Walk{})
	wantCode(t, err, fault.Unsafe)
	wantContent(t, filepath.Join(small, "file"), newText)
}

func TestAFileThatMayNeverChange(t *testing.T) {
	y := newYard(t)
	const immutable, appendOnly = 0x10, 0x20 // FS_IMMUTABLE_FL and FS_APPEND_FL
	for what, flag := range map[string]int{"immutable": immutable, "append only": appendOnly} {
		f, err := os.Open(filepath.Join(y.in, "file"))
		check(t, err)
		defer f.Close()
		flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err == nil {
			err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|flag)
		}
		if err != nil {
			t.Skipf("no file can be made %s here: %v", what, err)
		}
		t.Cleanup(func() { _ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags) })
		wantReason(t, what, y.Replace("file", []byte(newText), ReplaceOptions{}), "blocked")
		wantContent(t, filepath.Join(y.in, "file"), oldText)
		if left := leftovers(t, y.in); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		check(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags))
	}
}

// TestNoRoomForAnotherName fills a file system with files: nothing can be made in it, not even what is to be renamed.
func TestNoRoomForAnotherName(t *testing.T) {
	y := newYard(t)
	full := filepath.Join(y.in, "full")
	check(t, os.Mkdir(full, 0o755))
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "nr_inodes=4"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(full, syscall.MNT_DETACH)) })
	y.put(t, "in/full/file", oldText)
	for i := 0; os.WriteFile(filepath.Join(full, fmt.Sprint(i)), nil, 0o600) == nil; i++ {
		_ = i
	}
	for _, name := range []string{"full/file", "full/new", "full/dir/new"} {
		wantCode(t, y.Replace(name, []byte(newText), ReplaceOptions{}), fault.DiskFull)
	}
	wantContent(t, filepath.Join(full, "file"), oldText)
	if left := leftovers(t, full); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestEveryKindOfFailureOfAReplacement: each call fails in each way that the system knows.
func TestEveryKindOfFailureOfAReplacement(t *testing.T) {
	for errno, reason := range map[syscall.Errno]string{
		syscall.ENOSPC: "full", syscall.EDQUOT: "full", syscall.EIO: "failed", syscall.EXDEV: "failed",
		syscall.EROFS:  "blocked",
		syscall.EACCES: "blocked", syscall.EPERM: "blocked", syscall.EBUSY: "blocked", syscall.ENOTDIR: "not-directory",
		syscall.EISDIR: "not-regular", syscall.ENAMETOOLONG: "invalid", syscall.ENOENT: "missing",
		syscall.EFBIG: "failed", syscall.EMFILE: "failed",
	} {
		y := newYard(t)
		for k := 0; ; k++ {
			path := filepath.Join(y.in, "file")
			check(t, os.WriteFile(path, []byte(oldText), 0o644))
			old, err := y.root.Lstat("file")
			check(t, err)
			s := &saboteur{spoil: k, short: 10, how: func() error { return errno }}
			err = y.replaceIn(s.around(diskIn(y.root, 0o600)), y.root, slot{"file", "file", old}, []byte(newText), nil)
			for _, f := range s.opened {
				_ = f.Close()
			}
			if k >= len(s.calls) {
				check(t, err)
				break
			}
			wantReason(t, s.calls[k], err, reason)
			oldOrNew(t, s.calls[k], path, true, s.calls[k] == "syncDir")
			if left := leftovers(t, y.in); len(left) > 0 {
				t.Fatalf("%v of %s: left %v", errno, s.calls[k], left)
			}
		}
	}
}

// TestAFIFOWhoseWriterNeverEnds takes the place of a file that a survey has already seen.
func TestAFIFOWhoseWriterNeverEnds(t *testing.T) {
	root := t.TempDir()
	grow(t, root, "file")
	path := filepath.Join(root, "file")
	var writer *os.File
	s := &surveyed{before: func(*Folder, []Entry) {
		check(t, os.Remove(path))
		check(t, syscall.Mkfifo(path, 0o600))
		var err error
		writer, err = os.OpenFile(path, os.O_RDWR, 0)
		check(t, err)
		_, err = writer.Write(bytes.Repeat([]byte("y\n"), 100))
		check(t, err)
	}, file: func(f *Folder, name string) {
		if file, err := f.Open(name); err == nil {
			_ = file.Close()
			t.Error("a FIFO was opened as a file")
		}
	}}
	_, err := s.walk(t, context.Background(), opened(t, root), ".")
	check(t, err)
	check(t, writer.Close())
}

// TestWhatChangesWhileItIsRead ends, and is no more than was allowed.
func TestWhatChangesWhileItIsRead(t *testing.T) {
	y := newYard(t)
	path := filepath.Join(y.in, "file")
	end := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-end:
				return
			default:
			}
			if f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
				_, _ = f.Write(bytes.Repeat([]byte("x"), 40_000))
				if n%7 == 0 {
					_ = f.Truncate(0)
				}
				_ = f.Close()
			}
		}
	}()
	whole := 0
	for range 2000 {
		data, print, err := y.Load("file", 100_000)
		switch {
		case err != nil:
			wantReason(t, "growing", err, "too-large")
		case len(data) > 100_000 || print.size != int64(len(data)):
			t.Fatalf("%d bytes, fingerprint of %d", len(data), print.size)
		default:
			whole++
		}
	}
	close(end)
	<-ended
	if whole == 0 {
		t.Error("it was never read, so nothing was tried")
	}
}

// TestAHole is a file of a terabyte with nothing in it.
func TestAHole(t *testing.T) {
	y := newYard(t)
	if err := os.Truncate(filepath.Join(y.in, "file"), 1<<40); err != nil {
		t.Skipf("no such file can be made here: %v", err)
	}
	start := time.Now()
	_, err := y.ReadFile("file", 64<<20)
	wantReason(t, "hole", err, "too-large")
	check(t, y.Replace("file", []byte(newText), ReplaceOptions{}))
	if since := time.Since(start); since > 5*time.Second {
		t.Errorf("it took %v", since)
	}
}

func TestASocketIsNoFile(t *testing.T) {
	y := newYard(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	check(t, err)
	defer unix.Close(fd)
	// Through a descriptor: the whole path may be longer than an address can be.
	dir, err := unix.Open(y.in, unix.O_PATH|unix.O_DIRECTORY, 0)
	check(t, err)
	defer unix.Close(dir)
	check(t, unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/socket", dir)}))
	_, _, err = y.Open("socket")
	wantReason(t, "socket", err, "not-regular")
	wantReason(t, "socket", y.Replace("socket", nil, ReplaceOptions{}), "not-regular")
}

// TestAStickyDirectory lets nobody replace another's file; the umask counts for a new one.
func TestAStickyDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	y := newYard(t)
	const sticky = "/tmp"
	if info, err := os.Stat(sticky); err != nil || info.Mode()&fs.ModeSticky == 0 || os.Getenv(othersVariable) == "" {
		t.Skip("there is no sticky directory with another's file")
	}
	d := opened(t, sticky)
	name, err := filepath.Rel(sticky, os.Getenv(othersVariable))
	check(t, err)
	wantReason(t, "another's", d.Replace(name, []byte(newText), ReplaceOptions{}), "blocked")
	wantContent(t, filepath.Join(sticky, name), oldText)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	check(t, y.Replace("private", nil, ReplaceOptions{}))
	if info, err := os.Stat(filepath.Join(y.in, "private")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestASurveyOfWhatMayNotBeRead continues with the rest.
func TestASurveyOfWhatMayNotBeRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	y := newYard(t)
	check(t, os.Chmod(filepath.Join(y.in, "sub"), 0))
	defer os.Chmod(filepath.Join(y.in, "sub"), 0o700)
	s := &surveyed{}
	missed, err := s.walk(t, context.Background(), y.Dir, ".")
	if err != nil || missed != 1 || len(s.files) != 1 {
		t.Errorf("missed %d, %v, %v", missed, s.files, err)
	}
	_, _, err = y.ReadDir("sub", 0)
	wantReason(t, "sub", err, "blocked")
	_, err = y.ReadFile("sub/deep/file", 100)
	wantReason(t, "beneath sub", err, "blocked")
}

const othersVariable = "OMNIAGENT_WORKSPACE_TEST_OTHERS"

// TestAsNobody runs, where all of this is run by root, what root cannot be refused.
func TestAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the tests for others run by themselves")
	}
	dir, err := os.MkdirTemp("/tmp", "omniagent-nobody-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o777))
	exe, err := os.Executable()
	check(t, err)
	program, err := os.ReadFile(exe)
	check(t, err)
	copied := filepath.Join(dir, "program")
	check(t, hermetic.WriteProgram(copied, program, 0o755))
	others, err := os.CreateTemp("/tmp", "omniagent-others-")
	check(t, err)
	t.Cleanup(func() { _ = os.Remove(others.Name()) })
	check(t, others.Chmod(0o666))
	_, err = io.WriteString(others, oldText)
	check(t, errors.Join(err, others.Close()))
	names := []string{
		"TestAReadOnlyDirectory", "TestAFileThatMayNotBeRead", "TestAStickyDirectory",
		"TestASurveyOfWhatMayNotBeRead",
	}
	cmd := exec.Command(copied, "-test.v", "-test.run=^("+strings.Join(names, "|")+")$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, othersVariable+"="+others.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	said, err := cmd.CombinedOutput()
	if err != nil && errors.Is(err, fs.ErrPermission) {
		t.Skipf("no program can be run as nobody here: %v", err)
	}
	for _, name := range names {
		if !strings.Contains(string(said), "--- PASS: "+name) {
			t.Errorf("%s did not pass for nobody (%v):\n%s", name, err, said)
		}
	}
}
