package acp

import (
	"fmt"
	"path/filepath"
	"strings"

	"omniagent/internal/diff"
)

// patch returns a diff in git's form, with the absolute path of the file.
func patch(d Diff) string {
	path := strings.TrimPrefix(filepath.ToSlash(d.Path), "/")
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", diff.Quote("a/"+path), diff.Quote("b/"+path))
	var old string
	if d.Old == nil {
		fmt.Fprintf(&b, "new file mode 100644\n")
	} else {
		old = *d.Old
	}
	if old == d.New {
		return b.String()
	}
	if d.Old == nil {
		b.WriteString("--- /dev/null\n")
	} else {
		fmt.Fprintf(&b, "--- %s\n", diff.Quote("a/"+path))
	}
	fmt.Fprintf(&b, "+++ %s\n", diff.Quote("b/"+path))
	_ = diff.Write(&b, []byte(old), []byte(d.New)) // a write to memory cannot fail
	return b.String()
}
