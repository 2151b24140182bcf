package cli

import "os"

// Inode returns 0: size and time have to identify the file.
func Inode(os.FileInfo) uint64 { return 0 }
