package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"omniagent/internal/testkit/hermetic"

	"golang.org/x/sys/unix"
)

// target is what an attacker knows of the world outside.
type target struct {
	ground
	pid, fd  int    // of a process outside, and the descriptor with which it writes outside/file
	tcp      string // where it listens
	socket   string
	abstract string
}

func (x target) args() []string {
	return []string{"attack", x.dir, strconv.Itoa(x.pid), strconv.Itoa(x.fd), x.tcp, x.socket, x.abstract}
}

func targetOf(args []string) target {
	pid, _ := strconv.Atoi(args[1])
	fd, _ := strconv.Atoi(args[2])
	return target{groundIn(args[0]), pid, fd, args[3], args[4], args[5]}
}

// attack is something that has to fail. It fails with an error.
type attack struct {
	name string
	try  func() error
}

// attacker runs all, and prints the name of each that succeeded.
func attacker(args []string) error {
	x := targetOf(args)
	lists := [][]attack{x.writing(), x.names(), x.reading(), x.attributes(), x.reaching()}
	if len(args) == 6 {
		lists = append(lists, x.others(), x.breakingOut())
	}
	for _, list := range lists {
		for _, a := range list {
			if a.try() == nil {
				fmt.Println("succeeded:", a.name)
			}
		}
	}
	return nil
}

