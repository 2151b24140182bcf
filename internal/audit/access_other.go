//go:build !unix

package audit

import "os"

// writableDir only looks whether dir is there: permissions on Windows are lists that only an attempt evaluates.
func writableDir(dir string) error {
	_, err := os.Stat(dir)
	return err
}

func readOnly(error) bool { return false }
