package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/testkit/hermetic"
)

// goTest returns a command whose output read understands. -count=1 because the cache does not see what a test reads
// through another program.
func (r *runner) goTest(args ...string) *exec.Cmd {
	return r.program("go", append([]string{"test", "-json", "-count=1"}, args...)...)
}

// report runs commands of "go test -json", one after the other, and reports on them as on one. said is what they
// printed on their standard error.
func (r *runner) report(cmds ...*exec.Cmd) (record, said []byte, ok bool) {
	stderr, err := os.CreateTemp(r.tmp, "stderr")
	if err != nil {
		return nil, nil, r.fails("go test", "", nil, err)
	}
	defer os.Remove(stderr.Name())
	defer stderr.Close()
	events, stdout := io.Pipe()
	done := make(chan struct{})
	passed := false
	go func() {
		defer close(done)
		record, passed = read(events, r.out)
		_, _ = io.Copy(io.Discard, events)
	}()
	ok = true
	for _, cmd := range cmds {
		cmd.Stdout, cmd.Stderr = stdout, stderr
		if err := r.children.run(cmd); err != nil {
			ok = false
			if !exited(err) {
				fmt.Fprintln(stderr, "go test:", err)
			}
		}
	}
	_ = stdout.Close()
	<-done
	said, err = os.ReadFile(stderr.Name())
	return record, said, ok && passed && err == nil
}

// tests is report for a stage: what ran is kept, and what was said is shown.
func (r *runner) tests(stage string, cmds ...*exec.Cmd) bool {
	record, said, ok := r.report(cmds...)
	r.ran[stage] = append(r.ran[stage], record...)
	_, _ = r.out.Write(said)
	return ok
}

// Packages of the stage test, as patterns of their paths.
const (
	// outside is what looks at the built program.
	outside = `/internal/testkit/(agenttest|budget|archtest)$|/test/|/bench/`
	// elsewhere is what runs by itself, or in the stage hosts.
	elsewhere = `/internal/testkit/(agenttest|budget)$|/test/evaluation$|/test/hosts/|/test/terminal$|/test/chat$`
	// slow is what takes the longest. It begins first, so that it is not left alone at the end.
	slow = `internal/[a-z]*/(sandbox|undo|session|contract|shell|fork|process|engine)$`
	// spawning is what starts processes all the time, which the race detector makes several times slower.
	spawning = `/(contract|sandbox)$`
)

func (r *runner) test() bool {
	packages, err := r.list("./...")
	if err != nil {
		return r.fails("go list ./...", "", nil, err)
	}
	inside := pick(packages, regexp.MustCompile(outside), false)
	inside = append(pick(inside, regexp.MustCompile(slow), true), pick(inside, regexp.MustCompile(slow), false)...)
	after := pick(pick(packages, regexp.MustCompile(outside), true), regexp.MustCompile(elsewhere), false)
	command := "go test"
	var cmds []*exec.Cmd
	if r.raceWorks() {
		command = "go test -race"
		cmds, after = r.withRace(inside, after)
	} else {
		cmds = append(cmds, r.goTest(inside...))
	}
	if part := r.amounts["OMNIAGENT_WHOLE"]; strings.Contains(part, "/") {
		fmt.Fprintf(r.out, "of the tests that take long only part %s: OMNIAGENT_WHOLE=%s runs the same ones, and "+
			"--whole all\n", part, part)
	}
	fmt.Fprintf(r.out, "%s for the code of the program; go test for what looks at the built program from outside\n",
		command)
	cmds = append(cmds,
		r.goTest(after...),
		// The laws of a conversation and the evaluation have clocks: they run alone, and so does what compares times.
		r.goTest("-p", "1", "./internal/testkit/agenttest", "./internal/testkit/budget", "./test/evaluation"),
		r.goTest("-run", "AsFast", "./internal/talk/session"))
	if r.wants("kills") { // it runs the tests that depend on the moment
		for _, cmd := range cmds {
			with(cmd, "OMNIAGENT_KILLS=0", "OMNIAGENT_RACE_SECONDS=0", "OMNIAGENT_FUZZ_SECONDS=0",
				"OMNIAGENT_WALLS_COMMANDS=0")
		}
	}
	return r.tests("test", cmds...)
}

// withRace returns the commands for what runs with the race detector, and what else runs without it: with it a process
// takes several times as long to start, and what takes long would take hours.
func (r *runner) withRace(inside, after []string) (cmds []*exec.Cmd, without []string) {
	race := func(packages []string) *exec.Cmd {
		return with(r.goTest(append([]string{"-race"}, packages...)...), "CGO_ENABLED=1")
	}
	if r.long {
		return []*exec.Cmd{race(inside)}, after
	}
	var concurrent, sequential, again, names []string
	for _, pkg := range inside {
		if !startsGoroutines(pkg) {
			sequential = append(sequential, pkg)
			continue
		}
		concurrent = append(concurrent, pkg)
		if long, called := longTests(pkg); called {
			again, names = append(again, pkg), append(names, long...)
		}
	}
	cmds = []*exec.Cmd{with(race(concurrent), "OMNIAGENT_WHOLE=")}
	// Named, all of them would run.
	part, _ := hermetic.ParsePart(r.amounts["OMNIAGENT_WHOLE"])
	names = slices.DeleteFunc(names, func(name string) bool { return !part.Has(name) })
	if len(names) > 0 {
		slices.Sort(names)
		run := "^(" + strings.Join(slices.Compact(names), "|") + ")$"
		cmds = append(cmds, r.goTest(append([]string{"-run", run}, again...)...))
	}
	return cmds, append(sequential, after...)
}

