package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/cli/command"
)

// revision counts the packages of one version.
const revision = "1"

// deb is a Debian package: an archive of ar with a version, the description and the files. It has no scripts: what it
// brings lies where man and the shells look by themselves.
func (r *release) deb(arch string) (file, error) {
	files, err := r.debFiles(arch)
	if err != nil {
		return file{}, err
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var list strings.Builder
	size := 0
	for _, f := range files {
		if f.link != "" {
			continue
		}
		fmt.Fprintf(&list, "%x  %s\n", md5.Sum(f.data), f.name) // the form asks for MD5; it finds damage, not malice
		size += (len(f.data) + 1023) / 1024
	}
	version := command.Version + "-" + revision
	control := fmt.Sprintf(
		"Package: omniagent\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nSection: "+
			"devel\nPriority: optional\n"+
			"Description: %s\n%s", version, arch, r.maintainer, size, "coding agents behind one command line",
		folded(r.program.Summary, r.program.Detail))
	head, err := tarball("./", r.when, []file{
		{name: "control", data: []byte(control)},
		{name: "md5sums", data: []byte(list.String())},
	})
	if err != nil {
		return file{}, err
	}
	data, err := tarball("./", r.when, files)
	if err != nil {
		return file{}, err
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, part := range []file{
		{name: "debian-binary", data: []byte("2.0\n")},
		{name: "control.tar.gz", data: head},
		{name: "data.tar.gz", data: data},
	} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", part.name, r.when.Unix(), 0, 0, 0o100644, len(part.data))
		out.Write(part.data)
		if len(part.data)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return file{name: "omniagent_" + version + "_" + arch + ".deb", data: out.Bytes()}, nil
}

func (r *release) debFiles(arch string) ([]file, error) {
	when := r.when.Format("Mon, 02 Jan 2006 15:04:05 -0700")
	news := fmt.Sprintf(
		"omniagent (%s-%s) unstable; urgency=medium\n\n  * What changed is in changelog.gz.\n\n -- %s  %s\n",
		command.Version, revision, r.maintainer, when)
	files := []file{
		{name: "usr/share/bash-completion/completions/omniagent", data: r.scripts["bash"]},
		{name: "usr/share/doc/omniagent/examples/apparmor", data: r.apparmor},
		{name: "usr/share/doc/omniagent/copyright", data: r.copyright()},
		{name: "usr/share/fish/vendor_completions.d/omniagent.fish", data: r.scripts["fish"]},
		{name: "usr/share/lintian/overrides/omniagent", data: []byte(overrides())},
		{name: "usr/share/zsh/vendor-completions/_omniagent", data: r.scripts["zsh"]},
	}
	pressed := []file{
		{name: "usr/share/doc/omniagent/changelog.Debian.gz", data: []byte(news)},
		{name: "usr/share/doc/omniagent/changelog.gz", data: r.changelog},
	}
	for _, page := range r.pages {
		pressed = append(pressed, file{name: "usr/share/man/man1/" + page.name + ".gz", data: page.data})
	}
	for _, f := range pressed {
		var out bytes.Buffer
		zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := zip.Write(f.data); err != nil {
			return nil, err
		}
		if err := zip.Close(); err != nil {
			return nil, err
		}
		files = append(files, file{name: f.name, data: out.Bytes()})
	}
	for _, name := range names() {
		files = append(files, file{name: "usr/bin/" + name, link: "omniagent"},
			file{name: "usr/share/man/man1/" + name + ".1.gz", link: "omniagent.1.gz"})
	}
	for target, data := range r.binaries {
		if target.OS == "linux" && target.Arch == arch {
			files = append(files, file{name: "usr/bin/omniagent", data: data, program: true})
		}
	}
	return files, nil
}

// overrides tells the checker of packages what is meant to be as it is.
func overrides() string {
	return `# One file for every system of this processor, which needs no library of it.
omniagent: statically-linked-binary *
# Walls around commands name the places of the system that are not to be written, this one among them. It is never opened.
omniagent: uses-dpkg-database-directly *
# It does not come from the archive of Debian, which keeps the list of such wishes.
omniagent: initial-upload-closes-no-bugs *
`
}

// folded is the long part of a description.
func folded(paragraphs ...string) string {
	var b strings.Builder
	for i, p := range paragraphs {
		if i > 0 && p != "" {
			b.WriteString(" .\n")
		}
		line := ""
		for _, word := range strings.Fields(p) {
			if len(line)+len(word) > 76 {
				b.WriteString(line + "\n")
				line = ""
			}
			line += " " + word
		}
		if line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// copyright says whose the work is and under which terms. A licence that every Debian system has is named, not
// repeated.
func (r *release) copyright() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "omniagent\n=========\n\n%s\nLinked into it is the work of others:\n", r.license)
	for _, n := range r.others {
		text := n.text
		if strings.Contains(text, "Apache License") && strings.Contains(text, "Version 2.0, January 2004") {
			text = "Under the Apache License, Version 2.0, which is in /usr/share/common-licenses/Apache-2.0.\n"
		}
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s", n.what, strings.Repeat("-", len(n.what)), text)
	}
	return []byte(b.String())
}
