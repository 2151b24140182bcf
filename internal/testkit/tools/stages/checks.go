package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// sources returns all Go files but test data and what is installed beneath folders with a dot.
func sources() (files []string, err error) {
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(name, ".go"):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

func (r *runner) lint() bool {
	tool := func(name string) string { return filepath.Join(r.tmp, name) }
	files, err := sources()
	if err != nil {
		return r.fails("the sources", "", nil, err)
	}
	// Built first, so that a message about a download is not taken for a finding.
	if !r.do(r.program("go", "-C", "tools", "build", "-o", r.tmp+"/", "tool", "./vet")) {
		return false
	}
	return all(
		// What gofmt would change, gofumpt would change as well.
		r.quiet("gofumpt", r.program(tool("gofumpt"), append([]string{"-l"}, files...)...)),
		r.succeeds("go vet", r.program("go", "vet", "./...")),
		r.succeeds("go vet, portable", r.program("go", "vet", "-tags", "portable",
			"./internal/sys/workspace", "./internal/native/tool")),
		r.quiet("tools/vet", r.program(tool("vet"), "./...")),
		r.succeeds("go vet in tools", r.program("go", "-C", "tools", "vet", "./...")),
		r.quiet("staticcheck", r.program(tool("staticcheck"), "./...")),
		// With -test the tests are roots as well: what only a test calls is a test helper and passes.
		r.quiet("deadcode", r.program(tool("deadcode"), "-test", "./...")),
		r.succeeds("go mod verify", r.program("go", "mod", "verify")),
		r.succeeds("go mod tidy -diff", r.program("go", "mod", "tidy", "-diff")),
		r.succeeds("go mod tidy -diff in tools", r.program("go", "-C", "tools", "mod", "tidy", "-diff")),
	)
}

func (r *runner) build() bool {
	ok := true
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			ok = r.buildFor(system, arch) && ok
		}
		// lint has vetted the code for the system that it runs on.
		if system != runtime.GOOS {
			ok = r.succeeds("go vet for "+system, with(r.program("go", "vet", "./..."), "GOOS="+system)) && ok
		}
	}
	// For a machine without a filter of system calls the sandbox says so, but it has to build.
	return r.succeeds("go vet for linux/riscv64",
		with(r.program("go", "vet", "./internal/walls/sandbox"), "GOOS=linux", "GOARCH=riscv64")) && ok
}

func (r *runner) buildFor(system, arch string) bool {
	file := filepath.Join(r.tmp, "omniagent-"+system+"-"+arch)
	if system == "windows" {
		file += ".exe"
	}
	defer os.Remove(file)
	cmd := r.program("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./cmd/omniagent")
	if !r.do(with(cmd, "GOOS="+system, "GOARCH="+arch)) {
		fmt.Fprintf(r.out, "FAIL  %s/%s\n", system, arch)
		return false
	}
	info, err := os.Stat(file)
	if err != nil {
		return r.fails(system+"/"+arch, "", nil, err)
	}
	fmt.Fprintf(r.out, "ok    %-14s %10d bytes\n", system+"/"+arch, info.Size())
	return true
}

// checkQuickly is all of scripts/test --quick. Results are cached, so after a change only what depends on it runs
// again.
func (r *runner) checkQuickly() bool {
	vetted, tested := []string{"./..."}, []string{"./cmd/...", "./internal/..."}
	if len(r.names) > 0 {
		vetted = nil
		for _, name := range r.names {
			vetted = append(vetted, "./internal/"+name+"/...")
		}
		tested = vetted
	}
	files, err := sources()
	if err != nil {
		return r.fails("the sources", "", nil, err)
	}
	ok := all(
		r.quiet("gofmt", r.program("gofmt", append([]string{"-l"}, files...)...)),
		r.succeeds("go vet", r.program("go", append([]string{"vet"}, vetted...)...)),
	)
	// The laws of a conversation are tried directly, and a few of them through each host. The other suites that spawn
	// the built program, and budget, which measures it, are for a whole run. The report names each test that -short
	// leaves out because it waits for time.
	found, err := r.list(tested...)
	if err != nil {
		return r.fails("go list", "", nil, err)
	}
	found = pick(found, regexp.MustCompile("/testkit/budget$"), false)
	args := append([]string{"test", "-short", "-vet=off", "-ldflags=-w", "-json"}, found...)
	_, said, passed := r.report(r.program("go", args...))
	if ok = ok && passed; !ok {
		_, _ = r.out.Write(said)
	}
	return ok
}

// list returns the packages that patterns match.
func (r *runner) list(patterns ...string) ([]string, error) {
	text, err := r.output(r.program("go", append([]string{"list"}, patterns...)...), false)
	return strings.Fields(string(text)), err
}

// pick returns the names that match, or those that do not.
func pick(names []string, pattern *regexp.Regexp, matching bool) (picked []string) {
	for _, name := range names {
		if pattern.MatchString(name) == matching {
			picked = append(picked, name)
		}
	}
	return picked
}
