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

// Words of the caller to the stage of an agent, which repeats them when it has obeyed.
const (
	wordWrite = "write" // the workspace may be changed
	wordRead  = "read"  // it may not
)

// agentStage builds the walls around an agent, and starts it there. This process stays process 1 of the namespace.
func agentStage(o *order, signals chan os.Signal) int {
	workspace, err := lodgings(o)
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
	// The call that starts the agent holds up all of this process, so the child must make none that the veil holds.
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
	if err := o.triesLodgings(); err != nil {
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

// writables are the mounts of what an agent may change, if it may change anything there.
type writables []int

// set makes all of them writable, or none.
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

// keep returns what obeys the caller, on a thread that keeps the privileges of the stage.
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

// lodgings puts everything in its place, and returns the mounts of the workspace.
func lodgings(o *order) (workspace writables, err error) {
	if err := overrides(false); err != nil {
		return nil, err
	}
	if o.Dir, err = os.Getwd(); err != nil {
		return nil, fmt.Errorf("the directory of the agent: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("the mounts cannot be made private: %w", err)
	}
	list, err := aside(o)
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
	more, links, err := o.belongings()
	if err != nil {
		return nil, err
	}
	list = append(list, more...)
	if err := ofItsOwn(o, processesOfAgent); err != nil {
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

// belongings copies what an agent has beside the workspace: its own directories, and what it reads where something is
// covered. links are to be made where nothing is.
func (o *order) belongings() (list []placed, links map[string]string, err error) {
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

// processesOfAgent mounts a /proc that shows only the processes of the namespace. It stays writable, because a program
// that makes a namespace writes there, and could not mount another one. To the kernel, the superuser outside is the
// superuser here, so that to him only the directories of processes are writable. He owns the control groups, too, which
// a program mounts in a namespace for them: it gets none. Others do, since sandboxes of agents ask for it.
func processesOfAgent() error {
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil || os.Geteuid() != 0 {
		return err // with the other one, an agent could go through /proc/PID/root of a process outside
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

// runOfItsOwn makes an empty /run, in which there is no socket of a service and no login, but for what stays.
func runOfItsOwn(o *order) error {
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

// triesLodgings tries what must not work, on the thread that starts the agent.
func (o *order) triesLodgings() error {
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

// keptCapabilities are those of the superuser in the namespace: over files that may be changed at all, and to make
// namespaces of his own. Other users have none.
func keptCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID,
		unix.CAP_SETUID, unix.CAP_SETFCAP,
	}
}

// giveUpCapabilities bounds those that this thread's programs can have.
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
	// No process of the agent can look into this one.
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// lowerCapabilities takes from this thread what its programs cannot have either.
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
