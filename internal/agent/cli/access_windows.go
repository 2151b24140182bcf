package cli

import "os"

// inode is not known there; size and time of the file tell it from another.
func inode(os.FileInfo) uint64 { return 0 }
