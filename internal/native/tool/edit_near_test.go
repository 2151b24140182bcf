package tool

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

func TestWhatIsNotFoundIsExplained(t *testing.T) {
	d := newDesk(t)
	filler := strings.Repeat("// nothing of interest here\n", 50)
	code := "func main() {\n\tif x == 1 {\n\t\tfmt.Println(\"one\")  \n\t}\n\treturn\n}\n"
	d.put("a.go", filler+code+filler)
	for _, c := range []struct {
		name, old string
		parts     []string
	}{
		{"spaces for tabs", "    if x == 1 {\n        fmt.Println(\"one\")  \n", []string{
			"old_string was not found in a.go. The nearest place is line 52:\n    52\t\tif x == 1 {\n",
			"Line 52 differs: the file indents it with 1 tab, old_string with 4 spaces",
		}},
		{
			"blanks at the end", "\t\tfmt.Println(\"one\")\n\t}\n",
			[]string{"Line 53 differs: the file ends it with 2 spaces, old_string with nothing"},
		},
		{"quotes", "\t\tfmt.Println(“one”)  \n", []string{
			"Line 53 differs: quotes, dashes or blanks that look alike",
			`\u201cone`,
		}},
		{"letters", "\tIf X == 1 {", []string{"Line 52 differs: capital and small letters"}},
		{"blanks inside", "\tif x  ==  1 {", []string{"Line 52 differs: the blanks inside the line: at column 7"}},
		{
			"one word", "\t\tfmt.Printl(\"one\")",
			[]string{"The nearest place is line 53", `at column 13 the file has "n(`, `old_string has "(`},
		},
		{
			"a later line", "func main() {\n\tif x == 1 {\n\t\tfmt.Println(\"two\")\n",
			[]string{"The nearest place is line 51", "Line 53 differs"},
		},
		{
			"a line too many", "\treturn\n}\n\nfunc next() {",
			[]string{"The nearest place is line 55", `Line 57 differs`},
		},
		{
			"numbers of Read", "    52\t\tif x == 1 {\n    53\t\t\tfmt.Println(\"one\")  \n",
			[]string{"line numbers that Read shows"},
		},
		{"escaped", `\tif x == 1 {\n\t\tfmt.Println(\"one\")`, []string{"escaped once too often"}},
		{"entities", "fmt.Println(&quot;one&quot;)", []string{"escaped once too often"}},
		{"foreign", "Ω∆ΨΞ", []string{"Nothing in the file is similar"}},
		{"only blanks", "\t\t\t\t\n   \n", []string{"was not found"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.t = t
			d.fails(Edit, object{"file_path": "a.go", "old_string": c.old, "new_string": "x"}, c.parts...)
		})
	}
	d.t = t
	d.put("windows", strings.ReplaceAll(code, "\n", "\r\n"))
	d.fails(Edit, object{"file_path": "windows", "old_string": "\tif x == 2 {\n\t\tfmt", "new_string": "x"},
		"Line 2 differs: at column 10")
	d.fails(Edit, object{"file_path": "windows", "old_string": "\treturn\n}\n\n\n", "new_string": "x"},
		"what differs is the end of the last one")
	d.put("end", "a line\nthe last one")
	d.fails(Edit, object{"file_path": "end", "old_string": "the last one\nand more", "new_string": "x"},
		"The file ends where old_string continues")
	d.put("empty", "")
	d.fails(Edit, object{"file_path": "empty", "old_string": "x", "new_string": "y"}, "The file is empty")
}

// TestTheNearestPlaceIsFoundFast: the message must not cost more than the edit. The limit is generous; the search
// itself ends after searchTime.
func TestTheNearestPlaceIsFoundFast(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	line := func() string {
		return fmt.Sprintf("\tvalue%d := compute(%d, %d) // %x", random.IntN(1e6), random.IntN(100), random.IntN(100),
			random.Uint64())
	}
	var b strings.Builder
	for b.Len() < 10<<20 {
		b.WriteString(line() + "\n}\n\n")
	}
	texts := map[string]string{
		"lines": b.String(), "one line": strings.ReplaceAll(b.String()[:2<<20], "\n",
			" "), "equal lines": strings.Repeat("}\n", 1<<20),
	}
	wanted := map[string]string{
		"lines": strings.Repeat(line()+"\n}\n", 100), "braces": strings.Repeat("}\n\t",
			300), "long": strings.Repeat("ab", 1<<20),
	}
	for of, text := range texts {
		for name, old := range wanted {
			if strings.Contains(text, old) {
				continue
			}
			began := time.Now()
			err := notFound(t.Context(), []byte(text), endingsOf([]byte(text)), old, "a")
			if took := time.Since(began); took > hermetic.Patience {
				t.Errorf("%s in %s took %v", name, of, took)
			} else {
				t.Logf("%s in %s took %v", name, of, took)
			}
			if len(failed(err).Text) > 20_000 {
				t.Errorf("%s in %s: the message has %d bytes", name, of, len(failed(err).Text))
			}
		}
	}
}
