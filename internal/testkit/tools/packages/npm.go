package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"omniagent/internal/cli/command"
	"omniagent/internal/testkit/measure"
)

// npm installs the one package of the program that fits the system, since the main package names all of them as
// optional and each says what it is for. A link in a bin directory can point only at a file of the package whose link
// it is, so the main package has a script that becomes the program. A package of a system is complete without the main
// one: its link is the program itself.

// scope is in front of the names of the packages of single systems. Names with a scope come first in npm's order, which
// decides who gets a link that two packages of one project want: so it is the program there, too.
const scope = "@omniagent/"

// platform is how npm calls a target.
func platform(target measure.Target) (system, processor string) {
	system, processor = target.OS, target.Arch
	if system == "windows" {
		system = "win32"
	}
	if processor == "amd64" {
		processor = "x64"
	}
	return system, processor
}

// manifest is a package.json, in the order in which npm writes it.
type manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	License      string            `json:"license"`
	Bin          map[string]string `json:"bin"`
	System       []string          `json:"os"`
	Processor    []string          `json:"cpu"`
	Optional     map[string]string `json:"optionalDependencies,omitempty"`
	KeepUnpacked bool              `json:"preferUnplugged,omitempty"`
}

// npmMain is the package that people name. It is for systems with a shell: on Windows the package of the system is
// named.
func (r *release) npmMain() (file, error) {
	m := manifest{
		Name: "omniagent", Version: command.Version, Description: r.program.Summary, License: "MIT",
		Bin: links("bin/omniagent"), Optional: map[string]string{},
	}
	m.Bin[eidolon] = "bin/" + eidolon
	var fits strings.Builder
	for _, target := range measure.Targets() {
		if target.OS == "windows" {
			continue
		}
		system, processor := platform(target)
		m.System, m.Processor = with(m.System, system), with(m.Processor, processor)
		m.Optional[scope+system+"-"+processor] = command.Version
		fmt.Fprintf(&fits, " %s-%s", system, processor)
	}
	script := []byte(strings.ReplaceAll(launcher(), "SYSTEMS", fits.String()[1:]))
	return r.npm(m, file{name: "bin/omniagent", data: script, program: true},
		file{name: "bin/" + eidolon, data: script, program: true})
}

// eidolon is the further name under which the program is another one: a conversation.
const eidolon = "eidolon"

// links are the names under which people start a file.
func links(path string) map[string]string {
	all := map[string]string{"omniagent": path}
	for _, name := range names() {
		all[name] = path
	}
	return all
}

func with(list []string, word string) []string {
	for _, w := range list {
		if w == word {
			return list
		}
	}
	return append(list, word)
}

// launcher becomes the program, so that signals, the terminal and the exit code are those of the program and nothing
// stands in between. It uses only what a shell has built in, as far as there is one program to be found: each process
// that it started would cost as much as the whole program does.
func launcher() string {
	return `#!/bin/sh
# Becomes the program of the package for this system, which npm has put beside this one or beneath it.
self=$0
while [ -h "$self" ]; do
	link=$(readlink "$self")
	case $link in
	/*) self=$link ;;
	*) self=${self%/*}/$link ;;
	esac
done
here=${self%/*}/..
case ${0##*/}/${self##*/} in
eidolon/* | */eidolon) set -- eidolon "$@" ;; # a script cannot hand on its name
esac
found=
several=
for system in SYSTEMS; do
	for place in "$here/node_modules/@omniagent" "$here/../@omniagent"; do
		if [ -x "$place/$system/bin/omniagent" ]; then
			[ -z "$found" ] || several=1
			found=$place/$system/bin/omniagent
			break
		fi
	done
done
if [ -z "$several" ] && [ -n "$found" ]; then
	exec "$found" "$@"
fi
case $(uname -s) in
Darwin) system=darwin ;;
*) system=linux ;;
esac
case $(uname -m) in
arm64 | aarch64) system=$system-arm64 ;;
*) system=$system-x64 ;;
esac
for place in "$here/node_modules/@omniagent" "$here/../@omniagent"; do
	if [ -x "$place/$system/bin/omniagent" ]; then
		exec "$place/$system/bin/omniagent" "$@"
	fi
done
echo "omniagent: the package @omniagent/$system is not installed" >&2
echo 'hint: npm install without --omit=optional; or install that package alone' >&2
exit 1
`
}

// npmPlatform is the program for one system.
func (r *release) npmPlatform(target measure.Target) (file, error) {
	system, processor := platform(target)
	binary := r.binary("bin/", target)
	bin := links(binary.name)
	if target.OS == "windows" { // where npm makes scripts that hand on no name
		delete(bin, eidolon)
	}
	return r.npm(manifest{
		Name: scope + system + "-" + processor, Version: command.Version,
		Description: "omniagent for " + system + "-" + processor + ": " + r.program.Summary, License: "MIT",
		Bin: bin, System: []string{system}, Processor: []string{processor}, KeepUnpacked: true,
	}, binary)
}

// npm makes the file that "npm pack" would, of a manifest and the program.
func (r *release) npm(m manifest, programs ...file) (file, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return file{}, err
	}
	data, err := tarball("package/", r.when, append(programs, []file{
		{name: "package.json", data: append(text, '\n')},
		{name: "LICENSE", data: r.license},
		{name: "LICENSE-THIRD-PARTY", data: r.thirdParty()},
		{name: "README.md", data: npmPage(m)},
	}...))
	return file{name: strings.NewReplacer("@", "", "/", "-").Replace(m.Name) + "-" + m.Version + ".tgz", data: data},
		err
}

// npmPage is what a visitor reads.
func npmPage(m manifest) []byte {
	return fmt.Appendf(nil,
		"# %s\n\n%s.\n\n```sh\nnpm install -g %s\nomniagent --help\n```\n\nNothing is downloaded or run at the "+
			"installation beside the packages themselves.\n",
		m.Name, strings.ToUpper(m.Description[:1])+m.Description[1:], m.Name)
}
