package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"omniagent/internal/kit/pathname"

	"golang.org/x/sys/unix"
)

// trial is what a stage found when it tried to break out.
type trial struct {
	ABI          int  // of Landlock
	OldProcesses bool // /proc shows processes outside
	Names        bool // protected names could be written
	NoNumbers    bool // processes of the superuser are not limited
}

// report makes the attempts, on the thread that would start a command, and sends the results. It fails if something
// that has to hold does not.
func report(o order) int {
	t := trial{ABI: o.ABI, OldProcesses: o.OldProcesses, Names: !o.Supervised}
	for _, attempt := range []func(order, *trial) error{
		triesOutside, triesHidden, triesHomes, triesNames, triesNetwork,
		triesSystem,
	} {
		if err := attempt(o, &t); err != nil {
			return fail(err)
		}
	}
	text, err := json.Marshal(t)
	if err != nil {
		return fail(err)
	}
	tell("trial " + string(text))
	return 0
}

func refused(what string, err error) error {
	for _, no := range []error{unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOSYS, unix.EAFNOSUPPORT} {
		if errors.Is(err, no) {
			return nil
		}
	}
	return fmt.Errorf("%s was not refused: %s", what, outcome(err))
}

// triesOutside tries to create files without a name, so that a success leaves nothing behind.
func triesOutside(o order, t *trial) error {
	writable := append(o.granted(), o.Temp)
	for _, dir := range o.Outside {
		if first(writable, dir) != "" || !filepath.IsAbs(dir) {
			continue
		}
		fd, err := unix.Open(dir, unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
		if err == nil {
			_ = unix.Close(fd)
		}
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err := refused("a write to "+dir, err); err != nil {
			return err
		}
		// Set the mode of the directory to what it is: that tries chmod without changing anything.
		var s unix.Stat_t
		if unix.Stat(dir, &s) != nil || int(s.Uid) != os.Geteuid() || unix.Chmod(dir, s.Mode&0o7777) != nil {
			continue
		}
		if !t.Names {
			return fmt.Errorf("a change of the rights of %s was not refused", dir)
		}
	}
	fd, err := unix.Open("/proc/self/comm", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	if err := refused("a write to /proc", err); err != nil {
		return err
	}
	fd, err = unix.Open(o.Root, unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) {
		// a name that nobody can prepare for us
		path := filepath.Join(o.Root, fmt.Sprintf(".omniagent-trial-%x", time.Now().UnixNano()))
		if fd, err = unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600); err == nil {
			err = unix.Unlink(path)
		}
	}
	var status unix.Stat_t
	if errors.Is(err, fs.ErrPermission) && unix.Stat(o.Root, &status) == nil && int(status.Uid) != os.Getuid() {
		return fmt.Errorf("the workspace cannot be written: it belongs to another user, and behind walls even root "+
			"may write only where modes let it; make it yours with chown: %w", err)
	}
	if err != nil {
		return fmt.Errorf("the workspace cannot be written: %w", err)
	}
	return unix.Close(fd)
}

func triesHidden(o order, _ *trial) error {
	for _, path := range o.Hidden {
		if o.Tier == Landlock && (pathname.Within(o.Root, path) || first(o.Write, path) != "") {
			continue
		}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if unreachable(err) || errors.Is(err, unix.ENXIO) {
			continue
		}
		if err == nil {
			var s unix.Stat_t
			err = unix.Fstat(fd, &s)
			_ = unix.Close(fd)
			if err == nil && o.Tier == Landlock && s.Mode&unix.S_IFMT == unix.S_IFDIR {
				continue // its names can be listed
			}
		}
		if err := refused("the reading of "+path, err); err != nil {
			return err
		}
	}
	return nil
}

func triesNames(o order, t *trial) error {
	if t.Names {
		return nil
	}
	tried := slices.Clone(o.Kept[:min(len(o.Kept), mostTried)])
	for _, path := range tried { // by a path that does not begin as the workspace does
		tried = append(tried, "/proc/self/root"+path)
	}
	for _, path := range tried {
		if err := refused("the removal of "+path,
			notThere(unix.Unlinkat(unix.AT_FDCWD, path, unix.AT_REMOVEDIR))); err != nil {
			return err
		}
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			_ = unix.Close(fd)
		}
		if err := refused("a write to "+path, notThere(err)); err != nil {
			return err
		}
	}
	if o.Tier != Namespaces {
		return nil
	}
	to := filepath.Join(filepath.Dir(o.Root), ".omniagent-trial") // not a longer name, which may be too long
	err := unix.Rename(o.Root, to)
	if err == nil {
		_ = unix.Rename(to, o.Root)
	}
	return refused("the renaming of "+o.Root, busy(err))
}

