//go:build !linux

package process

import "os"

// numberSpace is for Linux: elsewhere every number counts everywhere.
func numberSpace(string) string { return "" }

// withMark returns nothing: no file shows the environment of other processes.
func withMark(string) []*os.Process { return nil }

func killMarked(string) {}
