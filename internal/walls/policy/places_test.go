package policy

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/sandbox"
)

// TestTable: each line of the table can be read, and no place holds what is known to be a credential.
func TestTable(t *testing.T) {
	rows, moved, _ := table()
	lines := 0
	for line := range strings.Lines(placesText) {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			lines++
		}
	}
	parts := 0
	for _, r := range rows {
		holds := func(o row) bool { return o.sight == sandbox.Owned && pathname.Within(o.path, r.path) }
		if parts += len(r.parts); len(r.parts) > 0 && (r.sight != sandbox.Copied || !slices.ContainsFunc(rows, holds)) {
			t.Errorf("%s has parts, but is not copied or lies beneath no directory of the command's own", r.path)
		}
		for _, part := range r.parts {
			if !filepath.IsLocal(part.Path) || filepath.Clean(part.Path) != part.Path {
				t.Errorf("%+v", part)
			}
		}
	}
	if len(rows)+len(moved)+parts != lines {
		t.Errorf("%d lines, %d rows, %d variables, %d parts", lines, len(rows), len(moved), parts)
	}
	secrets := guard.Agents(nil).Credentials("/h")
	for _, name := range []string{
		".npm-global/etc/npmrc", ".npm-packages/etc/npmrc", ".cargo/config.toml", ".cargo/credentials.toml",
		".m2/settings-security.xml", ".gradle/init.d", ".npmrc",
		".config/go/env", ".netrc", ".bundle/config", ".conan/.conan.db", ".conan2/credentials.json", ".condarc",
		".local/share/uv/credentials", ".local/share/gem/credentials", ".dotnet/corefx", ".nuget/NuGet/NuGet.Config",
		".pub-cache/credentials.json", ".hex/hex.config", ".cabal/config", ".stack/config.yaml", ".yarnrc",
		".config/composer/auth.json", ".config/pypoetry/auth.toml", ".config/pip/pip.conf", ".pip/pip.conf",
		".ivy2/.credentials",
		".sbt/.credentials", ".android/adbkey", ".luarocks/upload_config.lua", ".cache/huggingface/token",
		".config/mise",
		".opam/plugins", ".julia/servers", ".ccache/ccache.conf", ".config/git/credentials", ".gitconfig",
	} {
		secrets = append(secrets, "/h/"+name)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.path] || r.why == "" || !filepath.IsLocal(r.path) || filepath.Clean(r.path) != r.path {
			t.Errorf("%+v", r)
		}
		seen[r.path] = true
		for _, secret := range secrets {
			path := "/h/" + r.path
			if r.sight != sandbox.Owned && (pathname.Within(path, secret) || pathname.Within(secret, path)) {
				t.Errorf("%s shows %s", r.path, secret)
			}
		}
	}
	for dir := range moved {
		if !slices.ContainsFunc(rows, func(r row) bool { return pathname.Within(dir, r.path) }) {
			t.Errorf("nothing lies in %s", dir)
		}
	}
}