func opens(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func writes(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("attacked")
	return err
}

func (x target) writing() []attack {
	file := x.outside + "/file"
	return []attack{
		{"write a file outside", func() error { return writes(file) }},
		{"make a file outside", func() error { return writes(x.outside + "/new") }},
		{"make a directory outside", func() error { return os.Mkdir(x.outside+"/dir", 0o700) }},
		{"make a link outside", func() error { return os.Symlink("/", x.outside+"/link") }},
		{"remove a file outside", func() error { return os.Remove(file) }},
		{"move a file in", func() error { return os.Rename(file, x.root+"/stolen") }},
		{"move a file out", func() error {
			return errors.Join(writes(x.root+"/gift"), os.Rename(x.root+"/gift", x.outside+"/gift"))
		}},
		{"write through a link", func() error {
			return errors.Join(os.Symlink(x.outside, x.root+"/way out"), writes(x.root+"/way out/file"))
		}},
		{
			"write through a hard link",
			func() error { return errors.Join(os.Link(file, x.root+"/twin"), writes(x.root+"/twin")) },
		},
		{
			"link a file out",
			func() error { return errors.Join(writes(x.root+"/own"), os.Link(x.root+"/own", x.outside+"/own")) },
		},
		{"truncate a file outside", func() error { return unix.Truncate(file, 0) }},
		{"truncate while opening to read", func() error { return opens(file, os.O_RDONLY|os.O_TRUNC) }},
		{"write over /proc/self/root", func() error { return writes("/proc/self/root" + file) }},
		{"write over /proc/1/root", func() error { return writes("/proc/1/root" + file) }},
		{
			"write over the root of a process outside",
			func() error { return writes(fmt.Sprintf("/proc/%d/root%s", x.pid, file)) },
		},
		{
			"write over the descriptor of a process outside",
			func() error { return writes(fmt.Sprintf("/proc/%d/fd/%d", x.pid, x.fd)) },
		},
		{"write over the descriptor of process 1", func() error { return writes(fmt.Sprintf("/proc/1/fd/%d", x.fd)) }},
		{"write over the directory of process 1", func() error { return writes("/proc/1/cwd/../outside/file") }},
		{"make a file without a name outside", func() error {
			fd, err := unix.Open(x.outside, unix.O_TMPFILE|unix.O_WRONLY, 0o600)
			_ = unix.Close(fd)
			return err
		}},
		{"make a socket outside", func() error { return unix.Mknod(x.outside+"/socket", unix.S_IFSOCK|0o600, 0) }},
		{"write how the machine runs", func() error { return opens("/proc/sys/kernel/core_pattern", os.O_WRONLY) }},
		{"write how many numbers there are", func() error { return opens("/proc/sys/kernel/pid_max", os.O_WRONLY) }},
		{"write to sysrq", func() error { return opens("/proc/sysrq-trigger", os.O_WRONLY) }},
		{"write to /sys", func() error { return opens("/sys/kernel/uevent_helper", os.O_WRONLY) }},
	}
}

// protectedNames are those that only mounts hold.
func (x target) names() []attack {
	git := x.root + "/.git"
	return []attack{
		{"name: make a hook", func() error { return writes(git + "/hooks/post-checkout") }},
		{"name: change the configuration", func() error { return writes(git + "/config") }},
		{"name: replace the configuration", func() error {
			return errors.Join(writes(git+"/config.lock"), os.Rename(git+"/config.lock", git+"/config"))
		}},
		{"name: remove the hooks", func() error { return os.RemoveAll(git + "/hooks") }},
		{"name: move the hooks", func() error { return os.Rename(git+"/hooks", git+"/hooks2") }},
		{"name: make commondir", func() error { return os.WriteFile(git+"/commondir", []byte("../evil"), 0o600) }},
		{"name: remove commondir", func() error { return os.Remove(git + "/commondir") }},
		{"name: move .git", func() error { return os.Rename(git, x.root+"/.git2") }},
		{
			"name: move .git with another name for it",
			func() error { return os.Rename(x.root+"/./sub/../.git/", x.root+"/.git2") },
		},
		{"name: exchange .git", func() error {
			return errors.Join(os.MkdirAll(x.root+"/evil", 0o700), unix.Renameat2(unix.AT_FDCWD, x.root+"/evil",
				unix.AT_FDCWD, git, unix.RENAME_EXCHANGE))
		}},
		{"name: make .claude", func() error { return writes(x.root + "/.claude/settings.json") }},
		{
			"name: replace .claude",
			func() error { return errors.Join(os.Remove(x.root+"/.claude"), os.Mkdir(x.root+"/.claude", 0o700)) },
		},
		{"name: make .mcp.json", func() error { return writes(x.root + "/.mcp.json") }},
		{
			"name: replace .mcp.json",
			func() error { return errors.Join(os.Remove(x.root+"/.mcp.json"), writes(x.root+"/.mcp.json")) },
		},
		{"name: move something over .mcp.json", func() error {
			return errors.Join(os.MkdirAll(x.root+"/evil2", 0o700), os.Rename(x.root+"/evil2", x.root+"/.mcp.json"))
		}},
		{
			"name: link the configuration",
			func() error { return errors.Join(os.Link(git+"/config", x.root+"/config"), writes(x.root+"/config")) },
		},
		{"name: change the rights of the hooks", func() error { return os.Chmod(git+"/hooks", 0o777) }},
		{"name: move the workspace", func() error { return os.Rename(x.root, x.dir+"/root2") }},
		{"name: a git directory of the workspace itself", func() error { return writes(x.root + "/refs/heads/x") }},
		{
			"name: a linked name",
			func() error { return errors.Join(os.Remove(x.root+"/.vscode"), os.Mkdir(x.root+"/.vscode", 0o700)) },
		},
		{"name: what a linked name leads to", func() error { return writes(x.root + "/shared/vscode/tasks.json") }},
	}
}

// attributes are what Landlock does not know.
func (x target) attributes() []attack {
	file := x.outside + "/file"
	opened := func(change func(fd int) error) func() error {
		return func() error {
			fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return change(fd)
		}
	}
	return []attack{
		{"attribute: rights by a descriptor", opened(func(fd int) error { return unix.Fchmod(fd, 0o777) })},
		{"attribute: rights by a name of a descriptor", opened(func(fd int) error {
			return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o777)
		})},
		{"attribute: rights by the number of a thread", opened(func(fd int) error {
			return os.Chmod(fmt.Sprintf("/proc/%d/fd/%d", unix.Gettid(), fd), 0o777)
		})},
		{"attribute: rights by a link", func() error {
			link := x.root + "/to-the-outside"
			return errors.Join(os.Symlink(file, link), os.Chmod(link, 0o777))
		}},
		{"attribute: rights by a directory", func() error {
			dir, err := unix.Open(x.outside, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(dir)
			return unix.Fchmodat(dir, "file", 0o777, 0)
		}},
		{"attribute: owner of nothing but a descriptor", opened(func(fd int) error {
			return unix.Fchownat(fd, "", os.Getuid(), os.Getgid(), unix.AT_EMPTY_PATH)
		})},
		{"attribute: times by a descriptor", opened(func(fd int) error {
			return unix.Futimes(fd, make([]unix.Timeval, 2))
		})},
		{"attribute: extended by a descriptor", opened(func(fd int) error {
			return unix.Fsetxattr(fd, "user.omniagent", []byte("x"), 0)
		})},
		{"attribute: rights", func() error { return os.Chmod(file, 0o777) }},
		{"attribute: owner", func() error { return os.Chown(file, os.Getuid(), os.Getgid()) }},
		{"attribute: times", func() error { return os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)) }},
		{"attribute: extended", func() error { return unix.Setxattr(file, "user.omniagent", []byte("x"), 0) }},
	}
}

