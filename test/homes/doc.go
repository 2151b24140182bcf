// Package homes lets the built program work with the files of a person who used an earlier version: runs, sessions,
// turns that can be undone, trusted content and allowed agents, as testdata has them. Each test works with a copy.
package homes
