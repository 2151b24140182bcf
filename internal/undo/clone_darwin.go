package undo

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// clone makes a file that shares its blocks with another one until either is written, where the file system can.
func clone(from, to string, _ fs.FileInfo) error {
	return unix.Clonefile(from, to, unix.CLONE_NOFOLLOW)
}
