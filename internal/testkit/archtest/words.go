package archtest

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// isNo finds "is none" and "is no X". "There is no X" is English, and so are "is no longer" and "is no larger than".
func isNo() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\bthere )?\b((?:is|are|was|were|be) none\b|is no [a-z]+)( than)?`)
}

// rejected returns the expressions that match phrases which are correct grammar and no English: they come from word for
// word translation, and stop a reader. The phrase itself is the submatch.
func rejected() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?i)\b((?:for|to|of|by|from|with) who)\b`),
		regexp.MustCompile(`(?i)\b(what of|gone on with|goes on with|who writes|beside (?:it|them)|as it stands)\b`),
		regexp.MustCompile(`(?i)\b(nobody has|whoever|ha(?:s|ve) not the)\b`),
	}
}

// Words returns the rejected phrases in the comments, strings and pages of the module at root, one line a phrase,
// sorted. It leaves out testdata and generated pages. A place in pending, a file or the folder of a package, may
// still have some; one that has none is reported, so that the list can only shrink.
func Words(root string, pending []string) ([]string, error) {
	var problems []string
	unclean := map[string]bool{}
	phrases, isNo := rejected(), isNo() // compiling them takes longer than using them
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (d.Name() == "node_modules" || skipped(name, d.Name())) {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		place := rel
		if path.Ext(rel) == ".go" {
			place = path.Dir(rel)
		}
		for _, p := range passages(rel, name) {
			for _, phrase := range found(phrases, isNo, p.text) {
				unclean[place] = true
				if !slices.Contains(pending, place) {
					problems = append(problems, fmt.Sprintf("%s:%d: %q is not plain English", rel, p.line, phrase))
				}
			}
		}
		return nil
	})
	for _, place := range pending {
		if !unclean[place] {
			problems = append(problems,
				place+": has no rejected phrase any more: take it off the list of pending places")
		}
	}
	sort.Strings(problems)
	return problems, err
}

func found(phrases []*regexp.Regexp, isNo *regexp.Regexp, text string) []string {
	var all []string
	for _, phrase := range phrases {
		for _, match := range phrase.FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
	}
	for _, match := range isNo.FindAllStringSubmatch(text, -1) {
		if match[1] == "" && match[3] == "" && !strings.EqualFold(match[2], "is no longer") {
			all = append(all, match[2])
		}
	}
	return all
}

// passage is a text without the line breaks of its layout, and the line on which it begins.
type passage struct {
	line int
	text string
}

// passages returns the texts of a file that a person reads.
func passages(rel, name string) []passage {
	ext := path.Ext(rel)
	prose := ext == ".md" && !generated(rel)
	script := strings.HasPrefix(rel, "scripts/")
	if strings.HasPrefix(rel, "internal/testkit/archtest/words") { // the phrases themselves
		return nil
	}
	if ext != ".go" && !prose && !script {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	if ext == ".go" {
		return goPassages(text)
	}
	return paragraphs(string(text))
}

// generated reports whether a page comes from code, where its phrases are found.
func generated(rel string) bool {
	return strings.HasPrefix(rel, "docs/agents/") || strings.HasPrefix(rel, "skills/") ||
		slices.Contains([]string{"docs/commands.md", "docs/errors.md", "docs/evaluation/findings.md"}, rel)
}

// paragraphs divides a page at its empty lines.
func paragraphs(text string) []passage {
	var all []passage
	begin, n := 0, 0
	var words []string
	for line := range strings.Lines(text + "\n\n") {
		n++
		if strings.Trim(line, "# \t\n") != "" {
			if len(words) == 0 {
				begin = n
			}
			words = append(words, strings.TrimLeft(strings.TrimSpace(line), "# "))
			continue
		}
		if len(words) > 0 {
			all = append(all, passage{begin, strings.Join(words, " ")})
			words = nil
		}
	}
	return all
}

// goPassages returns the comments of a Go file, each as a whole, and its strings.
func goPassages(text []byte) []passage {
	var all []passage
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	last := -1 // the line of the comment before this token
	for {
		pos, kind, literal := s.Scan()
		line := file.Line(pos)
		switch kind {
		case token.EOF:
			return all
		case token.COMMENT:
			words := strings.TrimSpace(strings.Trim(literal, "/*"))
			if last == line-1 && words != "" {
				all[len(all)-1].text += " " + words
			} else {
				all = append(all, passage{line, words})
			}
			last = line
		case token.STRING:
			if words, err := strconv.Unquote(literal); err == nil {
				all = append(all, passage{line, words})
			}
			last = -1
		case token.SEMICOLON: // a line break, which does not end a comment of several lines
		default:
			last = -1
		}
	}
}
