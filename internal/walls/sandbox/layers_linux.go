package sandbox

import (
	"os"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"

	"golang.org/x/sys/unix"
)

// LayersAt returns the mount source of the overlay in which a directory lies, or "". It reads the mount table only if
// the directory is on overlayfs.
func LayersAt(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err == nil && s.Type != unix.OVERLAYFS_SUPER_MAGIC {
		return ""
	}
	_, in := MountsBeneath(dir)
	return in
}

// MountsBeneath returns the mount points below a directory, and the mount source of the directory itself.
func MountsBeneath(dir string) (at []string, in string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, ""
	}
	depth := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		rest := slices.Index(fields, "-")
		if rest < 5 || len(fields) <= rest+2 {
			continue
		}
		path := unescaped(fields[4])
		if path != dir && pathname.Within(dir, path) {
			at = append(at, path)
		}
		if pathname.Within(path, dir) && len(path) >= depth {
			in, depth = unescaped(fields[rest+2]), len(path)
		}
	}
	return at, in
}
