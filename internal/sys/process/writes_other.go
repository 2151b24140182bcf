//go:build unix && !linux

package process

import "os"

// keepWrites does nothing: only Linux has pipes that keep writes apart.
func keepWrites(*os.File) {}
