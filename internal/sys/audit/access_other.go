//go:build !unix

package audit

import "os"

// writableDir only checks that dir exists: Windows evaluates access lists only on an attempt.
func writableDir(dir string) error {
	_, err := os.Stat(dir)
	return err
}

func readOnly(error) bool { return false }
