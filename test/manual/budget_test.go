//go:build unix

package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mostWords is what the pages have; the goal is 35,000.
const mostWords = 38_200

// generated is what the program writes into a page.
var generated = regexp.MustCompile(`(?s)<!-- generated:.*?<!-- /generated -->`)

// TestWordsOfPages: what people read to use the program stays short. Pages and parts that are made from tables, the
// evaluation, and what is for auditors and developers are not counted.
func TestWordsOfPages(t *testing.T) {
	others := []string{
		"docs/commands.md", "docs/errors.md", "docs/exit-codes.md", "docs/agents.md", "docs/conformance.md",
		"docs/demo.md", "docs/threats.md", "docs/architecture.md", "docs/eidolon.md",
		"docs/orchestration.md",
	}
	total := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/recipes/*.md"} {
		pages, err := filepath.Glob(filepath.Join(repository, pattern))
		must(t, err)
	page:
		for _, page := range pages {
			for _, other := range others {
				if strings.HasSuffix(filepath.ToSlash(page), other) {
					continue page
				}
			}
			text, err := os.ReadFile(page)
			must(t, err)
			total += len(strings.Fields(generated.ReplaceAllString(string(text), "")))
		}
	}
	if t.Logf("%d words", total); total > mostWords {
		t.Errorf("the pages have %d words, and not at most %d", total, mostWords)
	}
}
