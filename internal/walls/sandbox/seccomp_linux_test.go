//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// roleVariable says to a copy of the test binary that it is behind the filter, and as whom: it runs the same test, from
// the other side.
const roleVariable = "SANDBOX_TEST_ROLE"

// asRole starts this test again in a child with that role and returns how it ended.
func asRole(t *testing.T, role string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"-test.run=^" + t.Name() + "$", "-test.v=false", "--"},
		args...)...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func roleArgs() []string {
	for i, a := range os.Args {
		if a == "--" {
			return os.Args[i+1:]
		}
	}
	return nil
}

// leave ends a role; a role must not go on as a test.
func leave(err error) {
	if err != nil {
		fmt.Println(err)
		syscall.Exit(3)
	}
	syscall.Exit(0)
}

// lower makes this thread ordinary: "root" keeps all, "plain" has no capability any more, "nobody" is another user.
func lower(role string) error {
	runtime.LockOSThread()
	if strings.HasPrefix(role, "nobody") && os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(65534, 65534, 65534),
			syscall.Setresuid(65534, 65534, 65534)); err != nil {
			return err
		}
	}
	if strings.HasPrefix(role, "plain") && os.Getuid() == 0 {
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				return err
			}
		}
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		return unix.Capset(&header, &none[0])
	}
	return nil
}

// users are those that a test can be: root stands for itself only where the test is root.
func users() []string {
	if os.Getuid() == 0 {
		return []string{"root", "plain", "nobody"}
	}
	return []string{"plain"}
}

type attempt struct {
	name string
	call uintptr
	args [6]uintptr
	want syscall.Errno
}

