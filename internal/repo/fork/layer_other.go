//go:build !linux

package fork

import "io/fs"

// isWhiteout returns false, because there are no layers here.
func isWhiteout(fs.FileInfo) bool { return false }

// isOpaque returns false, because there are no layers here.
func isOpaque(string) bool { return false }
