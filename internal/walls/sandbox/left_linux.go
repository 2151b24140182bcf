package sandbox

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/pathname"
)

// Limits of the list of files that an agent leaves.
const (
	leftMost  = 2000     // paths
	leftBytes = 60 << 10 // which a pipe takes without a reader
	leftDepth = 32
	leftTime  = 2 * time.Second
	wordLeft  = "left" // asks a home server for the list
)

// Left returns the files that the agent has now in places that are removed at the end, sorted by name: in its home
// directories and /tmp, without its own files and those that we put there.
func (w *AgentWalls) Left() (paths []string) {
	if h := w.homes.system.homes; h != nil && h.held != nil {
		paths = h.held.left()
	}
	if !slices.Contains(w.homes.policy.Homes, "/tmp") { // then the temporary directory of the policy is mounted there
		paths = append(paths, leftIn(w.policy.Temp, "/tmp")...)
	}
	w.mu.Lock()
	ours := w.ours
	w.mu.Unlock()
	paths = slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(ours, func(own string) bool { return pathname.Within(own, path) }) ||
			slices.ContainsFunc(w.homes.system.files, func(file string) bool { return strings.HasPrefix(path, file) })
	})
	slices.Sort(paths)
	return paths
}

// remember notes the paths in the places of an agent that we put there, or that belong to the agent.
func (w *AgentWalls) remember(o *order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range slices.Concat(o.Shown, o.Mine, realPaths(o.Shown)) {
		if path = filepath.Clean(path); !slices.Contains(w.ours, path) {
			w.ours = append(w.ours, path)
		}
	}
}

// left asks the home server for the files in its home directories.
func (h *homeServer) left() (paths []string) {
	var ends [2]int
	if unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return nil
	}
	from := os.NewFile(uintptr(ends[0]), wordLeft)
	defer from.Close()
	err := unix.Sendmsg(h.control, []byte(wordLeft), unix.UnixRights(ends[1]), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	_ = unix.Close(ends[1])
	if err != nil || from.SetReadDeadline(time.Now().Add(leftTime)) != nil {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(from, leftBytes))
	if err != nil {
		return nil
	}
	for path := range strings.SplitSeq(string(data), "\x00") {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// standing returns the files in home directories, each with a mark that changes with the file.
func (o *order) standing() map[string]string {
	all := map[string]string{}
	for _, home := range o.Homes {
		for _, path := range leftIn(home, home) {
			var one unix.Stat_t
			if unix.Lstat(path, &one) == nil {
				all[path] = fmt.Sprint(one.Ino, one.Size, one.Mtim, one.Ctim)
			}
		}
	}
	return all
}

// listLeft writes to a pipe the files in the home directories that have changed, as far as the pipe takes them.
func listLeft(o *order, before map[string]string, to int) {
	text, now := "", o.standing()
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if now[path] == before[path] {
			continue
		}
		if len(text)+len(path) >= leftBytes {
			break
		}
		text += path + "\x00"
	}
	_, _ = unix.Write(to, []byte(text))
}

// leftIn returns the files below a directory on its own file system, with paths as if it were the directory as. It
// follows no links.
func leftIn(dir, as string) (paths []string) {
	if dir == "" {
		return nil
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	var top unix.Stat_t
	if err != nil || unix.Fstat(fd, &top) != nil {
		return nil
	}
	var walk func(fd int, as string, depth int)
	walk = func(fd int, as string, depth int) {
		at := os.NewFile(uintptr(fd), as)
		defer at.Close()
		names, _ := at.Readdirnames(leftMost)
		slices.Sort(names)
		for _, name := range names {
			var one unix.Stat_t
			if len(paths) >= leftMost || unix.Fstatat(fd, name, &one, unix.AT_SYMLINK_NOFOLLOW) != nil ||
				one.Dev != top.Dev {
				continue
			}
			path := filepath.Join(as, name)
			switch one.Mode & unix.S_IFMT {
			case unix.S_IFREG, unix.S_IFLNK:
				paths = append(paths, path)
			case unix.S_IFDIR:
				inner, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
				if err == nil && depth < leftDepth {
					walk(inner, path, depth+1)
				} else if err == nil {
					_ = unix.Close(inner)
				}
			}
		}
	}
	walk(fd, as, 0)
	return paths
}
