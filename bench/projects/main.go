// Projects builds well-known projects and runs their own tests, first as they are and then behind the walls, without a
// network. A project counts when it passes both times; the table tells how long each took.
//
//	go build -o /tmp/omniagent ./cmd/omniagent && go run ./bench/projects -program /tmp/omniagent -dir ~/projects
//
// What the projects need is fetched into the directory once, with apt-get, npm and the go command; apt needs a
// deb-src of its own, which is made of the machine's sources. A project that needs packages of Debian which are not
// installed says which. The directory must not be below /tmp: commands behind the walls have a /tmp of their own. An
// ordinary user needs a directory of its own.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// project is how one is fetched and tested, by shell commands in its directory.
type project struct {
	name, language string
	fetch          string // once, with a network
	test           string // offline; it leaves nothing that a second run could use
}

// Fetching from Debian takes the sources as their authors released them. $APT has the options for apt-get.
const debian = `apt-get $APT source -qq --download-only PACKAGE || true
	tar xf PACKAGE_*.orig.tar.* --strip-components=1 --no-same-owner`

// Fetching a module takes a copy of it, with what its tests need.
const module = `dir=$(go mod download -json MODULE | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'); cp -r "$dir/." .
	chmod -R u+w .
	go mod tidy; go vet ./... >/dev/null 2>&1 || true`

// Packages of npm that come with their tests.
const npm = `npm pack --silent PACKAGE; tar xf *.tgz --strip-components=1 --no-same-owner
	npm install --no-audit --no-fund --ignore-scripts --silent`

// What is taken from packages that are installed.
const installed = `dpkg -s PACKAGES >/dev/null 2>&1 || { echo 'run: apt-get install PACKAGES'; exit 1; }
	`

// Maven asks for versions of plugins that Debian's repository has without saying so.
const maven = `tar xf *.debian.tar.*
	mh_patchpoms -plibcommons-codec-java --debian-build --keep-pom-version --maven-repo=/usr/share/maven-repo
	cp -rs /usr/share/maven-repo needed
	for p in org/apache/felix/maven-bundle-plugin org/apache/maven/plugins/maven-javadoc-plugin; do
		v=$(ls -v needed/$p | tail -1)
		echo "<metadata><groupId>$(dirname $p | tr / .)</groupId><artifactId>$(basename $p)</artifactId><versioning>
			<release>$v</release><versions><version>$v</version></versions></versioning></metadata>" \
			>needed/$p/maven-metadata-local.xml
	done
	mvn -o -q -B -Dmaven.repo.local="$PWD/needed" test-compile`

var projects = [...]project{
	{"go-cmp", "Go", fill(module, "MODULE", "github.com/google/go-cmp@v0.7.0"), "go test -count=1 ./..."},
	{"pflag", "Go", fill(module, "MODULE", "github.com/spf13/pflag@v1.0.9"), "go test -count=1 ./..."},
	{"toml", "Go", fill(module, "MODULE", "github.com/pelletier/go-toml/v2@v2.2.4"), "go test -count=1 ./..."},
	{
		"minimist", "JavaScript, npm", fill(npm, "PACKAGE", "minimist@1.2.8"),
		"npx --offline tape 'test/**/*.js'",
	},
	{
		"object-inspect", "JavaScript, npm", fill(npm, "PACKAGE", "object-inspect@1.13.4"),
		"npx --offline tape 'test/*.js'",
	},
	{
		"deep-equal", "JavaScript, pnpm", fill(npm, "PACKAGE", "deep-equal@2.2.3") + `
			npm install --silent --no-audit --no-fund --prefix needed pnpm@9.15.9; rm -rf node_modules
			export npm_config_store_dir=$PWD/needed/store # one elsewhere cannot be linked from with Landlock alone
			needed/node_modules/.bin/pnpm install --ignore-scripts --silent`,
		`rm -rf node_modules; export PATH=$PWD/needed/node_modules/.bin:$PATH npm_config_store_dir=$PWD/needed/store
			pnpm install --offline --frozen-lockfile --ignore-scripts && pnpm exec tape 'test/*.js'`,
	},
	{
		"function-bind", "JavaScript, Yarn", fill(npm, "PACKAGE", "function-bind@1.1.2") + `
			npm install --silent --no-audit --no-fund --prefix needed yarn@1.22.22; rm -rf node_modules
			export YARN_CACHE_FOLDER=$HOME/.cache/yarn # that of root lies where nothing is copied
			needed/node_modules/.bin/yarn install --ignore-scripts --silent`,
		`rm -rf node_modules; export PATH=$PWD/needed/node_modules/.bin:$PATH YARN_CACHE_FOLDER=$HOME/.cache/yarn
			yarn install --offline --frozen-lockfile --ignore-scripts && yarn run tape test/index.js`,
	},
	{
		"commons-codec", "Java, Maven", fill(installed, "PACKAGES", "maven-debian-helper junit4 libsurefire-java "+
			"libcommons-parent-java libcommons-lang3-java libmaven-bundle-plugin-java libmaven-javadoc-plugin-java") +
			fill(debian, "PACKAGE", "libcommons-codec-java") + "\n" + maven,
		`rm -rf target; mvn -o -q -B -Dmaven.repo.local="$PWD/needed" test`,
	},
	{
		"hashie", "Ruby, RSpec", fill(installed, "PACKAGES", "ruby-rspec pry ruby-rspec-pending-for") +
			fill(debian, "PACKAGE", "ruby-hashie"),
		"rspec --format progress",
	},
	{
		"php-parser", "PHP, Composer", fill(installed, "PACKAGES", "composer phpunit") +
			fill(debian, "PACKAGE", "php-parser"),
		"rm -rf vendor; composer dump-autoload --dev --no-interaction && phpunit",
	},
	{
		"jinja2", "Python", fill(debian, "PACKAGE", "jinja2") + `
		for p in python3-pytest python3-markupsafe python3-pluggy python3-iniconfig python3-packaging python3-attr; do
			apt-get $APT download -qq $p; dpkg-deb -x ${p}_*.deb needed; done`,
		`export PYTHONPATH=src:needed/usr/lib/python3/dist-packages
			/usr/bin/python3 -m pytest -q -p no:cacheprovider -W ignore::pytest.PytestRemovedIn8Warning tests`,
	},
	{"fnv", "Rust, Cargo", fill(debian, "PACKAGE", "rust-fnv"), "rm -rf target; cargo test --offline"},
	{
		"zlib", "C, configure and make", fill(debian, "PACKAGE", "zlib"),
		"./configure && make -j2 && make check; s=$?; make distclean; exit $s",
	},
	{"bzip2", "C, make", fill(debian, "PACKAGE", "bzip2"), "make clean && make -j2 && make check"},
	{
		"JSON", "Perl, MakeMaker", fill(debian, "PACKAGE", "libjson-perl"),
		"perl Makefile.PL && make && make test; s=$?; make clean; exit $s",
	},
}

