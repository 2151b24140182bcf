// Command stages runs everything that has to hold before a change is accepted. scripts/test builds and starts it, in
// the root of the module; scripts/test --help says what there is to choose.
//
//	stages FOLDER [ARGUMENT…]
//
// FOLDER is new, empty and for this run only; its name begins with omniagent-test. The stages are listed in stages.go.
// They go on after a failure, so that one run shows all that is wrong.
//
// It promises that a failure is never lost: a child that cannot be started fails its stage, and so does a test that
// began and did not end, a build that broke, and output of go test that is not an event. When it ends or is
// interrupted, its children have ended, with all in their process groups, and FOLDER is removed. It never reads its
// standard input.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 || !strings.HasPrefix(filepath.Base(os.Args[1]), "omniagent-test.") {
		fmt.Fprintln(os.Stderr, "stages: it takes the folder that scripts/test makes for it\nhint: scripts/test --help")
		os.Exit(2)
	}
	r := &runner{
		out: os.Stdout, tmp: os.Args[1], ran: map[string][]byte{},
		children: children{groups: map[int]bool{}, patience: 5 * time.Second},
	}
	stop := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE, syscall.SIGQUIT, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(stop, s)
		}
	}
	go func() {
		s, _ := (<-stop).(syscall.Signal)
		r.children.stop(s)
		_ = os.RemoveAll(r.tmp)
		os.Exit(128 + int(s))
	}()
	status := r.main(os.Args[2:])
	_ = os.RemoveAll(r.tmp)
	os.Exit(status)
}

// runner is one run of stages.
type runner struct {
	call
	out      io.Writer
	tmp      string // a folder for its files
	children children
	ran      map[string][]byte // by stage, a line for each test: package, name, pass|fail|skip
	cgo      bool              // for the race detector
	downloads
}

func (r *runner) main(args []string) int {
	var err error
	if r.call, err = parse(args, os.Getenv); err != nil {
		fmt.Fprintf(os.Stderr, "scripts/test: %v\nhint: scripts/test --help\n", err)
		return 2
	}
	if r.help {
		fmt.Fprint(r.out, usage)
		return 0
	}
	r.setEnvironment()
	began := time.Now()
	if r.quick {
		result, status := "ok", 0
		if !r.checkQuickly() {
			result, status = "failed", 1
		}
		fmt.Fprintf(r.out, "%s, %d seconds\n", result, int(time.Since(began).Seconds()))
		return status
	}
	if err := r.beginDownloads(); err != nil {
		fmt.Fprintln(os.Stderr, "scripts/test:", err)
		return 1
	}
	var failed []string
	for _, s := range stages(r.amounts) {
		if s.alone {
			r.awaitDownloads()
		}
		if r.wants(s.name) && !r.stage(s) {
			failed = append(failed, s.name)
		}
	}
	fmt.Fprintln(r.out)
	if len(failed) == 0 {
		fmt.Fprintln(r.out, "ok")
		return 0
	}
	for _, name := range failed {
		_, _ = r.out.Write(failures(r.ran[name]))
	}
	fmt.Fprintln(r.out, "failed:", strings.Join(failed, " "))
	return 1
}

// setEnvironment changes what the children of all stages get.
func (r *runner) setEnvironment() {
	set := func(name, value string) { _ = os.Setenv(name, value) }
	// A program with the race detector sleeps for a second before it exits, unless it is told not to.
	set("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	// The version control stamp would make builds differ between a checkout and an unpacked archive, and fails where
	// the owner of the folder is another user. A slow machine needs more than the ten minutes that a package has, but
	// what hangs must leave time for the rest.
	limit := "20m"
	if r.long {
		limit = "120m"
	}
	flags := os.Getenv("GOFLAGS") + " -buildvcs=false -timeout=" + limit
	// The program is built without paths. So is all that checks it, so that nothing is compiled twice; --quick uses
	// what a plain go test has compiled.
	if !r.quick {
		flags += " -trimpath"
		set("OMNIAGENT_WHOLE", r.amounts["OMNIAGENT_WHOLE"])
	}
	// lint vets all packages and their tests with every analyzer; go test would repeat a part of that, once more with
	// the race detector. go vet ignores the flag.
	if r.wants("lint") {
		flags += " -vet=off"
	}
	set("GOFLAGS", flags)
	// A python3 that picks a version, as that of pyenv, starts ten times as slowly as what it picks. Tests start
	// thousands.
	where := r.program("python3", "-c", "import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)))")
	where.Stderr = nil
	if text, err := r.output(where, false); err == nil && has(filepath.Join(line(text), "python3")) {
		set("PATH", line(text)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	// The program is built without cgo, and so is all that checks it. Only the race detector needs cgo.
	r.cgo = os.Getenv("CGO_ENABLED") != "0"
	set("CGO_ENABLED", "0")
}

// wants reports whether a stage runs.
func (c call) wants(name string) bool { return len(c.names) == 0 || slices.Contains(c.names, name) }

// stage runs one and prints how long it took.
func (r *runner) stage(s stage) bool {
	fmt.Fprintf(r.out, "\n== %s\n", s.title)
	began := time.Now()
	ok := s.run(r)
	result := "failed"
	if ok {
		result = "ok"
	}
	seconds := int(time.Since(began).Seconds())
	took := fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
	fmt.Fprintf(r.out, "== %s: %s, %s minutes\n", s.name, result, took)
	if r.long {
		r.reportLong(s.name, result, took)
	}
	return ok
}
