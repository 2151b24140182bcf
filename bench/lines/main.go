// Command lines counts the product's code, room by room: the lines that hold at least one token, so that neither
// comments nor empty lines count.
//
// The product is the program and internal/. What serves tests alone is printed below it and does not count: archtest,
// conformance, budget, measure, order, agenttest and tools.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	wide := flag.Int("wide", 120, "a line is too wide above so many columns, where a tab counts as four")
	root := flag.String("root", ".", "the folder of the module")
	flag.Parse()
	if err := run(*root, *wide); err != nil {
		fmt.Fprintln(os.Stderr, "lines:", err)
		os.Exit(1)
	}
}

// room is what was counted in one package of the first level.
type room struct {
	name        string
	lines, wide int
	test        int
}

func run(root string, wide int) error {
	rooms := map[string]*room{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (name == "testdata" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		name := roomOf(filepath.ToSlash(rel))
		if rooms[name] == nil {
			rooms[name] = &room{name: name}
		}
		return rooms[name].add(path, wide)
	})
	if err != nil {
		return err
	}
	if len(rooms) == 0 {
		return errors.New("there is no Go file beneath " + root)
	}
	report(rooms)
	return nil
}

// roomOf names the room of a file: the program, a folder of internal, or another folder of the module.
func roomOf(path string) string {
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 1:
		return "(root)"
	case parts[0] == "internal" && len(parts) > 2:
		return "internal/" + parts[1]
	default:
		return parts[0]
	}
}

func (r *room) add(path string, wide int) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if len([]rune(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "))) > wide {
			r.wide++
		}
	}
	n := tokens(text)
	if strings.HasSuffix(path, "_test.go") {
		r.test += n
	} else {
		r.lines += n
	}
	return nil
}

// tokens counts the lines that a token stands on. A raw string counts with each of its lines.
func tokens(text []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	n, last := 0, 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // the scanner's own
		}
		first := file.Line(pos)
		end := first + strings.Count(lit, "\n")
		n += end - max(first-1, last)
		last = end
	}
}

func report(rooms map[string]*room) {
	var product, rest []*room
	for _, r := range rooms {
		name, inside := strings.CutPrefix(r.name, "internal/")
		if r.name == "cmd" || inside && name != "testkit" {
			product = append(product, r)
		} else {
			rest = append(rest, r)
		}
	}
	table("product", product)
	table("other", rest)
}

func table(title string, rooms []*room) {
	slices.SortFunc(rooms, func(a, b *room) int { return b.lines - a.lines })
	sum := room{name: title}
	for _, r := range rooms {
		sum.lines += r.lines
		sum.test += r.test
		sum.wide += r.wide
	}
	fmt.Printf("%-28s %7s %7s %7s\n", "", "lines", "tests", "wide")
	for _, r := range append([]*room{&sum}, rooms...) {
		fmt.Printf("%-28s %7d %7d %7d\n", r.name, r.lines, r.test, r.wide)
	}
	fmt.Println()
}
