//go:build unix

package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestInheritance: what is not on the list stays here, whatever its name says.
func TestInheritance(t *testing.T) {
	t.Parallel()
	kept := []string{
		"PATH=/bin:/usr/bin", "HOME=/h", childMark + "=m", "LANG=de", "LC_COLLATE=C", "TZ=UTC", "TMPDIR=/t",
		"XDG_CACHE_HOME=/c", "SSL_CERT_FILE=/pem",
		"https_proxy=http://proxy:3128", "GOPATH=/go", "JAVA_HOME=/j", "CARGO_HOME=/r", "NVM_DIR=/n", "VIRTUAL_ENV=/v",
		"USER=ann", "HTTP_PROXY=proxy:3128", "GOPROXY=https://g/a,https://h|direct", "no_proxy=*.example.com",
		"M2_HOME=/opt/maven@3.9", "GOSUMDB=sum.golang.org",
	}
	dropped := []string{
		"GITHUB_TOKEN=x", "MY_API_KEY=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_PROFILE=p", "DATABASE_URL=postgres://a:b@c/d",
		"SLACK_HOOK=https://h", "FOO=bar",
		"OMNIAGENT_LOG=x", "CI=1", "TERM=xterm", "COLORTERM=truecolor", "BASH_ENV=/evil", "ENV=/evil", "CDPATH=/",
		"BASH_FUNC_ls%%=() { echo no; }", "torn",
		"=x", "LD_PRELOAD=/e.so", "LD_LIBRARY_PATH=/e", "DYLD_INSERT_LIBRARIES=/e", "GIT_DIR=/e", "GIT_SSH_COMMAND=/e",
		"GIT_CONFIG_COUNT=1",
		"NODE_OPTIONS=--require=/e", "NODE_PATH=/e", "PYTHONSTARTUP=/e", "PYTHONPATH=/e", "PERL5OPT=-Me", "RUBYOPT=-re",
		"JAVA_TOOL_OPTIONS=-javaagent:/e",
		"GOFLAGS=-toolexec=/e", "RUSTC_WRAPPER=/e", "MAKEFLAGS=--eval=x", "SSH_AUTH_SOCK=/s", "XDG_SESSION_ID=4",
		"LESSOPEN=|/e %s", "PS4=$(e)",
		"HTTPS_PROXY=http://ann:hunter2hunter2@proxy:3128", "PIP_INDEX_URL=https://ann:hunter2hunter2@index/simple",
		"GOPROXY=https://u:p4ssw0rdp4ss@g", "HTTP_PROXY=u:CANARY@h:80", "UV_INDEX_URL=https://CANARY@h/simple",
		"RUSTUP_DIST_SERVER=https://user@CANARY:pw@h", "GOPROXY=https://g,https://CANARY@h,direct",
		"npm_config_registry=//CANARY@h/", "all_proxy=socks5h://u:CA/NARY@h", "FTP_PROXY=CANARY@h",
		"NIX_PATH=n=https://CANARY@h/n",
		"GOPROXY=https://g|http://u:@h",
	}
	var mixed []string // one of each, so that neither order nor neighbours count
	for i := range max(len(kept), len(dropped)) {
		if i < len(dropped) {
			mixed = append(mixed, dropped[i])
		}
		if i < len(kept) {
			mixed = append(mixed, kept[i])
		}
	}
	if got := (Inheritance{}).Of(mixed); !slices.Equal(got, kept) {
		t.Errorf("got %q\nwant %q", got, kept)
	}
	got := Environment(append(mixed, "EDITOR=vim"))
	for _, entry := range settings() {
		name := nameOf(entry)
		if values := slices.DeleteFunc(slices.Clone(got),
			func(e string) bool { return nameOf(e) != name }); !slices.Equal(values, []string{entry}) {
			t.Errorf("%s: %q", name, values)
		}
	}
	for _, entry := range got {
		if !slices.Contains(kept, entry) && !slices.Contains(settings(), entry) {
			t.Errorf("%q is handed on", entry)
		}
	}
}

// TestInheritanceOfMore: the user's word hands on what the list does not have, but not what would take a shell over.
func TestInheritanceOfMore(t *testing.T) {
	t.Parallel()
	i := Inheritance{More: []string{
		"NPM_TOKEN", "LD_LIBRARY_PATH", "BASH_ENV", "LD_PRELOAD", "OMNIAGENT_LOG", "TERM",
		"https_proxy", "npm_tokens",
	}}
	base := []string{
		"NPM_TOKEN=t", "NPM_TOKENS=u", "LD_LIBRARY_PATH=/l", "BASH_ENV=/e", "LD_PRELOAD=/e",
		"OMNIAGENT_LOG=x", "TERM=xterm", "https_proxy=http://a:hunter2hunter2@p:1",
	}
	if got, want := i.Of(base), []string{
		"NPM_TOKEN=t", "LD_LIBRARY_PATH=/l", "TERM=xterm",
		"https_proxy=http://a:hunter2hunter2@p:1",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := i.Commands(base); !slices.Contains(got, "TERM=dumb") || slices.Contains(got, "TERM=xterm") {
		t.Errorf("what commands always have was replaced: %q", got)
	}
	if got := (Inheritance{Opens: true}).Of([]string{"DISPLAY=:0", "NPM_TOKEN=t"}); !slices.Equal(got,
		[]string{"DISPLAY=:0"}) {
		t.Errorf("got %q", got)
	}
}

// TestInheritedPath: no directory of the workspace, by whichever name, and none that depends on where a command runs.
func TestInheritedPath(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	work, twin, home, link := filepath.Join(base, "w"), filepath.Join(base, "w-2"), filepath.Join(base,
		"home"), filepath.Join(base, "link")
	for _, dir := range []string{filepath.Join(work, "bin"), filepath.Join(twin, "bin"), filepath.Join(home, "bin")} {
		check(t, os.MkdirAll(dir, 0o755))
	}
	check(t, os.Symlink(filepath.Join(work, "bin"), link))
	path := strings.Join([]string{
		"", ".", "bin", "./x", work, work + "/bin", work + "/sub/../bin", work + "/not/yet",
		link, link + "/../bin", twin + "/bin", home + "/bin", "/usr/bin",
	}, ":")
	of := func(roots ...string) string {
		got := (Inheritance{Roots: roots}).Of([]string{"HOME=" + home, "PATH=" + path})
		return strings.TrimPrefix(got[1], "PATH=")
	}
	if got, want := of(work), strings.Join([]string{twin + "/bin", home + "/bin", "/usr/bin"}, ":"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := of(link); strings.Contains(got, work+"/bin") || strings.Contains(got, link) {
		t.Errorf("a workspace that is named by a link: %s", got)
	}
	for _, above := range []string{home, base, "/"} {
		if got := of(above); !strings.Contains(got, home+"/bin") || strings.HasPrefix(got, ":") ||
			strings.Contains(got, ":bin:") {
			t.Errorf("the home directory is in %s, and its programs are not the repository's: %s", above, got)
		}
	}
	if got := of(work, base); strings.Contains(got, work+"/bin") {
		t.Errorf("the home directory's repository does not excuse the workspace: %s", got)
	}
	if got := (Inheritance{Roots: []string{"/"}}).Of([]string{"PATH=/usr/bin"}); !slices.Equal(got,
		[]string{"PATH=/usr/local/bin:/usr/bin:/bin"}) {
		t.Errorf("got %q", got)
	}
}
