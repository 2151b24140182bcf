package diff_test

import (
	"fmt"
	"os"

	"omniagent/internal/kit/diff"
)

func ExampleWrite() {
	was, is := []byte("one\ntwo\nthree\n"), []byte("one\n2\nthree\n")
	if err := diff.Write(os.Stdout, was, is); err != nil {
		fmt.Println(err)
	}
	removed, added := diff.Count(was, is)
	fmt.Println(removed, added)
	// Output:
	// @@ -1,3 +1,3 @@
	//  one
	// -two
	// +2
	//  three
	// 1 1
}
