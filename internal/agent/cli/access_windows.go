package cli

import "os"

// executable is true: on Windows the extension decides, and find tries no others.
func executable(string) bool { return true }

// inode is not known there; size and time of the file tell it from another.
func inode(os.FileInfo) uint64 { return 0 }
