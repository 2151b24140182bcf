package lines_test

import (
	"fmt"

	"omniagent/internal/kit/lines"
)

// A line is the same wherever the bytes were cut, and one that is too long is told as soon as it is.
func ExampleCutter() {
	cutter := lines.Cutter{Most: 8}
	for _, piece := range []string{"one\ntw", "o\na line that is too long\nla", "st"} {
		for rest := []byte(piece); ; {
			line, more, ok := cutter.Cut(rest)
			if !ok {
				break
			}
			fmt.Printf("%q long=%v\n", line.Text, line.Long)
			rest = more
		}
	}
	line, _ := cutter.Last()
	fmt.Printf("%q torn=%v\n", line.Text, line.Torn)
	// Output:
	// "one" long=false
	// "two" long=false
	// "a line t" long=true
	// "last" torn=true
}
