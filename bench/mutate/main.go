// Command mutate breaks the product on purpose, one place at a time, and says whether a test notices.
//
// A mutation is a block of mutations.txt: a second chance or a guard that is taken away. With -limits it also makes
// every constant a thousand times as large whose name says that it is a limit. The tree is not touched: a mutated file
// is an overlay of the build.
//
//	go run ./bench/mutate                   # those of mutations.txt
//	go run ./bench/mutate -limits engine    # the limits of one room
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

//go:embed mutations.txt
var table string

func main() {
	rooms := flag.String("limits", "", "also the limits of these `rooms` of internal, separated by commas")
	pattern := flag.String("run", "", "only mutations whose name matches this `regexp`")
	flag.Parse()
	if err := run(*rooms, *pattern); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(rooms, pattern string) error {
	only, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	all, err := parse(table)
	if err != nil {
		return err
	}
	if rooms != "" {
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
		began := time.Now()
		result, err := m.try()
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if result != "killed" {
			survived++
		}
		fmt.Printf("%-9s %5.0f s  %s (%s)\n", result, time.Since(began).Seconds(), m.name, m.file)
	}
	if survived > 0 {
		return fmt.Errorf("%d mutations survived", survived)
	}
	return nil
}

// mutation is one change of one file, and the tests that have to notice it.
type mutation struct {
	name, file, old, new string
	tests                []string // arguments of go test
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

// mutated is the file with the mutation. The lines that it replaces have to be there once; neither white space
// nor a comment at the end counts.
func (m mutation) mutated() ([]byte, error) {
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
	return old.ReplaceAllLiteral(text, []byte(strings.TrimSuffix(m.new, "\n"))), nil
}

// try runs the tests with the mutation.
func (m mutation) try() (result string, err error) {
	text, err := m.mutated()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	whole, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {whole: file}})
	if err != nil {
		return "", err
	}
	for name, data := range map[string][]byte{file: text, overlay: replace} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("go", append([]string{"test", "-vet=off", "-count=1", "-timeout=5m"}, m.tests...)...)
	// The tests build the program themselves: what they build has the mutation as well.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay, "OMNIAGENT_WHOLE=1")
	out, err := cmd.CombinedOutput()
	switch {
	case bytes.Contains(out, []byte("[build failed]")):
		return "", fmt.Errorf("it does not compile:\n%s", out)
	case err != nil:
		return "killed", nil
	case bytes.Count(out, []byte("no tests to run")) == bytes.Count(out, []byte("ok  \t")):
		return "", fmt.Errorf("no test ran: %s", out)
	}
	return "survived", nil
}

// limits are mutations that make limits a thousand times as large.
func limits(room string) (all []mutation, err error) {
	files, err := filepath.Glob(filepath.Join("internal", room, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there is no room %s", room)
	}
	limit := regexp.MustCompile(`(?m)^(?:const )?\t?((?:max|most|Most|least)\w*|abreast)\s*=\s*([0-9][^/\n]*?)[ \t]*(?://.*)?$`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, found := range limit.FindAllSubmatch(text, -1) {
			line, value := string(found[0]), string(found[2])
			all = append(all, mutation{
				name: room + "." + string(found[1]), file: file, old: line + "\n",
				new:   strings.Replace(line, value, "1000 * ("+value+")", 1) + "\n",
				tests: []string{"./internal/" + room},
			})
		}
	}
	return all, nil
}
