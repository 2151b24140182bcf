package rehearsal

import "os"

func inode(os.FileInfo) uint64 { return 0 }

func kernel() string { return "" }

// systemTemp returns where sandboxes let everybody write.
func systemTemp() string { return os.TempDir() }
