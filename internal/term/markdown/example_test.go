package markdown_test

import (
	"fmt"

	"omniagent/internal/term/markdown"
)

// A text comes in pieces, and its lines as soon as they are finished.
func ExampleRenderer() {
	r := markdown.New(markdown.Options{Width: 40, Wraps: true})
	lines := r.Write("# Why\n\n- it is **fa")
	lines = append(lines, r.Write("st**\n- it is small\n")...)
	lines = append(lines, r.Close()...)
	for _, line := range lines {
		fmt.Println(line)
	}
	// Output:
	// # Why
	//
	// - it is **fast**
	// - it is small
}
