package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
)

// Words that the caller sends to the stage of an agent, which repeats each one when it is done.
const (
	wordWrite = "write" // the workspace may be changed
	wordRead  = "read"  // it may not
)

// agentStage builds the walls around an agent, starts it, and returns its exit code. It stays process 1 of the
// namespace.
func agentStage(o *order, signals chan os.Signal) int {
	workspace, err := mountAgent(o)
	if err != nil {
		return fail(err)
	}
	obey := workspace.keep()
	if o.ReadOnly {
		if err := workspace.set(false); err != nil {
			return fail(fmt.Errorf("the workspace cannot be made read-only: %w", err))
		}
	}
	env := o.marked()
	if err := giveUpCapabilities(); err != nil {
		return fail(fmt.Errorf("the privileges cannot be given up: %w", err))
	}
	// Starting the agent blocks this whole process, so the child must make no call that hideFiles holds.
	if err := unix.Chdir(o.Dir); err != nil {
		return fail(fmt.Errorf("the directory of the agent: %w", err))
	}
	veiled, err := hideFiles(o)
	if err != nil {
		return fail(fmt.Errorf("the filter of system calls: %w", err))
	}
	if err := lowerCapabilities(); err != nil {
		return fail(fmt.Errorf("the privileges cannot be given up: %w", err))
	}
	if err := o.tryAgent(); err != nil {
		return fail(err)
	}
	if o.Trial {
		tell("trial")
		return 0
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail(fmt.Errorf("descriptors could stay open: %w", err))
	}
	return watch(signals, func() (int, error) {
		child, err := syscall.ForkExec(o.Program, os.Args[2:],
			&syscall.ProcAttr{Env: env, Files: []uintptr{0, 1, 2}})
		veiled.first.Store(int64(child))
		return child, err
	}, o.Program, obey)
}

// writables are the mounts of what an agent may change.
type writables []int

// set makes all of them writable, or all read-only. It fails while a file there is open for writing.
func (w writables) set(on bool) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if on {
		attr = unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	}
	for _, fd := range w {
		err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
		if errors.Is(err, unix.EBUSY) {
			return errors.New("a file there is open for writing")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep returns a function that passes a word of the caller to a thread with the privileges of the stage.
func (w writables) keep() (obey func(word string)) {
	words, begun := make(chan string), make(chan bool)
	go func() {
		runtime.LockOSThread()
		close(begun)
		for word := range words {
			if err := w.set(word == wordWrite); err != nil {
				tell("refused " + err.Error())
				continue
			}
			tell(word)
		}
	}()
	<-begun
	return func(word string) { words <- word }
}

// mountAgent makes the mounts for an agent, and returns those of the workspace.
func mountAgent(o *order) (workspace writables, err error) {
	if err := overrides(false); err != nil {
		return nil, err
	}
	if o.Dir, err = os.Getwd(); err != nil {
		return nil, fmt.Errorf("the directory of the agent: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	list, err := copyWritable(o)
	if err != nil {
		return nil, err
	}
	changes := append([]string{o.Root}, o.Write...)
	for _, m := range list {
		if slices.Contains(changes, m.path) {
			fd, err := unix.FcntlInt(uintptr(m.fd), unix.F_DUPFD_CLOEXEC, 0)
			if err != nil {
				return nil, err
			}
			workspace = append(workspace, fd)
		}
	}
	more, links, err := o.agentMounts()
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	if err := mountOwn(o, mountAgentProc); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, parentsFirst)
	if err := putAll(list); err != nil {
		return nil, err
	}
	for link, to := range links {
		if os.MkdirAll(filepath.Dir(link), 0o700) == nil {
			_ = os.Symlink(to, link)
		}
	}
	if err := hide(o.Hidden); err != nil {
		return nil, err
	}
	if err := unix.Access(o.Dir, unix.X_OK); err != nil {
		return nil, fmt.Errorf("%s cannot be the directory of an agent: %w", o.Dir, err)
	}
	return workspace, nil
}

// agentMounts copies the mounts of what an agent has besides the workspace: its own directories, and what it reads in
// covered directories. links are symbolic links to create where nothing exists.
func (o *order) agentMounts() (list []placed, links map[string]string, err error) {
	links = map[string]string{}
	for _, dir := range o.Mine {
		fd, err := take(dir)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", dir, err)
		}
		list = append(list, placed{dir, fd, unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, false})
	}
	own := slices.Concat([]string{o.Root, o.Temp}, o.Write, o.Mine)
	for _, path := range o.needed() {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			links[path] = real // which is on the list, too, if it has to be
			continue
		}
		if first(own, path) != "" {
			continue
		}
		fd, err := take(path)
		if err != nil {
			continue
		}
		attrs := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY)
		list = append(list, placed{path, fd, attrs, true})
	}
	return list, links, nil
}

