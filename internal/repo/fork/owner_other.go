//go:build !unix

package fork

import "io/fs"

// sameOwner does nothing, because owners are not copied here.
func sameOwner(string, fs.FileInfo) error { return nil }

// onDisk returns the bytes that a file takes.
func onDisk(info fs.FileInfo) int64 { return info.Size() }