// sourcesOf returns the files of a package whose names match, as texts.
func sourcesOf(pkg, pattern string) (texts []string) {
	_, folder, _ := strings.Cut(pkg, "/")
	files, _ := filepath.Glob(filepath.Join(filepath.FromSlash(folder), pattern))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			texts = append(texts, string(text))
		}
	}
	return texts
}

// startsGoroutines reports whether a package or its tests do. In the others the race detector finds little or nothing.
func startsGoroutines(pkg string) bool {
	start := regexp.MustCompile(`(?m)^\s*(defer )?go [a-zA-Z]|\.Go\(|AfterFunc\(`)
	return !regexp.MustCompile(spawning).MatchString(pkg) &&
		slices.ContainsFunc(sourcesOf(pkg, "*.go"), start.MatchString)
}

// longTests returns the tests of a package that a plain go test leaves out or makes fewer times, and whether it calls
// what does that.
func longTests(pkg string) (names []string, called bool) {
	begin, long := regexp.MustCompile(`^func (Test\w*)`), regexp.MustCompile(`hermetic\.(Long|LongAlone|Times)\(`)
	for _, text := range sourcesOf(pkg, "*_test.go") {
		name := ""
		for line := range strings.Lines(text) {
			if m := begin.FindStringSubmatch(line); m != nil {
				name = m[1]
			} else if strings.HasPrefix(line, "func ") {
				name = ""
			}
			if !long.MatchString(line) {
				continue
			}
			called = true
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names, called
}

// raceWorks says why the race detector does not work here.
func (r *runner) raceWorks() bool {
	if !r.cgo {
		fmt.Fprintln(r.out, "without the race detector: it needs cgo, and CGO_ENABLED is 0")
		return false
	}
	dir := filepath.Join(r.tmp, "race")
	program := filepath.Join(dir, "race.exe")
	err := errors.Join(os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module race\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644))
	var text []byte
	if err == nil {
		build := r.program("go", "-C", dir, "build", "-race", "-o", program, ".")
		text, err = r.output(with(build, "CGO_ENABLED=1"), true)
	}
	if err == nil {
		text, err = r.output(r.program(program), true)
	}
	if err != nil {
		fmt.Fprintln(r.out, "without the race detector: a program built with it does not work here:")
		indent(r.out, fmt.Appendf(text, "%v\n", err))
	}
	return err == nil
}

// kills runs the tests that depend on the moment, with how often they try.
func (r *runner) kills() bool {
	often, _ := strconv.Atoi(r.amounts["KILLS"])
	test := func(variable, value, pattern string, args ...string) *exec.Cmd {
		return with(r.goTest(append([]string{"-run", pattern}, args...)...), "OMNIAGENT_"+variable+"="+value)
	}
	amount := func(variable, from, pattern string, args ...string) *exec.Cmd {
		return test(variable, r.amounts[from], pattern, args...)
	}
	const agenttest = "./internal/testkit/agenttest"
	reader := "^TestStoppedReader$/direct"
	if r.long {
		reader = "^TestStoppedReader$/"
	}
	linksMove := func(tags string) *exec.Cmd {
		return amount("RACE_SECONDS", "RACE_SECONDS", "^TestNothingOutsideIsReachedWhileLinksMove$", "-tags="+tags,
			"./internal/native/tool")
	}
	cmds := []*exec.Cmd{
		with(amount("KILLS", "KILLS",
			"^(TestNothingSurvives|TestKill.*|TestAKilled.*|TestEventsGoOnAnywhere|TestNothingIsLeft)$",
			"./test/shim", "./test/start", "./test/walk", "./internal/talk/session", "./internal/repo/undo",
			"./internal/walls/sandbox"), "OMNIAGENT_WALLS_COMMANDS="+r.amounts["WALLS_COMMANDS"]),
		// The processes of runs, one of them or all at once.
		amount("KILLS", "RUN_KILLS", "^TestChaos", "./test/run"),
		// The laws of a conversation: a host that is killed.
		test("KILLS", strconv.Itoa(often*3/2), "^TestLaws$/direct/law16", agenttest),
		test("KILLS", strconv.Itoa((often+9)/10), "^TestLaws$/(lines|acp|mcp|chat)/law16", agenttest),
		// A reader that stops while an agent says many megabytes.
		amount("FLOOD", "FLOOD", reader, agenttest),
		linksMove(""), linksMove("portable"), // with the tag as the other systems walk through directories
		amount("RACE_SECONDS", "RACE_SECONDS", "^TestLinksMove$", "./test/walls"),
		amount("FUZZ_SECONDS", "ORACLE_SECONDS", "^TestApprovedRunsNothing$", "./internal/walls/guard"),
	}
	if r.amounts["UNDO_SCRIPTS"] != "" {
		cmds = append(cmds, amount("UNDO_SCRIPTS", "UNDO_SCRIPTS", "^TestRandomScripts", "./internal/repo/undo"))
	}
	return r.tests("kills", cmds...)
}