// mountAgentProc mounts a /proc that shows only the processes of the namespace. It stays writable, because a program
// that makes a namespace writes there and could not mount another /proc. The kernel takes root outside for root here,
// so for root only the directories of processes stay writable. Root also owns the control groups, which a program can
// mount in a cgroup namespace, so root gets no such namespace. Other users do, because the sandboxes of agents ask for
// one.
func mountAgentProc() error {
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil || os.Geteuid() != 0 {
		return err // the old /proc would lead outside through /proc/PID/root
	}
	err = os.WriteFile("/proc/sys/user/max_cgroup_namespaces", []byte("0"), 0)
	if err != nil && !errors.Is(err, unix.ENOENT) { // a kernel without control groups
		return err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.Trim(name, "0123456789") == "" || entry.Type()&os.ModeSymlink != 0 {
			continue
		}
		if err := makeReadOnly("/proc/" + name); err != nil && !unreachable(err) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// mountRun mounts an empty /run, without sockets of services and logins, and puts back what stayInRun returns.
func mountRun(o *order) error {
	path, _ := process.Value(o.Env, "PATH")
	stay, links := stayInRun(path)
	var shown []placed
	for _, path := range stay {
		if fd, err := take(path); err == nil {
			shown = append(shown, placed{path, fd, unix.MOUNT_ATTR_RDONLY, true})
		}
	}
	for _, dir := range ownRunDirs() {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=16m"); err != nil {
			return err
		}
	}
	for link, to := range links {
		if os.MkdirAll(filepath.Dir(link), 0o755) == nil {
			_ = os.Symlink(to, link)
		}
	}
	return putAll(shown)
}

// ownRunDirs are those of runDirs that are directories: one is usually a link to the other.
func ownRunDirs() []string {
	return slices.DeleteFunc(runDirs(), func(dir string) bool {
		info, err := os.Lstat(dir)
		return err != nil || !info.IsDir()
	})
}

// tryAgent tries what must not work, on the thread that starts the agent. It fails if one attempt succeeds.
func (o *order) tryAgent() error {
	allowed := slices.Concat([]string{o.Root, o.Temp, "/tmp", "/var/tmp", "/run", "/var/run", "/dev"}, o.Write, o.Mine,
		o.Homes)
	for _, dir := range []string{"/", "/etc", "/usr", "/var/lib", filepath.Dir(o.Root)} {
		if first(allowed, dir) != "" {
			continue
		}
		if err := unix.Access(dir, unix.W_OK); err == nil {
			return fmt.Errorf("a write to %s was not refused", dir)
		}
	}
	if o.ReadOnly {
		if err := unix.Access(o.Root, unix.W_OK); err == nil {
			return fmt.Errorf("a write to %s was not refused", o.Root)
		}
	}
	open := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if err := refused("a writable root", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &open)); err != nil {
		return err
	}
	if err := refused("input put into a terminal", unix.IoctlSetInt(-1, unix.TIOCSTI, 0)); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		_, err := syscall.ForkExec("/", nil, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWCGROUP,
		}})
		if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("a namespace of control groups was not refused: %s", outcome(err))
		}
	}
	for _, home := range outermost(o.Homes) {
		var s unix.Statfs_t
		if err := unix.Statfs(home, &s); err != nil || s.Type != unix.TMPFS_MAGIC && home != o.Root {
			return errors.Join(fmt.Errorf("the home directory %s is not an empty one", home), err)
		}
	}
	return nil
}

// keptCapabilities returns the capabilities that root keeps in the namespace: those over files, and those to make
// further namespaces. Other users keep none.
func keptCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID,
		unix.CAP_SETUID, unix.CAP_SETFCAP,
	}
}

// giveUpCapabilities limits the capabilities that programs started by this thread can have.
func giveUpCapabilities() error {
	if err := boundCapabilities(keptCapabilities()); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// No process of the agent may inspect this one.
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// lowerCapabilities drops from this thread the capabilities that its programs cannot have.
func lowerCapabilities() error {
	var have [2]unix.CapUserData
	if os.Geteuid() == 0 {
		for _, capability := range keptCapabilities() {
			have[capability/32].Effective |= 1 << (capability % 32)
			have[capability/32].Permitted |= 1 << (capability % 32)
		}
	}
	return setCapabilities(have)
}
