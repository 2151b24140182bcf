package text_test

import (
	"fmt"

	"omniagent/internal/kit/text"
)

func ExampleNearest() {
	commands := []string{"run", "runs", "review", "undo"}
	fmt.Println(text.Nearest("reveiw", commands))
	fmt.Printf("%q\n", text.Nearest("deploy", commands))
	// Output:
	// review
	// ""
}
