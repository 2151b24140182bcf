//go:build unix

package manual

import (
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the picture of the first run anew")

// picture is where the picture of the first run is; the README shows it.
const picture = "docs/first-run.svg"

// TestPicture records what the README's first run shows in a terminal, and compares it with the picture. With -update,
// as scripts/picture calls it, the recording becomes the picture.
func TestPicture(t *testing.T) {
	r := newReader(t)
	var recorded strings.Builder
	for _, b := range blocks(t, "README.md") {
		if !strings.HasPrefix(b.text, "$ omniagent run --rehearse") {
			continue
		}
		for _, part := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			typed, _, _ := strings.Cut(part, "\n")
			if r.keys = []string{"1"}; !strings.Contains(typed, "--rehearse") {
				r.keys = nil
			}
			shown, _ := r.types(t, "-uc", typed)
			fmt.Fprintf(&recorded, "$ %s\n%s", typed, shown)
		}
	}
	path := filepath.Join(repository, picture)
	if *update {
		must(t, os.WriteFile(path, []byte(drawn(recorded.String())), 0o644))
	}
	is, err := os.ReadFile(path)
	must(t, err)
	if want := settled(drawn(recorded.String())); settled(string(is)) != want {
		t.Errorf("%s is not what the first run shows: scripts/picture records it\n%s\nnot\n%s", picture, is, want)
	}
}

// The measures of the picture.
const (
	columns       = 84 // the widest line, with a long wait in it
	characterWide = 8
	lineHigh      = 19
	margin        = 16
	titleBar      = 28
)

// drawn draws what a terminal shows, in the colours that the reader of the page prefers.
func drawn(shown string) string {
	lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
	width, height := columns*characterWide+2*margin, len(lines)*lineHigh+titleBar+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">
<title>omniagent run --rehearse, and omniagent undo</title>
<style>
.back { fill: #ffffff; stroke: #d0d7de } .bar { fill: #f6f8fa } .dot { fill: #d0d7de }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }
text { fill: #1f2328 } .typed, .asks { font-weight: bold }
.typed { fill: #0550ae } .asks { fill: #8250df } .aside { fill: #656d76 } .made { fill: #116329 }
@media (prefers-color-scheme: dark) {
.back { fill: #0d1117; stroke: #30363d } .bar { fill: #161b22 } .dot { fill: #30363d }
text { fill: #e6edf3 } .typed { fill: #79c0ff } .asks { fill: #d2a8ff } .aside { fill: #8b949e } .made { fill: #7ee787 }
}
</style>
<rect class="back" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>
<path class="bar" d="M1 9 a8 8 0 0 1 8 -8 h%d a8 8 0 0 1 8 8 v%d h-%d z"/>
`, width, height, width, height, width-1, height-1, width-18, titleBar-9, width-2)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle class="dot" cx="%d" cy="15" r="5"/>`+"\n", 18+18*i)
	}
	for i, line := range lines {
		if line == "" {
			continue
		}
		var text strings.Builder
		_ = xml.EscapeText(&text, []byte(line)) // into memory
		fmt.Fprintf(&b, `<text class="%s" x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", looks(line), margin,
			titleBar+margin+13+i*lineHigh, text.String())
	}
	return b.String() + "</svg>\n"
}

// looks is the class of a line.
func looks(line string) string {
	switch {
	case strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "> "):
		return "typed"
	case strings.HasPrefix(line, "? "):
		return "asks"
	case strings.HasPrefix(line, "omniagent: "), strings.HasPrefix(line, "Run "), strings.HasPrefix(line, "Type "):
		return "aside"
	case regexp.MustCompile(`^  (added|\S+ \(removed\))`).MatchString(line):
		return "made"
	}
	return "plain"
}