// attempts are calls with arguments that no kernel takes, in case they are not refused: none of them would do anything.
func attempts(inet bool) []attempt {
	const bad = ^uintptr(0)
	nothing := [6]uintptr{bad, bad, bad, bad, bad, bad}
	var list []attempt
	// said once more: a call that is forgotten there must not be forgotten here
	for name, n := range map[string]uintptr{
		"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV,
		"process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
		"process_madvise":   unix.SYS_PROCESS_MADVISE, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "kcmp": unix.SYS_KCMP,
		"keyctl":  unix.SYS_KEYCTL,
		"add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY, "bpf": unix.SYS_BPF,
		"userfaultfd":     unix.SYS_USERFAULTFD,
		"perf_event_open": unix.SYS_PERF_EVENT_OPEN, "fanotify_init": unix.SYS_FANOTIFY_INIT,
		"lookup_dcookie": unix.SYS_LOOKUP_DCOOKIE,
		"nfsservctl":     unix.SYS_NFSSERVCTL, "unshare": unix.SYS_UNSHARE, "setns": unix.SYS_SETNS,
		"chroot":     unix.SYS_CHROOT,
		"pivot_root": unix.SYS_PIVOT_ROOT, "mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2,
		"move_mount": unix.SYS_MOVE_MOUNT,
		"open_tree":  unix.SYS_OPEN_TREE, "open_tree_attr": unix.SYS_OPEN_TREE_ATTR, "fsopen": unix.SYS_FSOPEN,
		"fsmount":  unix.SYS_FSMOUNT,
		"fsconfig": unix.SYS_FSCONFIG, "fspick": unix.SYS_FSPICK, "mount_setattr": unix.SYS_MOUNT_SETATTR,
		"open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT,
		"swapon":  unix.SYS_SWAPON,
		"swapoff": unix.SYS_SWAPOFF, "quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD,
		"acct":    unix.SYS_ACCT,
		"vhangup": unix.SYS_VHANGUP, "syslog": unix.SYS_SYSLOG, "kexec_load": unix.SYS_KEXEC_LOAD,
		"kexec_file_load": unix.SYS_KEXEC_FILE_LOAD,
		"init_module":     unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE,
		"delete_module": unix.SYS_DELETE_MODULE,
		"reboot":        unix.SYS_REBOOT, "settimeofday": unix.SYS_SETTIMEOFDAY, "adjtimex": unix.SYS_ADJTIMEX,
		"clock_settime": unix.SYS_CLOCK_SETTIME,
		"clock_adjtime": unix.SYS_CLOCK_ADJTIME, "sethostname": unix.SYS_SETHOSTNAME,
		"setdomainname": unix.SYS_SETDOMAINNAME,
	} {
		list = append(list, attempt{name, n, nothing, unix.EPERM})
	}
	if runtime.GOARCH == "amd64" {
		for _, n := range []uintptr{172, 173, 174, 177, 178, 134, 156} { // iopl, ioperm and what old kernels had
			list = append(list, attempt{fmt.Sprint("call ", n), n, nothing, unix.EPERM})
		}
	}
	for _, n := range []uintptr{
		unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
		unix.SYS_IO_URING_REGISTER, unix.SYS_RSEQ_SLICE_YIELD + 1, 2000, 1<<30 - 1,
	} {
		list = append(list, attempt{fmt.Sprint("call ", n), n, nothing, unix.ENOSYS})
	}
	add := func(name string, want syscall.Errno, call uintptr, args ...uintptr) {
		a := attempt{name: name, call: call, want: want}
		copy(a.args[:], args)
		list = append(list, a)
	}
	for family := uintptr(0); family < 64; family++ {
		want := unix.EPERM
		if inet && (family == unix.AF_INET || family == unix.AF_INET6) {
			want = 0
		}
		add(fmt.Sprint("socket of family ", family), want, unix.SYS_SOCKET, family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC)
		add(fmt.Sprint("datagrams of family ", family), want, unix.SYS_SOCKET, family,
			unix.SOCK_DGRAM|unix.SOCK_NONBLOCK)
		for _, kind := range []uintptr{
			unix.SOCK_RAW, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.SOCK_PACKET,
			unix.SOCK_SEQPACKET, unix.SOCK_RDM, unix.SOCK_DCCP, 0,
		} {
			add(fmt.Sprintf("socket of family %d and type %#x", family, kind), unix.EPERM, unix.SYS_SOCKET, family,
				kind, 1)
		}
		if family != unix.AF_UNIX {
			add(fmt.Sprint("pair of family ", family), unix.EPERM, unix.SYS_SOCKETPAIR, family, unix.SOCK_STREAM, 0,
				bad)
		}
	}
	// What the kernel does not look at must not hide the rest from the filter.
	add("unix socket, bits above", unix.EPERM, unix.SYS_SOCKET, unix.AF_UNIX|1<<32, unix.SOCK_STREAM)
	add("raw socket, bits above", unix.EPERM, unix.SYS_SOCKET, unix.AF_INET|1<<40, unix.SOCK_RAW|1<<33, 1)
	add("pair of datagrams", unix.EPERM, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM, 0, bad)
	add("raw pair", unix.EPERM, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0, bad)
	add("pair of streams", unix.EFAULT, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0, bad)
	add("pair of packets", unix.EFAULT, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, bad)
	for _, request := range []uintptr{
		unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCSTI | 1<<32,
		0x40086602, 0x401c5820, 0x40087602, 0x40806685, 0x800c6613, 0x4008941a, 0x5000940e, 0x40186f04, 0x40047211,
	} {
		add(fmt.Sprintf("ioctl %#x", request), unix.EPERM, unix.SYS_IOCTL, bad, request, bad)
	}
	add("another ioctl", unix.EBADF, unix.SYS_IOCTL, bad, unix.TCGETS, bad)
	for _, request := range []uintptr{0x80086601, unix.FICLONE, unix.FIDEDUPERANGE, 0xc020660b} {
		add(fmt.Sprintf("ioctl %#x that asks", request), unix.EBADF, unix.SYS_IOCTL, bad, request, bad)
	}
	for _, space := range []uintptr{
		unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC,
		unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET,
	} {
		// which no kernel takes without CLONE_VM
		add(fmt.Sprintf("clone with %#x", space), unix.EPERM, unix.SYS_CLONE, space|unix.CLONE_THREAD)
	}
	add("clone", unix.EINVAL, unix.SYS_CLONE, unix.CLONE_THREAD)
	for _, p := range []uintptr{0x0400000, 0x0100000, 0x0200000, 1, 0x0400000 | 1<<32} {
		add(fmt.Sprintf("personality %#x", p), unix.EPERM, unix.SYS_PERSONALITY, p)
	}
	for _, p := range []uintptr{0xffffffff, 0x0040000, 0x0020000, 8, 0} {
		add(fmt.Sprintf("personality %#x", p), 0, unix.SYS_PERSONALITY, p)
	}
	add("limits of a process", unix.EPERM, unix.SYS_PRLIMIT64, 1, unix.RLIMIT_CPU)
	add("limits of its own", 0, unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CPU)
	add("getppid", 0, unix.SYS_GETPPID)
	add("landlock", unix.EINVAL, unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, bad)
	add("seccomp", unix.EINVAL, unix.SYS_SECCOMP, bad)
	return list
}

