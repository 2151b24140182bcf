package page

import (
	"strings"
	"testing"
	"time"
)

// TestManyBackticks: a page of nothing else takes no longer than any other.
func TestManyBackticks(t *testing.T) {
	for _, page := range []string{
		"<pre>" + strings.Repeat("`", 2<<20),
		"<pre>" + strings.Repeat(" ", 90<<10) + strings.Repeat("<tt>", 300_000),
	} {
		begin := time.Now()
		toText(page, nil, 100<<10)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%v", took)
		}
	}
	if _, text, _ := toText("<pre>a ```` b</pre>", nil, 1000); !strings.HasPrefix(text, "`````\n") {
		t.Errorf("%q", text)
	}
}
