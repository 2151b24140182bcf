//go:build !linux && !darwin && !freebsd

package workspace

import (
	"io"
	"os"
)

// CopyContent copies the content of a file.
func CopyContent(out, in *os.File) error {
	_, err := io.Copy(out, in)
	return err
}
