// Command mutate breaks the product on purpose, one place at a time, and says whether a test notices.
//
// A mutation is a block of mutations.txt: a second chance or a guard that is taken away. With -limits it makes every
// constant a thousand times as large whose name says that it is a limit. The tree is not touched: a mutated file is an
// overlay of the build. Which test noticed stands beside a mutation that was killed, since a test that fails at times
// kills as well.
//
//	go run ./bench/mutate                   # those of mutations.txt
//	go run ./bench/mutate -limits engine    # the limits of one room, and of the rooms below it
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed mutations.txt
var table string

func main() {
	rooms := flag.String("limits", "", "instead the limits of these `rooms` of internal, separated by commas")
	pattern := flag.String("run", "", "only mutations whose name matches this `regexp`")
	tests := flag.String("tests", "", "only tests whose name matches this `regexp`")
	flag.Parse()
	if err := run(*rooms, *pattern, *tests); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(rooms, pattern, tests string) error {
	only, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	all, err := parse(table)
	if err != nil {
		return err
	}
	if rooms != "" {
		all = nil
		for room := range strings.SplitSeq(rooms, ",") {
			more, err := limits(room)
			if err != nil {
				return err
			}
			all = append(all, more...)
		}
	}
	survived := 0
	for _, m := range all {
		if !only.MatchString(m.name) {
			continue
		}
		if tests != "" {
			m.tests = append(m.tests, "-run="+tests)
			if m.elsewhere != nil {
				m.elsewhere = append(m.elsewhere, "-run="+tests)
			}
		}
		began := time.Now()
		result, by, err := m.try()
		if errors.Is(err, errNone) && tests != "" {
			result, err = survives, nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if result == survives || result == byChance {
			survived++
		}
		fmt.Printf("%-8s %4.0f s  %s (%s)  %s\n", result, time.Since(began).Seconds(), m.name, m.file, by)
	}
	if survived > 0 {
		return fmt.Errorf("%d mutations survived", survived)
	}
	return nil
}

// mutation is one change of one file, and the tests that have to notice it.
type mutation struct {
	name, file, old, new string
	tests                []string          // arguments of go test
	elsewhere            []string          // of another one, if those notice nothing
	texts                map[string][]byte // the files, if they are not made of old and new
}

// parse reads the table. A block is
//
//	== NAME
//	file PATH
//	test ARGUMENTS OF GO TEST
//	- a line that is there
//	+ a line that comes in its place
func parse(text string) (all []mutation, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		if word != "==" && word != "" && word != "#" && len(all) == 0 {
			return nil, fmt.Errorf("%q stands before the first ==", line)
		}
		switch word {
		case "==":
			all = append(all, mutation{name: rest})
		case "file":
			all[len(all)-1].file = rest
		case "test":
			all[len(all)-1].tests = strings.Fields(rest)
		case "-":
			all[len(all)-1].old += rest + "\n"
		case "+":
			all[len(all)-1].new += rest + "\n"
		case "", "#":
		default:
			return nil, fmt.Errorf("%q is not the line of a mutation", line)
		}
	}
	return all, nil
}

// mutated are the files with the mutation. The lines that it replaces have to be there once; neither white space
// nor a comment at the end counts.
func (m mutation) mutated() (map[string][]byte, error) {
	if m.texts != nil {
		return m.texts, nil
	}
	text, err := os.ReadFile(m.file)
	if err != nil {
		return nil, err
	}
	var want []string
	for line := range strings.Lines(m.old) {
		code, _, _ := strings.Cut(line, " // ")
		want = append(want, strings.Join(strings.Fields(regexp.QuoteMeta(code)), `[ \t]+`)+`(?:[ \t]*//.*)?`)
	}
	old := regexp.MustCompile(`(?m)^[ \t]*` + strings.Join(want, `\n[ \t]*`) + `$`)
	if n := len(old.FindAllIndex(text, -1)); n != 1 {
		return nil, fmt.Errorf("the lines are %d times in %s, not once", n, m.file)
	}
	text = old.ReplaceAllLiteral(text, []byte(strings.TrimSuffix(m.new, "\n")))
	return map[string][]byte{m.file: text}, nil
}

var errNone = errors.New("no test ran")

// What became of a mutation.
const (
	killed    = "killed"
	survives  = "survived"
	notBuilt  = "no build" // the number does not fit its type
	otherwise = "timeout"  // it hangs, which the mutation may have done, or the machine
	byChance  = "chance"   // the test that noticed passes when it is repeated
)

// try runs the tests with the mutation: first its own, then those elsewhere if they noticed nothing.
func (m mutation) try() (result, by string, err error) {
	texts, err := m.mutated()
	if err != nil {
		return "", "", err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := write(dir, texts)
	if err != nil {
		return "", "", err
	}
	tests := m.tests
	if result, by, err = test(overlay, tests); result == survives && len(m.elsewhere) > 0 {
		tests = m.elsewhere
		result, by, err = test(overlay, tests)
	}
	if result == killed && strings.HasPrefix(by, "Test") {
		top, _, _ := strings.Cut(by, "/")
		again, _, err := test(overlay, append(slices.Clone(tests), "-run=^"+top+"$"))
		if again == survives || err != nil {
			return byChance, by, err
		}
	}
	return result, by, err
}

// write makes a file in dir that has the build read these texts in place of the files of those names.
func write(dir string, texts map[string][]byte) (string, error) {
	replace := map[string]string{}
	for name, text := range texts {
		whole, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[whole] = filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(replace[whole], text, 0o600); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, data, 0o600)
}

// test runs tests with an overlay.
func test(overlay string, arguments []string) (result, by string, err error) {
	arguments = append([]string{"test", "-vet=off", "-count=1", "-failfast", "-timeout=5m"}, arguments...)
	cmd := exec.Command("go", arguments...)
	// The tests build the program themselves: what they build has the mutation as well.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay, "OMNIAGENT_WHOLE=1")
	out, err := cmd.CombinedOutput()
	failed := regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`).FindAllSubmatch(out, -1)
	switch {
	case bytes.Contains(out, []byte("[build failed]")):
		reason := regexp.MustCompile(`(?m)^\S+\.go:\d.*`).Find(out)
		if reason == nil {
			return "", "", fmt.Errorf("it does not compile:\n%s", out)
		}
		return notBuilt, string(reason), nil
	case len(failed) > 0: // the last is the innermost
		return killed, string(failed[len(failed)-1][1]), nil
	case bytes.Contains(out, []byte("panic: test timed out")):
		return otherwise, "", nil
	case err != nil:
		return killed, "no single test", nil
	case bytes.Count(out, []byte("no tests to run")) == bytes.Count(out, []byte("ok  \t")):
		return "", "", fmt.Errorf("%w: %s", errNone, out)
	}
	return survives, "", nil
}

// elsewhere returns the tests of limits that a room's own tests cannot try.
func elsewhere(room string) []string {
	switch room {
	case "host/acp":
		return []string{"./internal/testkit/agenttest", "./test/hosts/acp"}
	case "talk/conversation":
		return []string{"./internal/testkit/agenttest"}
	case "wire/mcp":
		return []string{"./test/start"}
	case "work/run":
		return []string{"./test/run"}
	case "walls/sandbox":
		return []string{"./test/walls"}
	}
	return nil
}

// limits are mutations that make limits a thousand times as large.
func limits(room string) (all []mutation, err error) {
	err = filepath.WalkDir(filepath.Join("internal", room), func(folder string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return fs.SkipDir
		}
		more, err := limitsOf(folder)
		all = append(all, more...)
		return err
	})
	for i := range all {
		all[i].elsewhere = elsewhere(room)
	}
	return all, err
}

// limitsOf are the mutations of the limits in the files of one package. The number of a limit stays with its name, and
// what uses it gets a larger one under another name: a test that is written with the name keeps asking for the limit as
// it was, instead of growing along.
func limitsOf(folder string) (all []mutation, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	// What limits are called. Only numbers count: no test waits a thousand times as long.
	limit := regexp.MustCompile(`^(max|most|least|longest)|(Limit|Most|Least)$|^abreast$`)
	set, texts, files := token.NewFileSet(), map[string][]byte{}, map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if texts[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
		if files[name], err = parser.ParseFile(set, name, texts[name], 0); err != nil {
			return nil, err
		}
	}
	room := strings.TrimPrefix(filepath.ToSlash(folder), "internal/")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := func(pos token.Pos) int { return set.Position(pos).Offset }
		for _, found := range declared(files[name]) {
			ident, value := found.spec.Names[0], found.spec.Values[0]
			old := string(texts[name][at(value.Pos()):at(value.End())])
			if !limit.MatchString(lowerFirst(ident.Name)) || strings.Contains(old, "time.") ||
				strings.ContainsAny(old, "\"`\n") {
				continue
			}
			m := mutation{
				name: room + "." + found.within + ident.Name, file: name, texts: map[string][]byte{},
				tests: []string{"./" + filepath.ToSlash(folder)},
			}
			large := "1000 * (" + old + ")"
			if found.within != "" {
				m.texts[name] = edited(texts[name], []edit{{at(value.Pos()), at(value.End()), large}})
				all = append(all, m)
				continue
			}
			for other, file := range files {
				var edits []edit
				for _, use := range uses(file, ident) {
					edits = append(edits, edit{at(use.Pos()), at(use.End()), ident.Name + "Mutated"})
				}
				if other == name {
					end := len(texts[name])
					edits = append(edits, edit{end, end, "\nconst " + ident.Name + "Mutated = " + large + "\n"})
				}
				if edits != nil {
					m.texts[other] = edited(texts[other], edits)
				}
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// constant is a declared one, and the function in which it is declared, with a dot behind.
type constant struct {
	spec   *ast.ValueSpec
	within string
}

// declared are the constants with a value of their own.
func declared(file *ast.File) (all []constant) {
	for _, d := range file.Decls {
		within := ""
		if f, ok := d.(*ast.FuncDecl); ok {
			within = f.Name.Name + "."
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, s := range d.Specs {
					if s := s.(*ast.ValueSpec); len(s.Names) == 1 && len(s.Values) == 1 {
						all = append(all, constant{s, within})
					}
				}
			}
			return true
		})
	}
	return all
}

// uses are the places where a file uses a constant of its package.
func uses(file *ast.File, name *ast.Ident) (all []*ast.Ident) {
	for _, n := range file.Unresolved { // in its own file it is resolved
		if n.Name == name.Name {
			all = append(all, n)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n, ok := n.(*ast.Ident); ok && n != name && n.Obj != nil && n.Obj == name.Obj {
			all = append(all, n)
		}
		return true
	})
	return all
}

// edit puts text in place of the bytes from one offset to another.
type edit struct {
	from, to int
	text     string
}

func edited(text []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		text = slices.Concat(text[:e.from], []byte(e.text), text[e.to:])
	}
	return text
}

func lowerFirst(name string) string { return strings.ToLower(name[:1]) + name[1:] }
