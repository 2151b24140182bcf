package guard

import (
	"fmt"
	"strings"
	"testing"
)

// TestAlters: which paths a line names as those that it changes, each with W for whole, R for removed and B for what is
// below.
func TestAlters(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"echo x > a":                        "/w/a W",
		"echo x >> a 2>/dev/null":           "/w/a; /dev/null W",
		"cat > d/a <<EOF\nx\nEOF":           "/w/d/a W",
		"cd d && echo x > a":                "/w/d/a W",
		"cd $X && echo x > a":               "",
		"bash -lc 'echo x > a'":             "/w/a W",
		"rm -rf a b; rm $X c*":              "/w/a RB; /w/b RB",
		"mv a d":                            "/w/a RB; /w/d WB from /w/a; /w/d/a WB from /w/a",
		"cp -r a /x/d":                      "/x/d WB; /x/d/a WB",
		"sed -i s/a/b/ f":                   "/w/f",
		"sed s/a/b/ f":                      "",
		"cat f; less f; go test ./f":        "",
		"chmod 700 f":                       "/w/f",
		"mkdir -p d/e; touch f":             "/w/d/e; /w/f",
		"echo x | tee f; echo x | tee -a g": "/w/f W; /w/g",
		"find d -name x -delete":            "",
		"echo 'rm f'":                       "",
		"git rm f":                          "",
		"if":                                "",
	} {
		var got []string
		for _, a := range Alters(line, "/w", "/home/u") {
			kind := ""
			for _, k := range []struct {
				is   bool
				word string
			}{{a.Whole, "W"}, {a.Removes, "R"}, {a.Beneath, "B"}} {
				if k.is {
					kind += k.word
				}
			}
			from := ""
			if a.From != "" {
				from = "from " + a.From
			}
			got = append(got, strings.Join(strings.Fields(fmt.Sprint(a.Path, " ", kind, " ", from)), " "))
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s alters %q, not %q", line, text, want)
		}
	}
}
