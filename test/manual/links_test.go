//go:build unix

package manual

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLinks: what a page points to is there, to the heading.
func TestLinks(t *testing.T) {
	pages := []string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		must(t, err)
		pages = append(pages, found...)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code := regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			name, heading, _ := strings.Cut(m[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s points to %s, which is not there", page, m[1])
				continue
			}
			if heading != "" && !slices.Contains(headings(t, target), heading) {
				t.Errorf("%s points to %s, and there is no such heading", page, m[1])
			}
		}
	}
}

// headings are those of a page, as links name them.
func headings(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	list := []string{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(name, " ", "-"))
	}
	return list
}