// TestRefusedCalls makes each call for real. As root with all capabilities the kernel itself would answer most of them
// otherwise.
func TestRefusedCalls(t *testing.T) {
	if role := os.Getenv(roleVariable); role != "" {
		inet := strings.HasSuffix(role, "+inet")
		leave(errors.Join(lower(role), install(systemCalls(Namespaces, inet, holdsNothing)), refusedCalls(inet)))
	}
	for _, user := range users() {
		for _, role := range []string{user, user + "+inet"} {
			if out, err := asRole(t, role); err != nil {
				t.Errorf("%s: %v\n%s", role, err, out)
			}
		}
	}
}

func refusedCalls(inet bool) error {
	var wrong []error
	for _, a := range attempts(inet) {
		r, _, errno := unix.RawSyscall6(a.call, a.args[0], a.args[1], a.args[2], a.args[3], a.args[4], a.args[5])
		if errno != a.want && !(a.call == unix.SYS_LANDLOCK_CREATE_RULESET && errno != unix.EPERM) {
			wrong = append(wrong, fmt.Errorf("%s: %v, want %v", a.name, errno, a.want))
		}
		if a.call == unix.SYS_SOCKET && errno == 0 {
			unix.Close(int(r))
		}
	}
	return errors.Join(wrong...)
}

// TestOtherTasks: where processes outside have numbers, a program changes the scheduling of itself only. In namespaces
// that of what it started, too.
func TestOtherTasks(t *testing.T) {
	const bad = ^uintptr(0)
	if role := os.Getenv(roleVariable); role != "" {
		tier, missing, queue := Landlock, unix.EPERM, unix.EPERM
		if strings.HasSuffix(role, "namespaces") {
			tier, missing, queue = Namespaces, unix.ESRCH, unix.EFAULT
		}
		err := errors.Join(lower(role), install(systemCalls(tier, true, holdsNothing)))
		for _, a := range []attempt{
			{"setpriority of its own", unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_PROCESS, 0, 19}, 0},
			{"setpriority of another", unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_PROCESS, 1 << 30, 19}, missing},
			{"setpriority of a group", unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_PGRP, 1 << 30, 19}, missing},
			{"setpriority of a user", unix.SYS_SETPRIORITY, [6]uintptr{unix.PRIO_USER, 1 << 30, 19}, missing},
			{"setpriority, bits above", unix.SYS_SETPRIORITY, [6]uintptr{1 << 32, 1<<32 | 1<<30, 19}, missing},
			{"setscheduler of its own", unix.SYS_SCHED_SETSCHEDULER, [6]uintptr{0, 0, bad}, unix.EFAULT},
			{"setparam of its own", unix.SYS_SCHED_SETPARAM, [6]uintptr{0, bad}, unix.EFAULT},
			{"setattr of its own", unix.SYS_SCHED_SETATTR, [6]uintptr{0, bad}, unix.EFAULT},
			{"ioprio_set of its own", unix.SYS_IOPRIO_SET, [6]uintptr{1, 0, 0}, 0},
			{"ioprio_set of another", unix.SYS_IOPRIO_SET, [6]uintptr{1, 1 << 30, 0}, missing},
			{"ioprio_set of a group", unix.SYS_IOPRIO_SET, [6]uintptr{2, 1 << 30, 0}, missing},
			{"mq_open", unix.SYS_MQ_OPEN, [6]uintptr{bad}, queue},
			{"mq_unlink", unix.SYS_MQ_UNLINK, [6]uintptr{bad}, queue},
		} {
			if _, _, errno := unix.RawSyscall(a.call, a.args[0], a.args[1], a.args[2]); errno != a.want {
				err = errors.Join(err, fmt.Errorf("%s: %w, want %w", a.name, errno, a.want))
			}
		}
		leave(err)
	}
	for _, user := range users() {
		for _, role := range []string{user + "+landlock", user + "+namespaces"} {
			if out, err := asRole(t, role); err != nil {
				t.Errorf("%s: %v\n%s", role, err, out)
			}
		}
	}
}