func (x target) reaching() []attack {
	dial := func(network, address string) func() error {
		return func() error {
			c, err := net.DialTimeout(network, address, time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err
		}
	}
	socket := func(family, kind int) func() error {
		return func() error {
			fd, err := unix.Socket(family, kind, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}
	}
	return []attack{
		{"reach a port on this machine", dial("tcp", x.tcp)},
		{"send a datagram", func() error { return errors.Join(dial("udp", x.tcp)()) }},
		{"reach a socket with a name", dial("unix", x.socket)},
		{"reach an abstract socket", dial("unix", "@"+x.abstract)},
		{"send to a socket with a name from a pair", func() error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: x.socket + ".datagrams"})
		}},
		{"listen", func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				_ = l.Close()
			}
			return err
		}},
		{"a raw socket", socket(unix.AF_INET, unix.SOCK_RAW)},
		{"a packet socket", socket(unix.AF_PACKET, unix.SOCK_RAW)},
		{"a netlink socket", socket(unix.AF_NETLINK, unix.SOCK_RAW)},
		{"a vsock socket", socket(unix.AF_VSOCK, unix.SOCK_STREAM)},
	}
}

func (x target) others() []attack {
	call := func(number uintptr, args ...uintptr) func() error {
		return func() error {
			args = append(args, 0, 0, 0, 0, 0, 0)
			if r, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5]); errno != 0 {
				return errno
			} else if number == unix.SYS_IO_URING_SETUP || number == unix.SYS_USERFAULTFD {
				_ = unix.Close(int(r))
			}
			return nil
		}
	}
	var block [256]byte
	place := uintptr(unsafe.Pointer(&block[0]))
	return []attack{
		{"signal a process outside", func() error { return syscall.Kill(x.pid, 0) }},
		{"change the priority of a process outside", func() error {
			now, err := unix.Getpriority(unix.PRIO_PROCESS, x.pid) // 20 less what is set
			return errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, x.pid, 20-now))
		}},
		{"change the scheduling of a process outside", func() error {
			now, err := unix.SchedGetAttr(x.pid, 0)
			return errors.Join(err, unix.SchedSetAttr(x.pid, now, 0))
		}},
		{"change the disk priority of a process outside", call(unix.SYS_IOPRIO_SET, 1, uintptr(x.pid), 0)},
		{"open a queue outside", func() error {
			name, err := unix.BytePtrFromString(x.queue())
			if err != nil {
				return err
			}
			return call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDONLY)()
		}},
		{"trace a process outside", call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(x.pid))},
		{"trace process 1", call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1)},
		{
			"write the memory of a process outside",
			func() error { return opens(fmt.Sprintf("/proc/%d/mem", x.pid), os.O_RDWR) },
		},
		{"write the memory of process 1", func() error { return opens("/proc/1/mem", os.O_RDWR) }},
		{"take a descriptor of a process outside", func() error {
			fd, err := unix.PidfdOpen(x.pid, 0)
			if err == nil {
				_, err = unix.PidfdGetfd(fd, x.fd, 0)
			}
			return err
		}},
		{"take a descriptor of process 1", func() error {
			fd, err := unix.PidfdOpen(1, 0)
			if err == nil {
				_, err = unix.PidfdGetfd(fd, 0, 0)
			}
			return err
		}},
		{"io_uring", call(unix.SYS_IO_URING_SETUP, 4, place)},
		{"keyctl", call(unix.SYS_KEYCTL, 0, uintptr(0xfffffffd), 1)},
		{"bpf", call(unix.SYS_BPF, 0, place, 72)},
		{"userfaultfd", call(unix.SYS_USERFAULTFD, 1)},
		{"a descriptor that was not given", func() error {
			entries, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				return err
			}
			for _, entry := range entries {
				n, _ := strconv.Atoi(entry.Name())
				to, err := os.Readlink("/proc/self/fd/" + entry.Name())
				if n > 2 && err == nil && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "anon_inode:") &&
					!strings.HasPrefix(to, "/sys/fs/cgroup/") {
					fmt.Println(n, to)
					return nil
				}
			}
			return os.ErrNotExist
		}},
		{
			"make a disk",
			func() error { return unix.Mknod(x.root+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))) },
		},
		{
			"make memory",
			func() error { return unix.Mknod(x.root+"/memory", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))) },
		},
		{"open a disk", func() error {
			disks, _ := filepath.Glob("/dev/[vs]d[a-z]")
			for _, disk := range append(disks, "/dev/loop0", "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse") {
				if opens(disk, os.O_RDONLY) == nil {
					return nil
				}
			}
			return os.ErrPermission
		}},
	}
}

