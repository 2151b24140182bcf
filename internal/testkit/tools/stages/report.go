package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
)

// event is one line of "go test -json" (see go doc test2json), with the fields of build output (go help buildjson).
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// key names a test; an empty test is the package itself.
type key struct{ pkg, test string }

// report is what is known so far.
type report struct {
	out     io.Writer
	output  map[key][]string    // kept until the test ends
	builds  map[string][]string // compiler output by build
	shown   map[string]bool     // builds already printed: several packages may fail by the same one
	result  map[key]string      // "" while the test runs
	order   map[string][]string // tests of a package, in the order in which they began
	ended   map[string]bool     // packages
	passed  int
	failed  int
	skipped int
}

// read turns the stream of "go test -json" into what a person wants to read: one line a package, the whole output of
// every failed test, every skipped test with its reason, and at the end the counts alone on a line. Each test and each
// subtest counts as one; a package that fails without a failed test counts as one failure. An empty stream is a
// failure. The record has a line for each test that ran: package, name, and pass, fail or skip.
func read(in io.Reader, out io.Writer) (record []byte, ok bool) {
	r := &report{
		out: out, output: map[key][]string{}, builds: map[string][]string{}, shown: map[string]bool{},
		result: map[key]string{}, order: map[string][]string{}, ended: map[string]bool{},
	}
	lines := bufio.NewReader(in)
	events := 0
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			events++
			r.line(line)
		}
		if errors.Is(readErr, io.EOF) {
			break
		}
		if readErr != nil {
			fmt.Fprintf(out, "FAIL  the output of go test: %v\n", readErr)
			return nil, false
		}
	}
	if events == 0 {
		fmt.Fprintln(out, "FAIL  go test printed nothing: what it says on its standard error follows")
		return nil, false
	}
	for _, pkg := range r.packages() {
		if !r.ended[pkg] {
			r.endPackage(event{Action: "fail", Package: pkg})
		}
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return r.record(), r.failed == 0
}

func (r *report) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		r.failed++
		fmt.Fprintf(r.out, "FAIL  not an event: %s\n", bytes.TrimSpace(line))
		return
	}
	k := key{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "start":
		r.touch(key{pkg: e.Package})
	case "run":
		r.touch(k)
	case "output":
		r.touch(k)
		r.output[k] = append(r.output[k], e.Output)
	case "pass", "fail", "skip":
		r.touch(k)
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(k, e.Action)
		}
	}
}

// touch notes that a test exists, so that one which never ends is missed.
func (r *report) touch(k key) {
	if _, known := r.order[k.pkg]; !known {
		r.order[k.pkg] = nil
	}
	if k.test == "" {
		return
	}
	if _, known := r.result[k]; !known {
		r.result[k] = ""
		r.order[k.pkg] = append(r.order[k.pkg], k.test)
	}
}

func (r *report) endTest(k key, action string) {
	r.result[k] = action
	switch action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		fmt.Fprintf(r.out, "skip  %s %s: %s\n", k.pkg, k.test, reason(r.output[k]))
	case "fail":
		r.failed++
		fmt.Fprintf(r.out, "FAIL  %s %s\n", k.pkg, k.test)
		r.print(r.output[k])
	}
	delete(r.output, k)
}

func (r *report) endPackage(e event) {
	r.ended[e.Package] = true
	before, ran := r.failed, 0
	for _, test := range r.order[e.Package] {
		k := key{e.Package, test}
		ran++
		if r.result[k] == "" {
			r.output[k] = append(r.output[k], "    it began and did not end\n")
			r.endTest(k, "fail")
		}
		if r.result[k] == "fail" {
			before = -1 // the package has a failed test to blame
		}
	}
	own := r.output[key{pkg: e.Package}]
	delete(r.output, key{pkg: e.Package})
	if e.Action == "fail" {
		if before >= 0 {
			r.failed++
		}
		fmt.Fprintf(r.out, "FAIL  %s (%.1fs)\n", e.Package, e.Elapsed)
		if e.FailedBuild != "" && !r.shown[e.FailedBuild] {
			r.shown[e.FailedBuild] = true
			r.print(r.builds[e.FailedBuild])
		}
		r.print(own)
		return
	}
	if ran == 0 {
		fmt.Fprintf(r.out, "-     %s: no tests\n", e.Package)
		return
	}
	fmt.Fprintf(r.out, "ok    %s (%.1fs, %d tests)\n", e.Package, e.Elapsed, ran)
}

// print writes kept output.
func (r *report) print(output []string) { indent(r.out, []byte(strings.Join(output, ""))) }

// reason is what a test said before it was skipped.
func reason(output []string) string {
	var said []string
	for line := range strings.SplitSeq(strings.Join(output, ""), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- SKIP") {
			continue
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

func (r *report) packages() []string {
	names := make([]string, 0, len(r.order))
	for name := range r.order {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// record lists every test with its result, sorted by package, in each package in the order in which the tests began.
func (r *report) record() []byte {
	var b bytes.Buffer
	for _, pkg := range r.packages() {
		for _, test := range r.order[pkg] {
			fmt.Fprintf(&b, "%s %s %s\n", pkg, test, r.result[key{pkg, test}])
		}
	}
	return b.Bytes()
}

// failures returns the lines of a record about tests that failed; others returns the rest.
func failures(record []byte) []byte { return pickResults(record, true) }

func others(record []byte) []byte { return pickResults(record, false) }

func pickResults(record []byte, failed bool) []byte {
	var picked []byte
	for line := range bytes.Lines(record) {
		if bytes.HasSuffix(line, []byte(" fail\n")) == failed {
			picked = append(picked, line...)
		}
	}
	return picked
}