// TestPairsReachNobody shows why a pair of datagram sockets is refused: without the filter it speaks to a server that
// it was never given.
func TestPairsReachNobody(t *testing.T) {
	if role := os.Getenv(roleVariable); role != "" {
		runtime.LockOSThread()
		if role == "filtered" {
			if err := install(systemCalls(Namespaces, true, holdsNothing)); err != nil {
				leave(err)
			}
		}
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err == nil {
			err = unix.Sendto(pair[0], []byte("out"), 0, &unix.SockaddrUnix{Name: roleArgs()[0]})
		}
		leave(err)
	}
	name := filepath.Join(t.TempDir(), "s")
	server, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server)
	if err := unix.Bind(server, &unix.SockaddrUnix{Name: name}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16)
	if out, err := asRole(t, "free", name); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if n, err := unix.Read(server, got); err != nil || string(got[:n]) != "out" {
		t.Errorf("the danger is not there: %q %v", got[:max(n, 0)], err)
	}
	if out, err := asRole(t, "filtered", name); err == nil || !strings.Contains(out, "operation not permitted") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := unix.Read(server, got); err != unix.EAGAIN {
		t.Errorf("it spoke: %v", err)
	}
}

// TestOtherMachines: what would mean other calls ends the program. On amd64 these are programs for i386, their way into
// the kernel taken by a program for 64 bits, and the numbers of x32.
func TestOtherMachines(t *testing.T) {
	if role := os.Getenv(roleVariable); role != "" {
		runtime.LockOSThread()
		if role == "filtered" {
			if err := install(systemCalls(Namespaces, true, holdsNothing)); err != nil {
				leave(err)
			}
		}
		leave(syscall.Exec(roleArgs()[0], roleArgs(), nil))
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the programs of this test are for amd64, this is", runtime.GOARCH)
	}
	exit42by80 := []byte{0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80} // mov eax, 1; mov ebx, 42; int 0x80
	// mov eax, NUMBER; mov edi, 42; syscall; and once more with 60, which ends it whatever the first one was
	exit42by64 := func(number uint32) []byte {
		code := append([]byte{0xb8}, binary.LittleEndian.AppendUint32(nil, number)...)
		code = append(code, 0xbf, 42, 0, 0, 0, 0x0f, 0x05)
		return append(code, 0xb8, 60, 0, 0, 0, 0xbf, 42, 0, 0, 0, 0x0f, 0x05)
	}
	for name, c := range map[string]struct {
		program []byte
		killed  bool
	}{
		"i386":             {elf(t, false, exit42by80), true},
		"i386 from amd64":  {elf(t, true, exit42by80), true},
		"x32":              {elf(t, true, exit42by64(1<<30|39)), true},
		"-1":               {elf(t, true, exit42by64(1<<32-1)), true},
		"amd64":            {elf(t, true, exit42by64(39)), false},
		"amd64, not there": {elf(t, true, exit42by64(1<<30-1)), false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "program")
			if err := hermetic.WriteProgram(file, c.program, 0o700); err != nil {
				t.Fatal(err)
			}
			status := func(role string) syscall.WaitStatus {
				cmd := exec.Command("/proc/self/exe", "-test.run=^TestOtherMachines$", "--", file)
				cmd.Env = append(os.Environ(), roleVariable+"="+role)
				err := cmd.Run()
				if cmd.ProcessState == nil {
					t.Fatal(err)
				}
				return cmd.ProcessState.Sys().(syscall.WaitStatus)
			}
			if free := status("free"); !free.Exited() || free.ExitStatus() != 42 {
				t.Skipf("this kernel does not run it even without a filter: %#x", free)
			}
			got := status("filtered")
			if c.killed && (!got.Signaled() || got.Signal() != unix.SIGSYS) || !c.killed &&
				(!got.Exited() || got.ExitStatus() != 42) {
				t.Errorf("ended with %#x", got)
			}
		})
	}
}

