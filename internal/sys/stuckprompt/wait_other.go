//go:build !linux

package stuckprompt

import (
	"io/fs"
	"time"
)

// Waiting returns Unknown: only Linux tells what another process waits for.
func Waiting(fs.FileInfo, []int, time.Duration) Wait { return Unknown }