// testFile has the commands that test a project.
const testFile = ".test.sh"

func fill(text, name, value string) string { return strings.ReplaceAll(text, name, value) }

func main() {
	program := flag.String("program", "", "the program that is measured")
	dir := flag.String("dir", "", "where the projects lie; not below /tmp")
	only := flag.String("only", "", "one project, by its name")
	flag.Parse()
	if *program == "" || *dir == "" {
		flag.Usage()
		os.Exit(2)
	}
	top, err := filepath.Abs(*dir)
	if err == nil {
		err = os.MkdirAll(top, 0o755)
	}
	if err == nil {
		err = all(*program, top, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "projects:", err)
		os.Exit(1)
	}
}

func all(program, top, only string) error {
	if err := apt(top); err != nil {
		return err
	}
	fmt.Println("| project | language | plain | namespaces | landlock |\n|---|---|---|---|---|")
	failed := 0
	for _, p := range projects {
		if only != "" && p.name != only {
			continue
		}
		dir := filepath.Join(top, p.name)
		if err := p.get(dir, top); err != nil {
			fmt.Printf("| %s | %s | cannot be fetched: %v |\n", p.name, p.language, err)
			failed++
			continue
		}
		row := []string{p.name, p.language}
		for _, walls := range []string{"", "namespaces", "landlock"} {
			argv := []string{"sh", testFile}
			if walls != "" {
				argv = append([]string{program, "sandbox", "run", "--walls", walls, "--"}, argv...)
			}
			began := time.Now()
			if err := run(dir, nil, argv...); err != nil {
				row = append(row, "fails")
				fmt.Fprintf(os.Stderr, "%s, walls %q: %v\n", p.name, walls, err)
				failed++
				continue
			}
			row = append(row, fmt.Sprintf("%.1f s", time.Since(began).Seconds()))
		}
		fmt.Printf("| %s |\n", strings.Join(row, " | "))
	}
	if failed > 0 {
		return fmt.Errorf("%d failed", failed)
	}
	return nil
}

// apt makes lists of sources, apart from those of the machine.
func apt(top string) error {
	dir := filepath.Join(top, ".apt")
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	err := run(top, options(top), "sh", "-ec", `mkdir -p .apt/lists/partial .apt/cache/archives/partial
		for f in /etc/apt/sources.list.d/*.sources; do
			[ ! -e "$f" ] || sed 's/^Types:.*/Types: deb deb-src/' "$f" >.apt/$(basename "$f"); done
		[ ! -s /etc/apt/sources.list ] || sed 'p; s/^deb /deb-src /' /etc/apt/sources.list >.apt/all.list
		apt-get $APT update -qq`)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

func options(top string) []string {
	dir := filepath.Join(top, ".apt")
	return append(os.Environ(), "APT=-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="+dir+
		" -o Dir::State::lists="+dir+"/lists -o Dir::Cache="+dir+"/cache -o APT::Sandbox::User=root")
}

// get fetches a project unless that was done before.
func (p project) get(dir, top string) error {
	done := filepath.Join(dir, ".fetched")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return err
	}
	if err := run(dir, options(top), "sh", "-ec", p.fetch); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, testFile), []byte(p.test+"\n"), 0o644),
		os.WriteFile(done, nil, 0o644))
}

// run runs a command. The error has the end of what it wrote.
func run(dir string, env []string, argv ...string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out[max(0, len(out)-2000):])
	}
	return nil
}
