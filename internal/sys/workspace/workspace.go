// Package workspace reads and changes files safely, although other programs change them too and the process may be
// killed at any moment.
//
// A file written by WriteFile has the old bytes or the new ones at every point where the process can die. A line
// written by Append is complete, or is recognisably truncated and never joined to the next one. A lock is free as soon
// as its holder is dead. RemoveTree deletes only below its root, whatever links are in the tree.
//
// Nothing waits without a limit: a FIFO or a device in place of a file is an error, not a read that blocks, and the
// caller limits the wait for a lock. Deletions never follow links. Every error is a fault.
//
// Dir is for names that somebody else chose, in a directory where somebody else moves links. It never checks a path and
// then uses the same path: it works in open directories, and never writes through a link that appeared after the
// decision. It has these limits:
//
//   - What is mounted in the workspace belongs to it, because a user who can mount decided that; a bind mount of /
//     would be /. A single mounted file can be read, but not replaced: it would have to be written in place.
//   - A hard link is a file of the workspace. It may have another name outside, which cannot be known, so it is read.
//     It is never written in place, so the other name keeps its content. Append and Lock do write in place: they are
//     for our own journals, never for a name from a model.
//   - A directory that is moved out of the workspace while it is open is still the opened one: a write in progress
//     goes there. Only a program that may write outside can do that.
//   - Between the last check of a file and the rename there is a moment in which another program can write it, and
//     that change is lost. Writers in this process wait for each other. A file that was expected not to exist is never
//     overwritten, if the file system has hard links.
//   - If a file changes while it is read, the reader may get some old and some new bytes. The fingerprint is that of
//     the bytes that were read.
//   - An absolute path from a model is looked up to see whether links above the root lead it back in, which may touch
//     a server or mount something. The result is not reported. The target of a link in the workspace is judged by its
//     text alone.
//   - Directories that Replace created stay if the write fails, and extended attributes, access lists and capabilities
//     of the old file are lost. A killed process leaves a file with a recognisable name, which a later write in that
//     directory removes after a minute.
//   - A file system that is mounted over a network may hang every call for as long as it likes.
package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"omniagent/internal/kit/fault"
)

// ReadFile reads a regular file of up to max bytes. It returns fault.Unsafe for anything else, and fault.FieldTooLarge
// for a larger file, without reading them.
func ReadFile(path string, max int64) ([]byte, error) {
	f, size, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > max {
		return nil, tooLarge(path, size, max)
	}
	// The size is a hint: files in /proc say 0, and a file may grow while it is read.
	data := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, max+1)); err != nil {
		return nil, toFault("read", path, err)
	}
	if int64(data.Len()) > max {
		return nil, tooLarge(path, int64(data.Len()), max)
	}
	return data.Bytes(), nil
}

// OpenRegular opens a regular file for reading, and returns its size. It returns fault.Unsafe for anything else.
func OpenRegular(path string) (f *os.File, size int64, err error) {
	// The first check avoids opening a FIFO, which would wake its writer. Only the second check, of the opened file, is
	// reliable.
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, toFault("read", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, notRegular(path, info)
	}
	if f, err = os.OpenFile(path, os.O_RDONLY|openWithoutBlocking, 0); err != nil {
		return nil, 0, toFault("read", path, err)
	}
	if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
		return f, info.Size(), nil
	}
	_ = f.Close()
	if err != nil {
		return nil, 0, toFault("read", path, err)
	}
	return nil, 0, notRegular(path, info)
}

// MkdirAll creates the directory and its parents. New ones are accessible only to the user; existing ones keep their
// mode.
func MkdirAll(path string) error {
	err := os.MkdirAll(path, 0o700)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist): // a file system that makes none, such as /proc
		return fault.New(fault.PermissionDenied, "cannot create %s", printable(path)).With("path", path).
			Because(cause(err, path))
	}
	return toFault("create", path, err)
}

// TempMark is a file in a temporary directory, by which a later cleanup recognises what a killed process has left.
const TempMark = ".made-by-call"

// MakeTemp creates a temporary directory, and marks it with the id.
func MakeTemp(dir, id string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		if err = os.WriteFile(filepath.Join(dir, TempMark), []byte(id), 0o600); err != nil {
			_ = os.RemoveAll(dir)
		}
	}
	return err
}

// toFault converts an error of the system to a fault. verb completes "cannot …".
func toFault(verb, path string, err error) error {
	var known *fault.Fault
	if errors.As(err, &known) {
		return err
	}
	code, hint := fault.Internal, ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = fault.FileMissing
		if dir := filepath.Dir(path); verb != "read" && !exists(dir) {
			hint = "The directory " + printable(dir) + " does not exist."
		}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		code = fault.PermissionDenied
	case errors.Is(err, syscall.ELOOP):
		code = fault.SymlinkLoop
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		code = fault.Unsafe
	case errors.Is(err, syscall.ENOSPC):
		hint = "Free space on the disk that holds " + printable(filepath.Dir(path)) + "."
	}
	f := fault.New(code, "cannot %s %s", verb, printable(path)).With("path", path).Because(cause(err, path))
	if hint != "" {
		f.Hint("%s", hint)
	}
	return f
}

// Absent reports whether an error means that a path does not exist, or that a parent of it is a file.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.FileMissing) || errors.Is(err, syscall.ENOTDIR)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func notRegular(path string, info fs.FileInfo) error {
	kind := typeOf(info.Mode())
	return fault.New(fault.Unsafe, "%s is a %s where a file belongs", printable(path), kind).With("path", path).
		With("type",
			kind)
}

func tooLarge(path string, size, max int64) error {
	return fault.New(fault.FieldTooLarge, "%s is larger than %d bytes", printable(path), max).
		With("path", path).With("size", size).With("max", max)
}

// typeOf returns the name of a directory entry's type.
func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "fifo"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// SyncDir makes the creation, renaming and removal of files in a directory durable.
func SyncDir(dir string) error {
	if err := syncDir(dir); err != nil {
		return toFault("sync", dir, err)
	}
	return nil
}
