package cli

import "os"

// Inode returns 0: size and time distinguish the file from another.
func Inode(os.FileInfo) uint64 { return 0 }
