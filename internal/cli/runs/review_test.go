package runs

import (
	"strings"
	"testing"
)

func TestReviewOfOneFile(t *testing.T) {
	t.Parallel()
	d := reviewData{Files: 1, Run: "run-1", Unread: []string{"prose"}}
	if got := d.PlainText(); !strings.Contains(got, "0 findings in 1 file, and") {
		t.Error(got)
	}
}
