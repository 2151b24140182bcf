//go:build !linux

package process

// concealed is a role for Linux.
func concealed([]string) error { return nil }
