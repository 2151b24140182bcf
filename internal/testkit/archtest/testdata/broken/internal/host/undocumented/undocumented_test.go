// Package undocumented is documented only in a test.
package undocumented
