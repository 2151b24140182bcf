package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/command"
	"omniagent/internal/testkit/measure"
)

// file is a file of a package, or a package.
type file struct {
	name    string // with slashes
	data    []byte
	program bool   // it may be run
	link    string // not empty: it is a link that leads there, and has no data
}

// names are the further names under which the program is another one to its user: links to it.
func names() []string { return []string{"eidolon", "yume-cli"} }

// tarball is a compressed archive of files, with the directories that lead to them. The prefix is put before every
// name.
func tarball(prefix string, when time.Time, files []file) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out) // its header has neither a name nor a time
	w := tar.NewWriter(zip)
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	seen := map[string]bool{}
	for _, f := range files {
		name := prefix + f.name
		for i, c := range name {
			if dir := name[:i+1]; c == '/' && !seen[dir] {
				seen[dir] = true
				if err := w.WriteHeader(header(tar.TypeDir, dir, 0, 0o755, when)); err != nil {
					return nil, err
				}
			}
		}
		mode := int64(0o644)
		if f.program {
			mode = 0o755
		}
		head := header(tar.TypeReg, name, len(f.data), mode, when)
		if f.link != "" {
			head = header(tar.TypeSymlink, name, 0, 0o777, when)
			head.Linkname = f.link
		}
		if err := w.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func header(kind byte, name string, size int, mode int64, when time.Time) *tar.Header {
	return &tar.Header{
		Typeflag: kind, Name: name, Size: int64(size), Mode: mode, ModTime: when, Uname: "root",
		Gname: "root", Format: tar.FormatUSTAR,
	}
}

// base is the name of an archive without its ending, and of the directory in it.
func base(target measure.Target) string {
	return "omniagent-" + command.Version + "-" + target.OS + "-" + target.Arch
}

// binary is the program for a target, as it is called there.
func (r *release) binary(dir string, target measure.Target) file {
	name := dir + "omniagent"
	if target.OS == "windows" {
		name += ".exe"
	}
	return file{name: name, data: r.binaries[target], program: true}
}

// archive is the program with its manual and its completions, to be unpacked anywhere.
func (r *release) archive(target measure.Target) (file, error) {
	files := []file{
		r.binary("", target),
		{name: "LICENSE", data: r.license},
		{name: "LICENSE-THIRD-PARTY", data: r.thirdParty()},
		{name: "CHANGELOG.md", data: r.changelog},
		{name: "apparmor", data: r.apparmor},
		{name: "completions/omniagent.bash", data: r.scripts["bash"]},
		{name: "completions/omniagent.fish", data: r.scripts["fish"]},
		{name: "completions/omniagent.ps1", data: r.scripts["powershell"]},
		{name: "completions/_omniagent", data: r.scripts["zsh"]},
	}
	for _, page := range r.pages {
		files = append(files, file{name: "man/man1/" + page.name, data: page.data})
	}
	data, err := tarball(base(target)+"/", r.when, files)
	return file{name: base(target) + ".tar.gz", data: data}, err
}

// install is the script that installs an archive for a user: it knows the version and where the archives will be.
func (r *release) install() file {
	text := strings.NewReplacer("@VERSION@", command.Version, "@RELEASES@", r.base).Replace(string(r.installer))
	return file{name: "install.sh", data: []byte(text), program: true}
}

// sums is the list that "sha256sum -c" reads.
func sums(files []file) file {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return file{name: "SHA256SUMS", data: []byte(b.String())}
}