// TestAgentIsFilteredEverywhere: a program for 32 bits, or with other numbers, reaches no more of a person than one for
// 64 bits. Behind the filter of an agent it runs.
func TestAgentIsFilteredEverywhere(t *testing.T) {
	number := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	machine, _, _ := oldLooks()
	const refused, missing = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	for _, held := range []veiling{veilsNothing, veilsOpening, veilsAll} {
		for n := range uint32(1000) {
			if got, _ := run(t, agentFilter(held, false), machine, n|1<<30); got != missing {
				t.Errorf("call %d of x32: %#x", n, got)
			}
			if got, _ := run(t, agentFilter(held, false), 1, n); got != missing {
				t.Errorf("call %d of a machine that nobody knows: %#x", n, got)
			}
		}
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the programs of this test are for amd64, this is", runtime.GOARCH)
	}
	for call, want := range map[[2]uint32]uint32{
		{286}: refused, {287}: refused, {288}: refused, {54, unix.TIOCSTI}: refused, {54, unix.TIOCLINUX}: refused,
		{54, unix.TCGETS}: unix.SECCOMP_RET_ALLOW, {1}: unix.SECCOMP_RET_ALLOW, {250}: unix.SECCOMP_RET_ALLOW,
		{425}: missing,
	} {
		got, _ := run(t, agentFilter(veilsAll, false), unix.AUDIT_ARCH_I386, call[0], 0, uint64(call[1]))
		if got != want {
			t.Errorf("call %d of i386: %#x, want %#x", call, got, want)
		}
	}
	// Each makes a call with the arguments -1, ARGUMENT and 0, and ends with the error as its exit code.
	by80 := func(call, argument uint32) []byte { // mov eax, ebx, ecx, edx; int 0x80; neg eax; mov ebx, eax; exit
		return slices.Concat([]byte{0xb8}, number(call), []byte{0xbb, 255, 255, 255, 255, 0xb9}, number(argument),
			[]byte{0xba, 0, 0, 0, 0, 0xcd, 0x80, 0xf7, 0xd8, 0x89, 0xc3, 0xb8, 1, 0, 0, 0, 0xcd, 0x80})
	}
	by64 := func(call, argument uint32) []byte { // mov eax, edi, esi, edx; syscall; neg eax; mov edi, eax; exit
		return slices.Concat([]byte{0xb8}, number(call), []byte{0xbf, 255, 255, 255, 255, 0xbe}, number(argument),
			[]byte{0xba, 0, 0, 0, 0, 0x0f, 0x05, 0xf7, 0xd8, 0x89, 0xc7, 0xb8, 60, 0, 0, 0, 0x0f, 0x05})
	}
	a := newAgentHome(t, nil)
	for name, c := range map[string]struct {
		program []byte
		want    syscall.Errno
	}{
		"keyctl":                 {elf(t, true, by64(unix.SYS_KEYCTL, 0)), unix.EPERM},
		"keyctl of x32":          {elf(t, true, by64(1<<30|unix.SYS_KEYCTL, 0)), unix.ENOSYS},
		"TIOCSTI of x32":         {elf(t, true, by64(1<<30|514, unix.TIOCSTI)), unix.ENOSYS},
		"add_key of i386":        {elf(t, false, by80(286, 0)), unix.EPERM},
		"request_key of i386":    {elf(t, false, by80(287, 0)), unix.EPERM},
		"keyctl of i386":         {elf(t, false, by80(288, 0)), unix.EPERM},
		"TIOCSTI of i386":        {elf(t, false, by80(54, unix.TIOCSTI)), unix.EPERM},
		"TIOCLINUX of i386":      {elf(t, false, by80(54, unix.TIOCLINUX)), unix.EPERM},
		"TCGETS of i386":         {elf(t, false, by80(54, unix.TCGETS)), unix.EBADF},
		"io_uring_setup of i386": {elf(t, false, by80(425, 0)), unix.ENOSYS},
		"keyctl by the old way":  {elf(t, true, by80(288, 0)), unix.EPERM},
		"TIOCSTI by the old way": {elf(t, true, by80(54, unix.TIOCSTI)), unix.EPERM},
	} {
		file := a.home + "/tools/program"
		must(t, hermetic.WriteProgram(file, c.program, 0o700))
		var ended *exec.ExitError
		if err := exec.Command(file).Run(); !errors.As(err, &ended) || !ended.Exited() {
			t.Logf("%s: this kernel does not run it even without a filter: %v", name, err)
			continue
		}
		if got := a.says(t, "~/tools/program; echo $?"); got != fmt.Sprint(int(c.want)) {
			t.Errorf("%s: %s, want %d", name, got, c.want)
		}
	}
}

