//go:build !linux

package sandbox

// InContainer is for Linux.
const InContainer = ""

// NamespaceSettings is for Linux.
func NamespaceSettings(string) (reason, fix string) { return "", "" }
