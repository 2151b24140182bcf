// Package secrets puts canaries where users keep keys, lets the native agent work, and looks for them in everything
// that comes out.
package secrets
