package fault_test

import (
	"errors"
	"fmt"

	"omniagent/internal/kit/fault"
)

// A fault names the thing, the reason and the next command.
func ExampleFault() {
	err := error(fault.New(fault.FileMissing, "the file %s does not exist", "notes.txt").Hint("omniagent runs list"))
	fmt.Println(err)
	fmt.Println(errors.Is(err, fault.FileMissing), fault.Of(err).Suggestion)
	// Output:
	// the file notes.txt does not exist
	// true omniagent runs list
}
