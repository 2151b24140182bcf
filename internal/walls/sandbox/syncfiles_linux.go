package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// An agent may keep a single file in the home directory, next to its own directory, and replace it by a rename. A
// mounted file cannot be replaced. So the agent gets a copy in its empty home directory, and each change of either file
// is copied to the other.
//
//	real directory ── changed ─▶ fileSync ─▶ copy of the agent
//	real directory ◀─ fileSync ◀─ changed ── copy of the agent
type fileSync struct {
	files []*carried
	watch int       // inotify
	over  chan bool // closed when the loop has ended
	stop  [2]int    // a pipe: closing it ends the loop
}

// carried is one file.
type carried struct {
	path    string // as the agent sees it
	name    string // the last element of path
	real    string // the name in the real directory
	outside int    // the real directory, opened
	inside  int    // the agent's directory, opened
	content []byte // what both had last; nil: no such file
}

// carriedMost is the size above which a file is not copied.
const carriedMost = 64 << 20

// fetch opens the real directories of the files before others are mounted over them.
func fetch(o *order) (*fileSync, error) {
	c := &fileSync{}
	for _, path := range o.Files {
		home := filepath.Dir(path)
		if !slices.Contains(o.Homes, home) {
			continue
		}
		real, err := filepath.EvalSymlinks(path) // a person may keep it elsewhere
		if err != nil {
			real = path
		}
		mount, err := take(filepath.Dir(real))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", home, err)
		}
		dir, err := unix.Openat(mount, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", home, err)
		}
		c.files = append(c.files, &carried{path: path, real: filepath.Base(real), outside: dir})
	}
	return c, nil
}

// carry starts the loop. Without files it returns nil.
func (c *fileSync) carry() (*fileSync, error) {
	if len(c.files) == 0 {
		return nil, nil
	}
	var err error
	if c.watch, err = unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
		return nil, fmt.Errorf("files of the agent cannot be watched: %w", err)
	}
	if err := unix.Pipe2(c.stop[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	c.over = make(chan bool)
	for _, f := range c.files {
		dir, name := filepath.Split(f.path)
		if f.inside, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		f.name = name
		for _, fd := range []int{f.outside, f.inside} {
			if _, err := unix.InotifyAddWatch(c.watch, own(fd), unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE); err != nil {
				return nil, fmt.Errorf("%s cannot be watched: %w", dir, err)
			}
		}
		f.in()
	}
	go c.loop()
	return c, nil
}

// loop copies changes until stop is closed.
func (c *fileSync) loop() {
	defer close(c.over)
	block := make([]byte, 64<<10)
	for {
		ready := []unix.PollFd{{Fd: int32(c.watch), Events: unix.POLLIN}, {Fd: int32(c.stop[0]), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if ready[0].Revents != 0 {
			n, err := unix.Read(c.watch, block)
			if err == nil && c.named(block[:max(n, 0)]) {
				c.once()
			}
		}
		if ready[1].Revents != 0 {
			return
		}
	}
}

// named reports whether events concern one of the files, or some events were lost.
func (c *fileSync) named(events []byte) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		size := int(binary.NativeEndian.Uint32(events[12:]))
		end := min(unix.SizeofInotifyEvent+size, len(events))
		name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:end]), "\x00")
		ours := func(f *carried) bool { return f.name == name || f.real == name }
		if mask&unix.IN_Q_OVERFLOW != 0 || slices.ContainsFunc(c.files, ours) {
			return true
		}
		events = events[end:]
	}
	return false
}

func (c *fileSync) once() {
	for _, f := range c.files {
		if !f.out() {
			f.in()
		}
	}
}

// close ends the loop, and copies the last changes.
func (c *fileSync) close() {
	if c == nil {
		return
	}
	_ = unix.Close(c.stop[1])
	<-c.over
	c.once()
}

// out copies what the agent has changed, and reports whether it has changed anything.
func (f *carried) out() bool { return f.bring(f.inside, f.name, f.outside, f.real) }

// in copies what somebody else has changed.
func (f *carried) in() { f.bring(f.outside, f.real, f.inside, f.name) }

// bring copies a change from one directory to the other, and reports whether there was one.
func (f *carried) bring(from int, name string, to int, as string) bool {
	data, err := readAt(from, name)
	if err != nil || f.content != nil && bytes.Equal(data, f.content) {
		return false
	}
	if replaceAt(to, as, data) == nil {
		f.content = data
	}
	return true
}

// readAt reads a regular file, and not through a link.
func readAt(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > carriedMost {
		return nil, errors.Join(err, unix.EINVAL)
	}
	return io.ReadAll(io.LimitReader(file, carriedMost))
}

// replaceAt replaces a file as a whole.
func replaceAt(dir int, name string, data []byte) error {
	temp := fmt.Sprintf("%s.%d.omniagent", name, os.Getpid())
	_ = unix.Unlinkat(dir, temp, 0)
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), temp)
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = unix.Renameat(dir, temp, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temp, 0)
	}
	return err
}
