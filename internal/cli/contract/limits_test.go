package contract

import (
	"strings"
	"sync"
	"testing"
)

// TestManyWarnings: a handler that warns in a loop leaves room for the answer, which says that there were more.
func TestManyWarnings(t *testing.T) {
	c := &Call{mu: &sync.Mutex{}}
	for i := range 3 * mostWarnings {
		c.Warn("ODD", "%d is odd", i)
	}
	if n := len(c.warnings); n != mostWarnings || c.warnings[n-1].Code != "WARNINGS_OMITTED" {
		t.Errorf("%d warnings, the last is %+v", n, c.warnings[n-1])
	}
}

// TestManyCuts: of many shortened members, the answer lists those that lost most and counts the others.
func TestManyCuts(t *testing.T) {
	var cuts []cutField
	for i := range 5 * mostCutsListed {
		cuts = append(cuts, cutField{name: "m", had: i})
	}
	c, a := &Call{mu: &sync.Mutex{}}, &answer{}
	c.reportCuts(a, cuts)
	fields, _ := a.meta.get("truncated_fields")
	n := len(fields.([]any))
	first := c.warnings[0].Detail.(map[string]any)
	if n != mostCutsListed || len(c.warnings) != n+1 || first["original_size"] != 5*mostCutsListed-1 ||
		!strings.HasPrefix(c.warnings[n].Message, "40 more ") {
		t.Errorf("%d are listed; %+v", n, c.warnings)
	}
}

// TestManyStrayWords: only the beginning of what a library prints without end is kept.
func TestManyStrayWords(t *testing.T) {
	s := strayText{done: make(chan struct{})}
	s.read(strings.NewReader(strings.Repeat("stray ", strayLimit)))
	if n := len(s.output()); n != strayLimit {
		t.Errorf("%d bytes are held", n)
	}
}
