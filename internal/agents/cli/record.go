package cli

import (
	"errors"
	"io"
	"os"

	"omniagent/internal/kit/lines"
	"omniagent/internal/sys/workspace"
)

// Size returns the size of a regular file, or 0.
func Size(path string) int64 {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// Sizes returns the sizes of files.
func Sizes(paths []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, path := range paths {
		sizes[path] = Size(path)
	}
	return sizes
}

// Grown returns the only one of the files that is larger than it was before, or "".
func Grown(before map[string]int64, now []string) string {
	found := ""
	for _, path := range now {
		if Size(path) <= before[path] {
			continue
		}
		if found != "" {
			return ""
		}
		found = path
	}
	return found
}

// Head reads up to limit bytes of a regular file. whole reports whether that is the whole file.
func Head(path string, limit int64) (data []byte, whole bool) {
	f, size, err := workspace.OpenRegular(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	data = make([]byte, min(size+1, limit+1))
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false
	}
	return data[:min(int64(n), limit)], int64(n) <= limit
}

// EachLine passes the lines of a regular file to f, from an offset on, until f returns false. See lines.Line for lines
// of more than most bytes. It reports whether the file could be read.
func EachLine(path string, from int64, most int, f func(lines.Line) bool) bool {
	file, _, err := workspace.OpenRegular(path)
	if err != nil {
		return false
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return false
	}
	in := lines.NewReader(file, most)
	for in.Next() && f(in.Line) {
	}
	return in.Err() == nil
}
