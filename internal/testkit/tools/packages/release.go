package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/cli/command"
	"omniagent/internal/cli/contract"
	"omniagent/internal/testkit/measure"
)

// release is all that goes into packages.
type release struct {
	places
	program   *contract.Program
	binaries  map[measure.Target][]byte
	pages     []file // manual pages, their bare names
	scripts   map[string][]byte
	license   []byte
	changelog []byte
	installer []byte // a script
	apparmor  []byte // a profile
	others    []notice
}

// notice is the licence of somebody else whose work is linked into the program.
type notice struct{ what, text string }

// collect builds the program for every system and gathers what belongs to it.
func collect(p places, scratch string) (*release, error) {
	r := &release{
		places: p, program: command.Program(), binaries: map[measure.Target][]byte{}, scripts: map[string][]byte{},
	}
	for _, page := range r.program.ManPages() {
		r.pages = append(r.pages, file{name: page.Name, data: []byte(page.Text)})
	}
	for _, shell := range contract.Shells() {
		var script bytes.Buffer
		if err := r.program.Completion(&script, shell); err != nil {
			return nil, err
		}
		r.scripts[shell] = script.Bytes()
	}
	for name, to := range map[string]*[]byte{
		"LICENSE": &r.license, "CHANGELOG.md": &r.changelog, "scripts/install.sh": &r.installer,
		"scripts/apparmor": &r.apparmor,
	} {
		text, err := os.ReadFile(filepath.Join(p.root, name))
		if err != nil {
			return nil, err
		}
		*to = text
	}
	built, err := r.build(scratch)
	if err != nil {
		return nil, err
	}
	r.others, err = r.notices(built)
	return r, err
}

// build builds the program for each target, as many at a time as there are processors, and returns the files.
func (r *release) build(scratch string) ([]string, error) {
	targets := measure.Targets()
	files, errs := make([]string, len(targets)), make([]error, len(targets))
	turn := make(chan struct{}, runtime.NumCPU())
	var all sync.WaitGroup
	for i, target := range targets {
		all.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			dir := filepath.Join(scratch, target.OS+"-"+target.Arch)
			if errs[i] = os.Mkdir(dir, 0o700); errs[i] != nil {
				return
			}
			var built measure.Program
			built, errs[i] = measure.BuildFor(target, r.root, "./cmd/omniagent", dir)
			files[i] = built.File
		})
	}
	all.Wait()
	for i, target := range targets {
		if errs[i] != nil {
			return nil, errs[i]
		}
		data, err := os.ReadFile(files[i])
		if err != nil {
			return nil, err
		}
		r.binaries[target] = data
	}
	return files, nil
}

// notices are the licences of the Go library and of every module that the built programs say is in them.
func (r *release) notices(built []string) ([]notice, error) {
	text, err := os.ReadFile(filepath.Join(r.goRoot, "LICENSE"))
	if err != nil {
		return nil, err
	}
	list := []notice{}
	for _, name := range built {
		info, err := buildinfo.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			what := m.Path + " " + m.Version
			if slices.ContainsFunc(list, func(n notice) bool { return n.what == what }) {
				continue
			}
			text, err := licence(filepath.Join(r.modules, filepath.FromSlash(escaped(m.Path)+"@"+escaped(m.Version))))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", what, err)
			}
			list = append(list, notice{what, text})
		}
	}
	slices.SortFunc(list, func(a, b notice) int { return strings.Compare(a.what, b.what) })
	return append([]notice{{"the library of Go", string(text)}}, list...), nil
}

// licence is what the files of a module say about how it may be handed on.
func licence(dir string) (string, error) {
	var b strings.Builder
	for _, name := range []string{"LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING", "NOTICE", "NOTICE.txt"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			b.Write(bytes.TrimRight(text, "\n"))
			b.WriteString("\n")
		}
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("there is no licence in %s", dir)
	}
	return strings.ReplaceAll(b.String(), "\r\n", "\n"), nil
}

// escaped is how the module cache writes capital letters.
func escaped(s string) string {
	var b strings.Builder
	for _, c := range s {
		if 'A' <= c && c <= 'Z' {
			b.WriteRune('!')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// thirdParty is the page of notices that goes with the program.
func (r *release) thirdParty() []byte {
	var b strings.Builder
	b.WriteString("What others have written and is linked into omniagent, with the terms of each.\n")
	for _, n := range r.others {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s", n.what, strings.Repeat("-", len(n.what)), n.text)
	}
	return []byte(b.String())
}

// packages are all files but the formula and the sums.
func (r *release) packages() ([]file, error) {
	makers := []func() (file, error){r.npmMain}
	for _, target := range measure.Targets() {
		makers = append(makers, func() (file, error) { return r.archive(target) },
			func() (file, error) { return r.npmPlatform(target) })
		if target.OS == "linux" {
			makers = append(makers, func() (file, error) { return r.deb(target.Arch) })
		}
	}
	files, errs := make([]file, len(makers)), make([]error, len(makers))
	var all sync.WaitGroup
	for i, maker := range makers {
		all.Go(func() { files[i], errs[i] = maker() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}
