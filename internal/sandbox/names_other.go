//go:build !linux

package sandbox

// Placeholders returns nothing: only on Linux names are made for commands.
func Placeholders(string) []string { return nil }