func (x target) breakingOut() []attack {
	inNew := func(flags uintptr) func() error {
		return func() error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
			return cmd.Run()
		}
	}
	setns := func(kind string) func() error {
		return func() error {
			fd, err := unix.Open("/proc/1/ns/"+kind, unix.O_RDONLY, 0)
			if err != nil {
				fd, err = unix.Open("/proc/self/ns/"+kind, unix.O_RDONLY, 0)
			}
			if err != nil {
				return err
			}
			return unix.Setns(fd, 0)
		}
	}
	return []attack{
		{"make a control group", func() error { return os.Mkdir("/sys/fs/cgroup/omniagent-test", 0o700) }},
		{
			"make a control group of version 2",
			func() error { return os.Mkdir("/sys/fs/cgroup/unified/omniagent-test", 0o700) },
		},
		{"make a file in /run", func() error { return writes("/run/omniagent-test") }},
		{"make a file in /dev", func() error { return writes("/dev/omniagent-test") }},
		{"mount", func() error { return unix.Mount("none", x.root, "tmpfs", 0, "") }},
		{"unmount", func() error { return unix.Unmount(x.root, unix.MNT_DETACH) }},
		{"unmount what hides", func() error { return unix.Unmount(x.secret, unix.MNT_DETACH) }},
		{"mount again to write", func() error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") }},
		{"clear an attribute", func() error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE,
				&unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}},
		{"clone a mount", func() error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", cloneTree); return err }},
		{"pivot_root", func() error { return unix.PivotRoot(x.root, x.root) }},
		{"chroot", func() error { return unix.Chroot(x.root) }},
		{"a user namespace", inNew(unix.CLONE_NEWUSER)},
		{"a mount namespace", inNew(unix.CLONE_NEWNS)},
		{"unshare", func() error { return unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) }},
		{"enter a user namespace", setns("user")},
		{"enter a mount namespace", setns("mnt")},
		{"enter a network namespace", setns("net")},
		{"get a capability", func() error {
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var have [2]unix.CapUserData
			if unix.Capget(&header, &have[0]) == nil && have[0].Permitted != 0 {
				return nil
			}
			have[0] = unix.CapUserData{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}
			return unix.Capset(&header, &have[0])
		}},
		{"get privileges from a program", func() error {
			if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && v == 1 {
				return os.ErrPermission
			}
			return nil
		}},
		{"become somebody else", func() error {
			if os.Getuid() == 0 {
				_, _, errno := syscall.RawSyscall(unix.SYS_SETUID, 1, 0, 0)
				if errno != 0 {
					return errno
				}
				return nil
			}
			return syscall.Setuid(0)
		}},
	}
}

