//go:build !linux

package prompt

import "io/fs"

// Waiting returns Unknown: only Linux tells what another process waits for.
func Waiting(fs.FileInfo, []int) Wait { return Unknown }
