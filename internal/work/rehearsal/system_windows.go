package rehearsal

import "os"

func kernel() string { return "" }

// systemTemp returns where sandboxes let everybody write.
func systemTemp() string { return os.TempDir() }
