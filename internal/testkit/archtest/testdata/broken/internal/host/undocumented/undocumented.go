//go:build linux || !linux

package undocumented
