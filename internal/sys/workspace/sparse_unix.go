//go:build linux || darwin || freebsd

package workspace

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// CopyContent copies a file from its start and leaves its holes as holes: a disk image of 300 GB may take 1 GB.
func CopyContent(out, in *os.File) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if hole, err := in.Seek(0, unix.SEEK_HOLE); err != nil || hole >= size { // it has none, or they are not known
		if _, err := in.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return err
	}
	for at := int64(0); at < size; {
		data, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // the rest is a hole
		}
		if err != nil {
			return err
		}
		if at, err = in.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		for _, f := range []*os.File{in, out} {
			if _, err := f.Seek(data, io.SeekStart); err != nil {
				return err
			}
		}
		switch n, err := io.CopyN(out, in, at-data); {
		case errors.Is(err, io.EOF): // it was truncated meanwhile
			return out.Truncate(data + n)
		case err != nil:
			return err
		}
	}
	return out.Truncate(size)
}
