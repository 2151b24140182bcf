//go:build unix && !linux

package tool

const flipVariable = "OMNIAGENT_TOOL_TEST_FLIP"

// flipUntilTheEnd needs a call that exchanges two names at once, which only Linux has in this form.
func flipUntilTheEnd(string) {}
