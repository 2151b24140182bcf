//go:build !linux

package fork

import "io/fs"

// isWhiteout reports false: here are no layers.
func isWhiteout(fs.FileInfo) bool { return false }

// isOpaque reports false: here are no layers.
func isOpaque(string) bool { return false }
