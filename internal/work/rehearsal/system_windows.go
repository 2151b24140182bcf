package rehearsal

import "os"

func kernel() string { return "" }

// systemTemp returns the temporary directory in which sandboxes let commands write.
func systemTemp() string { return os.TempDir() }