// mostTried is how many of the protected names a trial tries. Each takes a moment, and all are refused in the same way.
const mostTried = 40

// notThere counts what leads nowhere as a refusal.
func notThere(err error) error {
	if unreachable(err) {
		return unix.EACCES
	}
	return busy(err)
}

// busy also counts as refusals a busy path, and a file instead of a directory or the other way around.
func busy(err error) error {
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOTEMPTY) ||
		errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EISDIR) {
		return unix.EACCES
	}
	return err
}

func triesNetwork(o order, _ *trial) error {
	families := []int{unix.AF_UNIX, unix.AF_NETLINK, unix.AF_PACKET}
	if o.Network == "off" {
		families = append(families, unix.AF_INET, unix.AF_INET6)
	}
	for _, family := range families {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		if err := refused(fmt.Sprintf("a socket of family %d", family), err); err != nil {
			return err
		}
	}
	return nil
}

func triesSystem(o order, t *trial) error {
	if err := refused("a mount", unix.Mount("none", o.Root, "tmpfs", 0, "")); err != nil {
		return err
	}
	if err := refused("a new user namespace", unix.Unshare(unix.CLONE_NEWUSER)); err != nil {
		return err
	}
	have, err := capabilities()
	if err != nil || have[0].Permitted|have[1].Permitted|have[0].Inheritable|have[1].Inheritable != 0 {
		return fmt.Errorf("capabilities are left: %x %x", have[0].Permitted, have[1].Permitted)
	}
	t.NoNumbers = os.Geteuid() == 0 && (o.Tier != Namespaces || o.OldProcesses || !ownNumbers())
	return nil
}

// holes lists what a sandbox that was tried does not enforce. root: commands are the superuser's. docs/threats.md has
// each.
func (t trial) holes(p Policy, tier Tier, root bool) []string {
	var list []string
	add := func(yes bool, text string) {
		if yes {
			list = append(list, text)
		}
	}
	weak := tier == Landlock
	add(weak && t.Names, "chmod, chown and utimes of files outside the workspace, and of protected names in it")
	add(weak && t.Names, "setting extended attributes of files outside the workspace")
	add(!weak || t.Names, "mode, owner and times of the configuration of repositories")
	add((!weak || t.Names) && len(p.KeptNames) > 0,
		"mode, owner and times of files that a rule protects in every directory")
	add(t.Names, "writes to protected names inside the workspace, such as .git/hooks and .git/config")
	hides := len(p.Hidden)+len(p.Homes) > 0
	add(weak && hides, "names, sizes and times of hidden files, and hidden files where commands may write")
	add(weak, "seeing which processes run outside, and their arguments, in which passwords may stand")
	add(!weak && t.OldProcesses, "seeing which processes run outside: this system refuses a /proc of its own")
	add(weak, "terminals of the user outside, to read and to write")
	add(weak, "shared memory, queues and semaphores (System V) of the user outside")
	add(weak && !root, "the processors on which processes of the user outside run")
	add(weak && t.ABI < 3, "truncating files outside the workspace")
	add(weak && t.ABI < 5, "ioctl on devices that the user may open")
	add(weak && t.ABI < 6, "signals to processes of the user outside")
	add(p.Network.Open && t.ABI < 6, "abstract sockets of processes outside")
	add(p.Network.Open, "what listens on this machine, and everything that the network reaches")
	add(hides, "hidden files that have a second name, by a hard link or another mount")
	add(true,
		"repositories that a command makes elsewhere in the workspace, or that come there while it runs, and what "+
			"git runs when a person continues a rebase, also one that the person began")
	add(true, "settings of editors and agents deeper in the workspace, such as lib/.vscode")
	add(true, "settings of tools that no list has and whose names have no dot, and what programs load that protected "+
		"files name")
	add(true, "what git's index names: an entry in .git becomes a file there when a person restores the work tree")
	add(p.many(), "settings that repositories beneath do not have yet: there are many of them")
	add(p.MoreRepositories,
		"repositories in directories of the workspace that are too deep or too many to be looked at")
	add(root,
		"programs with the set-user-id bit that a command makes in the workspace: they are the superuser's")
	add(t.NoNumbers, "the number of processes: the superuser has no limit here")
	add(true, "the space and the inodes of the disk, in the workspace and in temporary files")
	add(p.Limits.Memory <= 0, "the memory of commands, which go first when the machine has none left")
	add(p.Limits.Memory > 0, "the memory of all processes of a command together: the limit is for each")
	return list
}
