package cli

import "os"

// executable returns true: on Windows the extension decides, and find tries no other files.
func executable(string) bool { return true }

// inode returns 0: size and time tell the file from another.
func inode(os.FileInfo) uint64 { return 0 }
