// Package util is called so.
package util
