package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/pathname"

	"golang.org/x/sys/unix"
)

// homeMounts are the mounts of home directories in a stage, writable until close.
type homeMounts []int

// mountHomes creates empty home directories, and copies the mounts that belong in them.
func mountHomes(o *order) (list []placed, homes homeMounts, err error) {
	add := func(fd int, to string, attrs uint64, optional bool) {
		list = append(list, placed{to, fd, attrs | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, optional})
	}
	for i, home := range o.Homes {
		fd, err := emptyHome(home, o.Lives)
		if err == nil && i == 0 && len(o.Identity) > 0 {
			err = writeNew(fd, ".gitconfig", o.Identity[0])
		}
		again := -1
		if err == nil {
			again, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("an empty home directory: %w", err)
		}
		add(fd, home, 0, false)
		homes = append(homes, again)
	}
	for pair := range slices.Chunk(o.Own, 2) {
		fd, err := take(pair[0])
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", pair[0], err)
		}
		add(fd, pair[1], 0, false)
	}
	// An earlier command may have created something at the place in its own directory. Then this one does without the
	// place.
	for pair := range slices.Chunk(o.Seen, 2) {
		if fd, err := take(pair[0]); err == nil {
			add(fd, pair[1], unix.MOUNT_ATTR_RDONLY, o.owns(pair[1]))
		}
	}
	for layer := range slices.Chunk(o.Layers, 3) {
		attrs := uint64(0)
		err := overlay(layer[0], layer[1], layer[2], "overlay")
		if err != nil {
			attrs = unix.MOUNT_ATTR_RDONLY // so is what the user has there
		}
		for copied := range slices.Chunk(o.Copies, 3) {
			owned := o.owns(copied[2])
			if copied[0] != layer[0] || err != nil && owned {
				continue
			}
			if fd, err := take(filepath.Join(copied[0], copied[1])); err == nil {
				add(fd, copied[2], attrs, owned)
			}
		}
		if err == nil {
			err = unix.Unmount(layer[0], unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", layer[0], err)
			}
		}
	}
	return list, homes, nil
}

// owns reports whether a path lies in an owned directory.
func (o *order) owns(path string) bool {
	for pair := range slices.Chunk(o.Own, 2) {
		if pair[1] != path && pathname.Within(pair[1], path) {
			return true
		}
	}
	return false
}

// close makes the home directories read-only, now that everything in them is in its place.
func (f homeMounts) close() error {
	for _, fd := range f {
		readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &readOnly); err != nil {
			return fmt.Errorf("a home directory cannot be made read-only: %w", err)
		}
		_ = unix.Close(fd)
	}
	return nil
}

func writeNew(dir int, name, content string) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(content))
	return errors.Join(err, unix.Close(fd))
}

// option is one of a file system; a flag has no value.
type option struct{ key, value string }

// filesystem returns a new file system as a detached mount.
func filesystem(kind string, options ...option) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, o := range options {
		if o.value == "" {
			err = unix.FsconfigSetFlag(fs, o.key)
		} else {
			err = unix.FsconfigSetString(fs, o.key, o.value)
		}
		if err != nil {
			return -1, fmt.Errorf("%s: %w", o.key, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}

// emptyHome returns an empty file system for a home directory. That of an agent has more space.
func emptyHome(home string, lives bool) (int, error) {
	switch {
	case home == "/tmp":
		return filesystem("tmpfs", option{"mode", "1777"})
	case lives:
		return filesystem("tmpfs", option{"mode", "0755"}, option{"size", "256m"})
	}
	return filesystem("tmpfs", option{"mode", "0755"}, option{"size", "4m"})
}

// overlay mounts an overlay over its own lower directory. Without volatile, the end of the command would wait until all
// of the file system is on the disk. Directories are passed as descriptors, because options take special characters
// badly. Mount tables show the name.
func overlay(lower, upper, work, name string) error {
	options := []option{{"source", name}, {"userxattr", ""}, {"volatile", ""}}
	at := -1
	for _, dir := range []option{{"upperdir", upper}, {"workdir", work}, {"lowerdir", lower}} {
		fd, err := openPlain(dir.value)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		options, at = append(options, option{dir.key, fmt.Sprintf("/proc/self/fd/%d", fd)}), fd
	}
	if err := overrides(true); err != nil {
		return err
	}
	fd, err := filesystem("overlay", options...)
	if err := errors.Join(err, overrides(false)); err != nil {
		return err
	}
	defer unix.Close(fd)
	return attach(fd, at, 0)
}

// overrides switches CAP_DAC_OVERRIDE on or off. To make an overlay, the kernel works in a directory without
// permissions, with the rights of the caller. Otherwise a stage does without the capability, unless it is root's.
func overrides(on bool) error {
	if os.Geteuid() == 0 {
		return nil
	}
	have, err := capabilities()
	if err != nil {
		return err
	}
	have[0].Effective &^= 1 << unix.CAP_DAC_OVERRIDE
	if on {
		have[0].Effective |= 1 << unix.CAP_DAC_OVERRIDE
	}
	return setCapabilities(have)
}

// triesHomes checks that home directories are empty, or with Landlock that files which are not on the list cannot be
// read.
func triesHomes(o order, _ *trial) error {
	open := slices.Concat([]string{o.Root, o.Temp}, o.Write)
	for pair := range slices.Chunk(o.Seen, 2) {
		open = append(open, pair[0], pair[1])
	}
	for _, home := range o.Homes {
		var s unix.Statfs_t
		if err := unix.Statfs(home, &s); o.Tier == Namespaces && (err != nil || s.Type != unix.TMPFS_MAGIC) {
			return errors.Join(fmt.Errorf("the home directory %s is not an empty one", home), err)
		}
		entries, err := os.ReadDir(home)
		if err != nil || o.Tier == Namespaces {
			continue
		}
		for _, entry := range entries {
			path := filepath.Join(home, entry.Name())
			if !entry.Type().IsRegular() || first(open, path) != "" {
				continue
			}
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			if unreachable(err) {
				continue
			}
			if err := refused("the reading of "+path, err); err != nil {
				return err
			}
		}
	}
	return nil
}
