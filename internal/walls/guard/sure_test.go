package guard

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatHasRun: which paths a line that succeeded has changed for certain, with what it made of "old\n", or ? where
// that is not known.
func TestWhatHasRun(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"echo a b > f":                      `f "a b\n"`,
		"echo a >> f":                       `f "old\na\n"`,
		"printf 'a\\nb' > f 2>/dev/null":    `f "a\nb"; null ?`,
		"printf %s a > f; echo -n a > g":    "f ?; g ?",
		"cat > f <<'EOF'\na $x\nEOF":        `f "a $x\n"`,
		"cat > f <<EOF\na $x\nEOF":          "f ?",
		": > f; touch g":                    `f ""; g "old\n"`,
		"make > f; sed -i s/a/b/ g":         "f ?; g ?",
		"rm f":                              "f gone",
		"false && echo a > f; true":         "",
		"cd d && echo a > f":                `f "a\n"`,
		"cd d && echo a > f || true":        "",
		"true || echo a > f":                "",
		"! true && echo a > f":              `f "a\n"`,
		"! { true && echo a > f; }":         "",
		"if x; then echo a > f; fi":         "",
		"case x in y) rm f;; esac":          "",
		"for i in 1; do echo a > f; done":   "",
		"g() { rm f; }; echo a > h":         "",
		"exit 0; echo a > f":                "",
		"$X; echo a > f":                    "",
		"sleep 1 & echo a > f":              `f "a\n"`,
		"echo a > f &":                      "",
		"(echo a > f); { echo b > g; }":     `f "a\n"; g "b\n"`,
		"timeout 5 rm f; find . -exec rm f": "",
		"bash -lc 'echo a > f && rm g'":     `f "a\n"; g gone`,
		"bash -c 'false && rm f'; true":     "",
		"echo a > f > g":                    "f ?; g ?",
		"x=$(false && rm f)":                "",
	} {
		var got []string
		for _, a := range Alters(line, "/w", "") {
			if !a.Sure {
				continue
			}
			makes := "?"
			if a.Edit != nil {
				content, is, _ := a.Edit([]byte("old\n"), true)
				if makes = "gone"; is {
					makes = fmt.Sprintf("%q", content)
				}
			}
			got = append(got, a.Path[strings.LastIndex(a.Path, "/")+1:]+" "+makes)
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s: %s, not %s", line, text, want)
		}
	}
}