// TestAttacks runs all attacks behind the walls of each tier.
func TestAttacks(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) {
			g := newGround(t)
			x := prepare(t, g)
			w := g.walls(t, tier, func(p *Policy) {
				p.Hidden = append(p.Hidden, g.dir+"/hidden file")
				p.Protected = append(p.Protected, ".vscode")
			})
			r := g.run(t, w, append([]string{g.attacker}, x.args()...)...)
			if r.ending.ExitCode != 0 {
				t.Errorf("%+v\n%s", r.ending, r.out)
			}
			for line := range strings.Lines(r.out) {
				t.Error(line)
			}
			for path, want := range map[string]string{
				"/outside/file": "outside", "/secret/key": "secret",
				"/hidden file": "hidden",
			} {
				text, err := os.ReadFile(g.dir + path)
				if err != nil || string(text) != want {
					t.Errorf("%s: %q %v", path, text, err)
				}
			}
			if list, _ := os.ReadDir(g.outside); len(list) != 1 {
				t.Errorf("outside: %v", list)
			}
			must(t, w.Close())
			for _, gone := range []string{
				".claude", ".mcp.json", "refs", ".git/commondir",
				".git/hooks/post-checkout",
			} {
				if exists(filepath.Join(g.root, gone)) {
					t.Errorf("%s is there", gone)
				}
			}
			if list, _ := filepath.Glob(g.state + "/*"); len(list) > 0 {
				t.Errorf("on record: %v", list)
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestAttacksWork shows that the attacks are attacks: without walls most succeed. Those that would harm this machine
// are not tried.
func TestAttacksWork(t *testing.T) {
	g := newGround(t)
	x := prepare(t, g)
	out, err := exec.Command(g.attacker, append(x.args(), "harmless")...).CombinedOutput()
	must(t, err)
	count := strings.Count(string(out), "succeeded: ")
	t.Logf("%d succeeded", count)
	if least := 45; os.Geteuid() == 0 && count < least {
		t.Errorf("%d succeeded, fewer than %d:\n%s", count, least, out)
	}
}

func prepare(t *testing.T, g ground) target {
	t.Helper()
	g.repository(t)
	must(t, os.MkdirAll(g.root+"/shared/vscode", 0o700))
	must(t, os.Symlink("shared/vscode", g.root+"/.vscode"))
	must(t, os.WriteFile(g.dir+"/hidden file", []byte("hidden"), 0o600))
	if os.Mkdir(g.runtime(), 0o700) == nil {
		t.Cleanup(func() { must(t, os.RemoveAll(g.runtime())) })
		must(t, os.WriteFile(g.runtime()+"/login", []byte("login"), 0o600))
	}
	queue, err := unix.BytePtrFromString(g.queue())
	must(t, err)
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(queue)), unix.O_RDONLY|unix.O_CREAT, 0o600,
		0, 0, 0)
	if errno == 0 { // the kernel has them
		t.Cleanup(func() {
			_, _, errno := unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(queue)), 0, 0)
			if err := unix.Close(int(fd)); err != nil || errno != 0 {
				t.Error(err, errno)
			}
		})
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		must(t, os.WriteFile(g.ticket(dir), []byte("ticket"), 0o600))
		t.Cleanup(func() { must(t, os.Remove(g.ticket(dir))) })
	}
	program, err := os.ReadFile("/bin/true")
	must(t, err)
	must(t, hermetic.WriteProgram(g.secret+"/program", program, 0o700))
	file, err := os.OpenFile(g.outside+"/file", os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	named, err := net.Listen("unix", g.dir+"/socket")
	must(t, err)
	datagrams, err := net.ListenPacket("unixgram", g.dir+"/socket.datagrams")
	must(t, err)
	name := "omniagent-test-" + filepath.Base(g.dir)
	abstract, err := net.Listen("unix", "@"+name)
	must(t, err)
	t.Cleanup(func() { _ = errors.Join(tcp.Close(), named.Close(), abstract.Close(), datagrams.Close()) })
	return target{g, os.Getpid(), int(file.Fd()), tcp.Addr().String(), g.dir + "/socket", name}
}