// dwelling is a home directory with a project in it.
func dwelling(t *testing.T) (w Wanted, at func(string) string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("home directories are covered on Linux only")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at = func(name string) string {
		path := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return Wanted{Root: at("home/src/project"), Home: at("home"), Temp: at("temp")}, at
}

func seenIn(t *testing.T, w Wanted) (paths []string, p sandbox.Policy) {
	t.Helper()
	p, err := w.Policy()
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range p.Places {
		paths = append(paths, place.Path)
	}
	return paths, p
}

// TestReadAdds what it says, and what opens more is refused with the reason.
func TestReadAdds(t *testing.T) {
	w, at := dwelling(t)
	for link, to := range map[string]string{"all": "..", "keys": "../.ssh", "away": "/"} {
		if err := os.Symlink(to, filepath.Join(at("home/links"), link)); err != nil {
			t.Fatal(err)
		}
	}
	at("home/.ssh")
	for _, entry := range []string{
		"~", "~/", "~/.", "/", at("home"), at("."), "~/src/..", "~/.ssh", "~/.ssh/id_ed25519", "~/.config", "~/.local",
		"~/.cargo", "~/links/all", "~/links/keys", "~/links/away", "src", "", "~ann/src", "$HOME/src", at("home") +
			"/.aws",
	} {
		w.Read = []string{entry}
		f := fault.Of(errOf(w))
		if f == nil || f.Code != fault.ConfigInvalid || f.Suggestion == "" ||
			!strings.Contains(f.Message, "native.read") {
			t.Errorf("%q: %v", entry, f)
		}
	}
	w.Read = []string{"~/src/library", at("home/notes"), "~/not/there", "/usr/share"}
	paths, _ := seenIn(t, w)
	for _, path := range []string{at("home") + "/src/library", at("home/notes"), at("home") + "/not/there"} {
		if !slices.Contains(paths, path) {
			t.Errorf("%s is not seen", path)
		}
	}
	if slices.Contains(paths, "/usr/share") {
		t.Error("what is seen anyway is listed")
	}
}

// TestOwnAdds directories of the home directory, and nothing that an agent could use against its user.
func TestOwnAdds(t *testing.T) {
	w, at := dwelling(t)
	at("home/.ssh")
	a := AgentWanted{Wanted: w}
	for _, entry := range []string{
		"~", "~/", "/", at("home"), at("."), "~/src/..", "~/.ssh", "~/.config", "src", "", "/etc",
		"~" + strings.Repeat("/..", 20) + "/etc",
	} {
		a.Own = []string{entry}
		if _, _, err := a.policy(); fault.Of(err) == nil || fault.Of(err).Code != fault.ConfigInvalid ||
			!strings.Contains(err.Error(), "agents.own") {
			t.Errorf("%q: %v", entry, err)
		}
	}
	a.Own = []string{"~/.config/other", at("home/mine")}
	if _, _, err := a.policy(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{at("home"), at("."), "/"} {
		a.Keeps = func([]string) (dirs, files []string) { return []string{dir}, nil }
		if _, _, err := a.policy(); fault.Of(err) == nil || fault.Of(err).Code != fault.Unsafe {
			t.Errorf("an agent whose directory is %s: %v", dir, err)
		}
	}
}

// TestPartsShowNoMore: a file that a command line names is seen with its directory, but neither a home directory nor
// credentials are.
func TestPartsShowNoMore(t *testing.T) {
	w, at := dwelling(t)
	home := at("home")
	at("home/.ssh")
	for path, shown := range map[string]bool{
		at("home/server") + "/main.js": true, home: false, "/": false, home + "/script.js": true,
		home + "/.ssh": false, home + "/.ssh/id": false,
	} {
		n := AgentWanted{Wanted: w, Parts: []string{path}}.needs("/bin/true", nil)
		if slices.Contains(n.Show, path) != shown || slices.Contains(n.Show, home) ||
			slices.Contains(n.Show, filepath.Dir(home)) || slices.Contains(n.Show, home+"/.ssh") {
			t.Errorf("%s: %q", path, n.Show)
		}
	}
}

func errOf(w Wanted) error {
	_, err := w.Policy()
	return err
}

// TestVariablesMove places, unless that would show more.
func TestVariablesMove(t *testing.T) {
	w, at := dwelling(t)
	home := at("home")
	env := map[string]string{
		"GOCACHE": "/data/build", "GOPATH": home + "/golang:/elsewhere", "CARGO_HOME": home, "RUSTUP_HOME": "relative",
		"NVM_DIR": home + "/.ssh", "npm_config_prefix": home + "/node", "XDG_CACHE_HOME": at("home/caches"),
		"npm_config_cache": at("."),
		"PATH": home + "/tools/bin:" + home + ":/usr/bin:" + home + "/.aws/bin:" + home + "/.cargo/bin:bin:" +
			at("home/src") +
			"/project/bin",
	}
	w.Lookup = func(name string) (string, bool) { value, set := env[name]; return value, set }
	paths, p := seenIn(t, w)
	for path, want := range map[string]bool{
		"/data/build": true, home + "/golang/pkg/mod": true, home + "/golang/bin": true, home + "/go/bin": false,
		home + "/.cargo/registry": true, home + "/registry": false, home + "/.rustup": true, home + "/.ssh": false,
		home + "/.nvm": true, home + "/caches": true, home + "/caches/pip": true, home + "/.cache/pip": false,
		home + "/.npm/_cacache": true, home + "/tools/bin": true, home: false, home + "/.aws/bin": false,
		home + "/.cargo/bin": true, home + "/node/lib": true, home + "/node": false, home + "/.npm-global/lib": false,
	} {
		if slices.Contains(paths, path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	for _, place := range p.Places {
		if place.Path == "/data/build" && place.Visibility != sandbox.Shown {
			t.Errorf("%s is read-only, and the table says: %s", place.Path, place.Visibility)
		}
	}
	if slices.ContainsFunc(p.Hidden, func(path string) bool { return path == home+"/.ssh" }) {
		t.Error("a credential is hidden by name in a home directory that is empty")
	}
}

// TestACacheOfTheAccount that a variable names is as the variable makes it, though HOME is another directory.
func TestACacheOfTheAccount(t *testing.T) {
	w, at := dwelling(t)
	cache := at("account/.cache/go-build")
	env := map[string]string{"GOCACHE": cache}
	w.Lookup = func(name string) (string, bool) { value, set := env[name]; return value, set }
	var p sandbox.Policy
	if err := w.furnish(&p, at("account")); err != nil {
		t.Fatal(err)
	}
	var sights []sandbox.Visibility
	for _, place := range p.Places {
		if place.Path == cache {
			sights = append(sights, place.Visibility)
		}
	}
	if !slices.Equal(sights, []sandbox.Visibility{sandbox.Copied}) {
		t.Errorf("%v", sights)
	}
}

// TestRepositoryAroundTheWorkspace is seen, unless it is the home directory or holds credentials; so is the git
// directory of a submodule that names it, and no other.
func TestRepositoryAroundTheWorkspace(t *testing.T) {
	w, at := dwelling(t)
	home, project := at("home"), at("home/src/project")
	at("home/.git")
	if paths, _ := seenIn(t, w); slices.Contains(paths, home) {
		t.Error("a home directory that is a repository is seen")
	}
	at("home/src/.git")
	if paths, _ := seenIn(t, w); !slices.Contains(paths, home+"/src") {
		t.Error("the repository is not seen")
	}
	at("home/.config/.git")
	w.Root = at("home/.config/editor")
	if paths, _ := seenIn(t, w); slices.Contains(paths, home+"/.config") {
		t.Error("a repository with credentials is seen")
	}
	w.Root = project
	modules := at("home/private/modules/project")
	for _, name := range []string{"objects", "refs"} {
		at("home/private/modules/project/" + name)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(modules+"/HEAD", "ref: refs/heads/main\n")
	write(project+"/.git", "gitdir: "+modules+"\n")
	for _, config := range []string{"", "[core]\n\tworktree = ../../../other\n"} {
		write(modules+"/config", config)
		if paths, _ := seenIn(t, w); slices.Contains(paths, modules) {
			t.Error("a workspace chose a git directory")
		}
	}
	write(modules+"/config", "[core]\n\tworktree = ../../../src/project\n")
	if paths, _ := seenIn(t, w); !slices.Contains(paths, modules) {
		t.Error("the git directory of a submodule is not seen")
	}
}

// TestCovered: a home directory is covered, but not one in which the system lies.
func TestCovered(t *testing.T) {
	w, at := dwelling(t)
	link := filepath.Join(at("."), "link")
	if err := os.Symlink("home", link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(at("."), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{
		file,
		"/", "/usr", "/usr/sbin", "/etc", "/proc", "", at(".") + "/none", "/var/lib",
		"/var",
	} {
		if got := covered(home); got != nil {
			t.Errorf("%s: %q", home, got)
		}
	}
	if got := covered(link, w.Home, at("another")); !slices.Equal(got, []string{w.Home, at("another")}) {
		t.Errorf("%q", got)
	}
	w.Home = "/"
	_, p := seenIn(t, w)
	if !slices.Contains(p.Hidden, "/.ssh") {
		t.Error("credentials in a home directory that cannot be covered are seen")
	}
}
