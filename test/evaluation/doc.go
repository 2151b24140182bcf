// Package evaluation grades the built program against the 74 failure modes of the CLI Agent Spec, as an outsider: it
// starts the binary with no terminal and nothing to read, in an empty home, and believes only what it sees (output,
// exit status, schema, files).
//
// It promises that a grade is computed, never stated: each mode has criteria for the levels 1, 2 and 3, each an
// observation, and the score is the highest level up to which all of them hold. A mode of which nothing can occur yet
// is "?", with the reason, and does not count. The result is docs/evaluation/findings.md, which a test compares with
// what is seen now:
//
//	go test ./test/evaluation -update
//
// It refuses to be kind: a bad program is run through the same checks, and must do badly.
package evaluation
