// Package unbuilt does not build.
package unbuilt

var _ = absent
