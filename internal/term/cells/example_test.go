package cells_test

import (
	"fmt"

	"omniagent/internal/term/cells"
)

// A wide letter takes two cells, a style none.
func ExampleWidth() {
	fmt.Println(cells.Width("abc"), cells.Width("日本"), cells.Width("\x1b[1mabc\x1b[m"))
	fmt.Println(cells.Cut("日本語", 5))
	// Output:
	// 3 4 3
	// 日本…
}
