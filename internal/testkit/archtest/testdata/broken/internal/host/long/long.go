// Package long is filled by the test.
package long
