package cli

import "os"

// inode returns 0: size and time tell the file from another.
func inode(os.FileInfo) uint64 { return 0 }
