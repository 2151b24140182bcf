package acp

import (
	"fmt"
	"path/filepath"
	"strings"

	"omniagent/internal/kit/diff"
)

// patch returns a diff in git's form, with the absolute path of the file.
func patch(d Diff) string {
	path := strings.TrimPrefix(filepath.ToSlash(d.Path), "/")
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", diff.Quote("a/"+path), diff.Quote("b/"+path))
	old, from := "", "/dev/null"
	if d.Old == nil {
		b.WriteString("new file mode 100644\n")
	} else {
		old, from = *d.Old, diff.Quote("a/"+path)
	}
	if old == d.New {
		return b.String()
	}
	b.WriteString(diff.Names(from, diff.Quote("b/"+path)))
	_ = diff.Write(&b, []byte(old), []byte(d.New)) // a write to memory cannot fail
	return b.String()
}
