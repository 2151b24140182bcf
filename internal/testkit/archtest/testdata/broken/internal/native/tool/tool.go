// Package tool reaches files by their paths, which only test files may.
package tool

import "io/ioutil"

import (
	system "os"
	"path/filepath"
	"syscall"
)

type opener func(name string) (system.FileInfo, error)

func paths() []any {
	data, _ := system.ReadFile("a")
	var open opener = system.Stat
	return []any{
		data, open, system.ErrNotExist, system.IsNotExist(nil), system.ModeDir, filepath.Join("a", "b"), system.
			Remove("a"),
		filepath.EvalSymlinks,
		filepath.WalkDir,
		syscall.Open,
		ioutil.ReadFile,
	}
}
