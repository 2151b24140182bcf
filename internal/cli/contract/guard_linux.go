package contract

import "golang.org/x/sys/unix"

func replaceStdout(with int) error { return unix.Dup3(with, 1, 0) }
