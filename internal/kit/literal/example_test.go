package literal_test

import (
	"fmt"

	"omniagent/internal/kit/literal"
)

// An edit changes the bytes of one value, and keeps comments.
func ExampleSetTOML() {
	file := []byte("# mine\nmodel = \"small\"  # cheap\n")
	file, err := literal.SetTOML(file, []string{"model"}, "large")
	fmt.Print(string(file))
	fmt.Println(err)
	// Output:
	// # mine
	// model = "large"  # cheap
	// <nil>
}
