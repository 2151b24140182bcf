package ignore_test

import (
	"fmt"

	"omniagent/internal/sys/ignore"
)

func ExampleRules_Match() {
	rules := ignore.Of("*.log", "!keep.log", "build/")
	for _, path := range []string{"a.log", "keep.log", "main.go"} {
		fmt.Println(path, rules.Match(path, false) == ignore.Ignored)
	}
	fmt.Println("build", rules.Match("build", true) == ignore.Ignored)
	// Output:
	// a.log true
	// keep.log false
	// main.go false
	// build true
}
