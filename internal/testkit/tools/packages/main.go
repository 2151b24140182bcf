// Command packages builds what people install: archives for each system, npm packages, Debian packages, a Homebrew
// formula and the sums of them all. scripts/packages calls it, with what it needs to know of the Go installation in the
// environment.
//
// It promises the same bytes for the same source, on any machine, at any time: entries are sorted and belong to
// nobody, every time is SOURCE_DATE_EPOCH, programs are built without paths and without a version control stamp. It
// needs no program but go, so the packages of every system are built on any. It refuses a directory with something in
// it, which a list of sums would not name, and a linked module without a licence. Nothing is published, and nothing
// that a package does at its installation is a script.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/cli/command"
)

// places are where things come from and go to.
type places struct {
	root       string // of the source
	out        string
	base       string // below which address the archives will be found
	maintainer string
	modules    string // GOMODCACHE
	goRoot     string
	when       time.Time
}

func main() {
	p := places{root: ".", modules: os.Getenv("GOMODCACHE"), goRoot: os.Getenv("GOROOT")}
	flag.StringVar(&p.base, "base-url", "https://omniagent.invalid/v"+command.Version,
		"the archives will be found beneath this `URL`, which the formula names")
	flag.StringVar(&p.maintainer, "maintainer", "The omniagent authors <packages@omniagent.invalid>",
		"`NAME` and address in the Debian packages")
	flag.Parse()
	p.out = flag.Arg(0)
	if flag.NArg() != 1 {
		fail(2, errors.New("one directory is needed, to write to"))
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil || p.modules == "" || p.goRoot == "" {
		fail(2, errors.New("GOMODCACHE, GOROOT and SOURCE_DATE_EPOCH are needed; scripts/packages sets them"))
	}
	p.when, p.base = time.Unix(seconds, 0).UTC(), strings.TrimSuffix(p.base, "/")
	if there, err := os.ReadDir(p.out); err == nil && len(there) > 0 {
		fail(2, fmt.Errorf("%s is not empty", p.out))
	}
	if err := run(p); err != nil {
		fail(1, err)
	}
}

func fail(status int, err error) {
	fmt.Fprintln(os.Stderr, "packages:", err)
	os.Exit(status)
}

// run builds everything. Files appear in the directory as they are done; the sums come last.
func run(p places) error {
	if err := os.MkdirAll(filepath.Join(p.out, "Formula"), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "packages-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	r, err := collect(p, scratch)
	if err != nil {
		return err
	}
	files, err := r.packages()
	if err != nil {
		return err
	}
	files = append(files, r.formula(files), r.install())
	for _, f := range append(files, sums(files)) {
		if err := os.WriteFile(filepath.Join(p.out, filepath.FromSlash(f.name)), f.data, 0o644); err != nil {
			return err
		}
		fmt.Printf("%10d  %s\n", len(f.data), f.name)
	}
	return nil
}