// elf is a program of one page, for 64 bits or for 32.
func elf(t *testing.T, wide bool, code []byte) []byte {
	t.Helper()
	const base = 0x400000
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	class, machine := byte(1), uint16(3)
	headers, word := uint16(52+32), func(v uint32) any { return v }
	if wide {
		class, machine = 2, 62
		headers, word = 64+56, func(v uint32) any { return uint64(v) }
	}
	size := word(uint32(int(headers) + len(code)))
	put([16]byte{0x7f, 'E', 'L', 'F', class, 1, 1}, uint16(2), machine, uint32(1), word(base+uint32(headers)))
	if wide {
		put(word(64), word(0), uint32(0), uint16(64), uint16(56), uint16(1), [6]byte{})
		put(uint32(1), uint32(5), word(0), word(base), word(base), size, size, word(4096))
	} else {
		put(word(52), word(0), uint32(0), uint16(52), uint16(32), uint16(1), [6]byte{})
		put(uint32(1), word(0), word(base), word(base), size, size, uint32(5), word(4096))
	}
	b.Write(code)
	return b.Bytes()
}

func TestUnknownMachine(t *testing.T) {
	for _, filter := range [][]unix.SockFilter{nil, {}} {
		if err := install(filter); !errors.Is(err, fault.Blocked) || !strings.Contains(err.Error(), runtime.GOARCH) {
			t.Errorf("%v", err)
		}
	}
}

// run is the kernel's reading of a filter, as far as ours go: what it decides and how many steps that takes.
func run(t *testing.T, filter []unix.SockFilter, machine, number uint32, args ...uint64) (verdict uint32, steps int) {
	t.Helper()
	data := make([]byte, 64)
	binary.LittleEndian.PutUint32(data, number)
	binary.LittleEndian.PutUint32(data[4:], machine)
	for i, a := range args {
		binary.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var a uint32
	for at := 0; ; at++ {
		steps++
		i := filter[at]
		hit := false
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			a = binary.LittleEndian.Uint32(data[i.K:])
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= i.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return i.K, steps
		case unix.BPF_JMP | unix.BPF_JA:
			at += int(i.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			hit = a == i.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			hit = a >= i.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			hit = a&i.K != 0
		default:
			t.Fatalf("instruction %#x", i.Code)
		}
		if hit {
			at += int(i.Jt)
		} else {
			at += int(i.Jf)
		}
	}
}

// TestEveryNumber holds the program against the table it was made of, and counts.
func TestEveryNumber(t *testing.T) {
	for _, inet := range []bool{false, true} {
		filter := systemCalls(Namespaces, inet, holdsNothing)
		machine, last, calls := bpfCalls(inet)
		if machine == 0 {
			t.Skip("no filter is known for", runtime.GOARCH)
		}
		most, sum := 0, 0
		for n := uint32(0); n < last+100; n++ {
			got, steps := run(t, filter, machine, n)
			most, sum = max(most, steps), sum+steps
			want := uint32(unix.SECCOMP_RET_ALLOW)
			if code, listed := calls[n]; listed {
				want, _ = run(t, code, machine, n)
			} else if n > last {
				want = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
			}
			if got != want {
				t.Errorf("call %d: %#x, want %#x", n, got, want)
			}
			if other, _ := run(t, filter, machine+1, n); other != unix.SECCOMP_RET_KILL_PROCESS {
				t.Errorf("call %d of another machine: %#x", n, other)
			}
			if x32, _ := run(t, filter, machine, n|1<<30); x32 != unix.SECCOMP_RET_KILL_PROCESS {
				t.Errorf("call %d of x32: %#x", n, x32)
			}
		}
		if most > 26 || len(filter) > 400 {
			t.Errorf("%d instructions, %d steps", len(filter), most)
		}
		t.Logf("inet %v: %d instructions, at most %d steps for a call, %.1f in the middle", inet, len(filter), most,
			float64(sum)/float64(last+100))
	}
}

// TestFarJumps: what a conditional jump cannot pass over is ignored all the same.
func TestFarJumps(t *testing.T) {
	long := func(ends uint32) []unix.SockFilter {
		var code []unix.SockFilter
		for range 300 {
			code = append(code, bpfLoad(bpfNumber))
		}
		return append(code, bpfReturn(ends))
	}
	filter := append([]unix.SockFilter{bpfLoad(bpfNumber)}, bpfIf(unix.BPF_JEQ, 7, long(1), long(2))...)
	for number, want := range map[uint32]uint32{7: 1, 8: 2} {
		if got, _ := run(t, filter, 0, number); got != want {
			t.Errorf("%d: %d", number, got)
		}
	}
}
