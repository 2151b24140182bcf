package webpage

import (
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestManyBackticks: a page of nothing else takes no longer than any other.
func TestManyBackticks(t *testing.T) {
	for before, unit := range map[string]string{"": "`", strings.Repeat(" ", 90<<10): "<tt>"} {
		hermetic.Linear(t, unit, 1<<17, func(n int) {
			toText("<pre>"+before+strings.Repeat(unit, n), nil, 100<<10)
		})
	}
	if _, text, _ := toText("<pre>a ```` b</pre>", nil, 1000); !strings.HasPrefix(text, "`````\n") {
		t.Errorf("%q", text)
	}
}
