package sandbox

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// house is a ground with a home directory.
type house struct {
	ground
	home string
}

func newHouse(t *testing.T) house {
	t.Helper()
	g := newGround(t)
	h := house{g, g.dir + "/home"}
	for path, text := range map[string]string{
		".tool/bin/run": "#!/bin/sh\necho ran\n", ".tool/credentials": "secret", ".nobody-knows/token": "secret",
		".history": "secret", ".cache/build/a": "built", ".cache/other/token": "secret", ".store/a": "stored",
		"notes":      "secret",
		".gitconfig": "[user]\n\tname = Ann\n\temail = a@example.com\n[credential]\n\thelper = secret\n",
	} {
		h.write(t, path, text)
	}
	must(t, os.Chmod(h.home+"/.tool/bin/run", 0o700))
	return h
}

func (h house) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(h.home, path)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

func (h house) read(path string) string {
	text, _ := os.ReadFile(filepath.Join(h.home, path))
	return string(text)
}

// buildHomes gives a policy the home directory.
func (h house) buildHomes(p *Policy) {
	p.Homes, p.Scratch = []string{h.home}, h.temp+"-home"
	p.Identity = GitIdentity([]string{h.home + "/.gitconfig"})
	for path, sight := range map[string]Visibility{
		".tool/bin": Shown, ".cache": Owned, ".cache/build": Copied, ".store": Copied, ".absent": Copied, ".own": Owned,
	} {
		p.Places = append(p.Places, Place{Path: filepath.Join(h.home, path), Visibility: sight, Why: "the test"})
	}
	slices.SortFunc(p.Places, func(a, b Place) int { return strings.Compare(a.Path, b.Path) })
}

// parts gives a policy the home directory with a place that is brought in parts.
func (h house) parts(p *Policy) {
	h.buildHomes(p)
	p.Places = append(p.Places, Place{
		Path: h.home + "/.cache/parts", Visibility: Copied,
		Parts: []Part{{"v1/*", true}, {"v1/*", false}}, Why: "the test",
	})
}

// line runs a command with the home directory.
func (h house) line(t *testing.T, w *Walls, line string) result {
	t.Helper()
	var out bytes.Buffer
	p, err := w.Plan(process.Plan{
		Argv: []string{"bash", "-c", line}, Path: "/bin/bash", Dir: h.root,
		Env:    []string{"HOME=" + h.home, "PATH=" + os.Getenv("PATH"), "TOOL=" + h.home + "/.tool", "REAL=" + h.home},
		Stdout: &out, Stderr: &out,
	})
	must(t, err)
	c, err := process.Start(p)
	must(t, err)
	e := c.Wait()
	return result{out.String(), e}
}

// TestBrought: where nothing can be mounted, a cache below a directory of the command's own has links to what is in
// the person's, and copies of what programs write into; the next conversation brings what is new and takes back links
// to what is gone. A command that puts links in our way gains nothing.
func TestBrought(t *testing.T) {
	if !slices.Contains(tiers(t), Landlock) {
		t.Skip("there is no Landlock here")
	}
	h := newHouse(t)
	h.write(t, ".cache/parts/v1/one/a", "one")
	h.write(t, ".cache/parts/v1/.tmp/a", "temporary")
	h.write(t, ".cache/parts/v1/index", "index\n")
	h.write(t, ".cache/parts/other", "secret")
	w := h.walls(t, Landlock, h.parts)
	r := h.line(t, w, "cd ~/.cache/parts && find . | sort && cat v1/one/a v1/index && echo more >> v1/index && "+
		"mkdir -p v1/mine v1/two/empty && ln -s mine v1/link && rm v1/one && ! echo x > $REAL/.cache/parts/v1/one/a")
	if !strings.HasPrefix(r.out, ".\n./v1\n./v1/index\n./v1/one\noneindex\n") || r.ending.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	if h.read(".cache/parts/v1/one/a") != "one" || h.read(".cache/parts/v1/index") != "index\n" {
		t.Error("what is the user's has changed")
	}
	must(t, w.Close())

	h.write(t, ".cache/parts/v1/two/a", "two")
	w = h.walls(t, Landlock, h.parts)
	const all = "cd ~/.cache/parts/v1 && echo * && cat */a index"
	if r := h.line(t, w, all); r.out != "index link mine one two\nonetwoindex\nmore\n" {
		t.Errorf("%+v", r)
	}
	must(t, w.Close())

	must(t, os.RemoveAll(h.home+"/.cache/parts/v1/one"))
	w = h.walls(t, Landlock, h.parts)
	if r := h.line(t, w, all); r.out != "index link mine two\ntwoindex\nmore\n" {
		t.Errorf("%+v", r)
	}
	if r := h.line(t, w, "cd ~/.cache && rm -r parts && ln -s "+h.home+" parts"); r.ending.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	must(t, w.Close())
	w = h.walls(t, Landlock, h.parts)
	if _, err := os.Lstat(h.home + "/v1"); err == nil {
		t.Error("it follows a link that a command has made")
	}
	if r := h.line(t, w, "rm ~/.cache/parts"); r.ending.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
}

// TestHomeIsEmpty: what is not on the list cannot be read, whether nobody thought of it, it lies beside what is on the
// list, or it appears later.
func TestHomeIsEmpty(t *testing.T) {
	hermetic.Long(t)
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) {
			h := newHouse(t)
			must(t, os.Symlink(h.home+"/.history", h.root+"/link"))
			w := h.walls(t, tier, h.buildHomes)
			for _, path := range []string{
				"~/.nobody-knows/token", "~/.history", "~/notes", "~/.tool/credentials", "~/.cache/other/token",
				"$REAL/notes", "$REAL/.tool/credentials", "$REAL/.cache/other/token", "$REAL/.gitconfig.old",
				"/proc/self/root$REAL/notes", "link", "$REAL/.tool/bin/../credentials",
			} {
				if r := h.line(t, w, "cat "+path); strings.Contains(r.out, "secret") || r.ending.ExitCode == 0 {
					t.Errorf("%s: %+v", path, r)
				}
			}
			for _, line := range []string{
				"echo x > ~/.bashrc", "echo x >> $REAL/.profile", "mkdir ~/.config", "echo x > ~/.tool/bin/run",
				"echo x > $REAL/.tool/bin/new", "rm ~/.gitconfig", "echo x >> ~/.gitconfig", "mv ~/.tool ~/.tool2",
			} {
				if r := h.line(t, w, line); r.ending.ExitCode == 0 {
					t.Errorf("%s: %+v", line, r)
				}
			}
			if r := h.line(t, w,
				"~/.tool/bin/run && $REAL/.tool/bin/run && $TOOL/bin/run"); r.out != "ran\nran\nran\n" {
				t.Errorf("%+v", r)
			}
			if r := h.line(t, w, "ls -A ~"); r.out != ".cache\n.gitconfig\n.own\n.store\n.tool\n" {
				t.Errorf("%+v", r)
			}
			if r := h.line(t, w, "git config --global --list"); r.out != "user.name=Ann\nuser.email=a@example.com\n" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestHiddenLate: a secret that is made while a command runs is not seen, neither in a new directory, nor in one that
// was there, nor beside what is on the list, nor where a directory or a file is moved in, nor over a new link.
func TestHiddenLate(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) {
			h := newHouse(t)
			w := h.walls(t, tier, h.buildHomes)
			var out bytes.Buffer
			in, answer, err := os.Pipe()
			must(t, err)
			p, err := w.Plan(process.Plan{
				Argv: []string{
					"bash", "-c", "read _; cat $REAL/.config/new/hosts $REAL/.nobody-knows/late $REAL/.tool/token " +
						"$REAL/late $REAL/.history ~/late $REAL/.moved/token $REAL/.tool/bin/late ~/.tool/bin/late; true",
				}, Path: "/bin/bash", Dir: h.root, Env: []string{"HOME=" + h.home, "REAL=" + h.home},
				Stdin: in, Stdout: &out,
			})
			must(t, err)
			c, err := process.Start(p)
			must(t, err)
			for _, path := range []string{
				".config/new/hosts", ".nobody-knows/late", ".tool/token", "late",
				"replaced", "made/token",
			} {
				h.write(t, path, "secret")
			}
			must(t, os.Rename(h.home+"/replaced", h.home+"/.history"))
			must(t, os.Rename(h.home+"/made", h.home+"/.moved"))
			must(t, os.Symlink("../credentials", h.home+"/.tool/bin/late"))
			_, err = answer.WriteString("now\n")
			must(t, err)
			c.Wait()
			_, _ = in.Close(), answer.Close()
			if out.Len() > 0 {
				t.Errorf("%s", out.String())
			}
		})
	}
}

// TestCopies: what commands write in a cache is there for the next command of the workspace, for no other workspace,
// and not for the user.
func TestCopies(t *testing.T) {
	hermetic.Long(t)
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) {
			h := newHouse(t)
			w := h.walls(t, tier, h.buildHomes)
			if tier == Namespaces {
				r := h.line(t, w, "cat ~/.cache/build/a ~/.store/a; echo poison > ~/.cache/build/a; rm ~/.store/a; "+
					"echo new > ~/.store/b; mv ~/.cache/build/a ~/.cache/build/c")
				if r.out != "builtstored" || r.ending.ExitCode != 0 {
					t.Errorf("%+v", r)
				}
				if r := h.line(t, w, "ls ~/.cache/build ~/.store; cat ~/.cache/build/c"); !strings.HasSuffix(r.out,
					"/.cache/build:\nc\n\n"+h.home+"/.store:\nb\npoison\n") {
					t.Errorf("%+v", r)
				}
			} else {
				if r := h.line(t, w, "cat ~/.store/a; echo poison > ~/.store/a"); !strings.HasPrefix(r.out, "stored") ||
					r.ending.ExitCode == 0 {
					t.Errorf("%+v", r)
				}
			}
			if r := h.line(t, w, "mkdir -p ~/.cache/build ~/.own/x && echo x > ~/.own/x/a && "+
				"echo z > ~/.cache/z"); r.ending.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
			const all = "cat ~/.own/x/a ~/.cache/z"
			if r := h.line(t, w, all); r.out != "x\nz\n" {
				t.Errorf("%+v", r)
			}
			if h.read(".cache/build/a") != "built" || h.read(".store/a") != "stored" || exists(h.home+"/.store/b") ||
				exists(h.home+"/.cache/z") || exists(h.home+"/.own") || exists(h.home+"/.absent") {
				t.Error("what is the user's has changed")
			}
			must(t, os.Mkdir(h.dir+"/another", 0o700))
			other := h.walls(t, tier, h.buildHomes, func(p *Policy) {
				p.Root, p.Scratch = h.dir+"/another", h.dir+"/another-home"
			})
			h.root = h.dir + "/another"
			if r := h.line(t, other, all+"; cat ~/.store/a"); strings.Contains(r.out, "x\n") ||
				!strings.HasSuffix(r.out,
					"stored") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestLayers: commands that run at the same time see what the other writes, also after one was killed; what lies in the
// way of a place does not keep a command from starting; and in the end nothing is left.
func TestLayers(t *testing.T) {
	hermetic.Long(t)
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) {
			h := newHouse(t)
			w := h.walls(t, tier, h.buildHomes)
			in, answer, err := os.Pipe()
			must(t, err)
			if tier == Namespaces {
				p, err := w.Plan(process.Plan{
					Argv: []string{"bash", "-c", "echo first > ~/.store/who; read _; cat ~/.store/who > who"},
					Path: "/bin/bash", Dir: h.root, Env: []string{"HOME=" + h.home}, Stdin: in,
				})
				must(t, err)
				c, err := process.Start(p)
				must(t, err)
				if r := h.line(t, w, "until [ -s ~/.store/who ]; do sleep 0.01; done; echo second > "+
					"~/.store/who"); r.ending.ExitCode != 0 {
					t.Errorf("%+v", r)
				}
				_, err = answer.WriteString("now\n")
				must(t, err)
				c.Wait()
				if text, _ := os.ReadFile(h.root + "/who"); string(text) != "second\n" {
					t.Errorf("%q", text)
				}
				if r := h.line(t, w,
					"mkdir -p ~/.store/sealed/x && chmod 0500 ~/.store/sealed"); r.ending.ExitCode != 0 {
					t.Errorf("%+v", r)
				}
				if r := h.line(t, w, "kill -KILL $$"); r.ending.Signal != "SIGKILL" {
					t.Errorf("%+v", r)
				}
				if r := h.line(t, w, "cat ~/.store/who"); r.out != "second\n" {
					t.Errorf("%+v", r)
				}
			}
			_, _ = in.Close(), answer.Close()
			must(t, os.RemoveAll(h.home+"/.cache/build"))
			for _, line := range []string{
				"ln -sfn / ~/.cache/build",
				"rm -rf ~/.cache/build; echo file > ~/.cache/build",
			} {
				must(t, os.RemoveAll(h.home+"/.cache/build"))
				h.line(t, w, line)
				h.write(t, ".cache/build/a", "built")
				if r := h.line(t, w, "echo on"); r.out != "on\n" {
					t.Errorf("%s: %+v", line, r)
				}
			}
			must(t, w.Close())
			if left, _ := filepath.Glob(h.dir + "/temp-home"); len(left) > 0 {
				t.Errorf("%q", left)
			}
		})
	}
}

// TestFirstUse: with a network, a cache that is not there yet is the command's own, and the user's home directory stays
// without it.
func TestFirstUse(t *testing.T) {
	for _, tier := range tiers(t) {
		h := newHouse(t)
		w := h.walls(t, tier, h.buildHomes, func(p *Policy) { p.Network.Open = true })
		if r := h.line(t, w, "echo x > ~/.absent/a && cat ~/.absent/a"); r.out != "x\n" || exists(h.home+"/.absent") {
			t.Errorf("%s: %+v", tier, r)
		}
		w = h.walls(t, tier, h.buildHomes)
		if r := h.line(t, w, "mkdir ~/.absent"); r.ending.ExitCode == 0 {
			t.Errorf("%s: %+v", tier, r)
		}
	}
}

// TestSweepHomes: what was not used for long goes.
func TestSweepHomes(t *testing.T) {
	record := t.TempDir()
	for name, old := range map[string]bool{"home-a": true, "home-b": false, "links-c": true, "lease-d": true} {
		must(t, os.MkdirAll(filepath.Join(record, name, "x"), 0o700))
		if old {
			must(t, os.Chtimes(filepath.Join(record, name), time.Unix(1, 0), time.Unix(1, 0)))
		}
	}
	sweepHomes(record, time.Now().Add(-time.Hour))
	if left, _ := filepath.Glob(record + "/*"); !slices.Equal(left, []string{record + "/home-b", record + "/lease-d"}) {
		t.Errorf("%q", left)
	}
}

// TestHomesOfAllKinds: the workspace lies in the home directory, a place is a link, and links that lead to all of it
// show nothing.
func TestHomesOfAllKinds(t *testing.T) {
	hermetic.Long(t)
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) {
			h := newHouse(t)
			work := h.home + "/src/project"
			must(t, os.MkdirAll(work, 0o700))
			h.write(t, "src/sibling/file", "secret")
			must(t, os.Mkdir(h.dir+"/elsewhere", 0o700))
			must(t, os.WriteFile(h.dir+"/elsewhere/file", []byte("moved"), 0o600))
			must(t, os.Symlink(h.dir+"/elsewhere", h.home+"/.linked"))
			must(t, os.Symlink(".store", h.home+"/.inner"))
			must(t, os.Symlink("..", h.home+"/src/up"))
			must(t, os.Symlink("/", h.home+"/.all"))
			h.root = work
			w := h.walls(t, tier, h.buildHomes, func(p *Policy) {
				for _, name := range []string{".linked", ".inner", "src/up", ".all", "src/project"} {
					p.Places = append(p.Places, Place{Path: filepath.Join(h.home, name), Why: "the test"})
				}
			})
			if r := h.line(t, w, "pwd; cat ~/.linked/file ~/.inner/a; echo x > own && cat own"); r.out != work+
				"\nmovedstoredx\n" {
				t.Errorf("%+v", r)
			}
			for _, line := range []string{
				"cat ../sibling/file", "cat ~/src/up/notes", "cat ~/.all" + h.home + "/notes", "cat $REAL/src/up/notes",
				"cat $REAL/.all$REAL/notes", "echo x > ../beside", "mv ../project ../other",
			} {
				if r := h.line(t, w, line); r.ending.ExitCode == 0 {
					t.Errorf("%s: %+v", line, r)
				}
			}
			if !exists(work + "/own") {
				t.Error("the workspace was not written")
			}
		})
	}
}

// TestExplainHome compares what is said with what happens.
func TestExplainHome(t *testing.T) {
	hermetic.Long(t)
	for _, tier := range tiers(t) {
		h := newHouse(t)
		for _, path := range []string{
			".own/a", ".cache/parts/v1/one/a", ".cache/parts/v1/two", ".cache/parts/v1/.tmp/a", ".cache/parts/other/a",
		} {
			h.write(t, path, "x")
		}
		p := h.policy()
		h.parts(&p)
		w := h.walls(t, tier, h.parts)
		for _, path := range []string{
			".tool", ".tool/bin", ".tool/bin/run", ".tool/credentials", "notes", ".store", ".nobody-knows", ".own",
			".cache/parts", ".cache/parts/v1", ".cache/parts/v1/one", ".cache/parts/v1/one/a", ".cache/parts/v1/two",
			".cache/parts/v1/.tmp", ".cache/parts/other",
		} {
			e := p.Explain(filepath.Join(h.home, path), Report{Tier: tier})
			t.Logf("%s %s: %+v", tier, path, e)
			r := h.line(t, w,
				"f=~/"+path+"; test -e $f && head -c 1 -- $f > /dev/null 2>&1 || ls -- $f >/dev/null 2>&1 && "+
					"echo read; if test -f $f; then echo x 2>/dev/null >> $f; else mkdir -p $f 2>/dev/null; "+
					"echo x 2>/dev/null > $f/new; fi && echo write; true")
			if strings.Contains(r.out, "read") != e[0].Allowed || strings.Contains(r.out, "write") != e[1].Allowed {
				t.Errorf("%s %s: %q, %+v", tier, path, r.out, e)
			}
		}
	}
}

// TestGitIdentity: of a configuration commands get who commits and how git treats files, and nothing that leads
// elsewhere, runs something or is a secret.
func TestGitIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(file, []byte(`[user]
	name = "Ann \"A\" \\ Lee" # who
	email = ann@example.com
	signingkey = ABC
	password = hunter2
[core]
	autocrlf = input
	editor = vim
	sshCommand = ssh -i ~/.ssh/id
	hooksPath = ~/hooks
	fsmonitor = evil
	excludesFile = ~/.gitignore
	attributesFile = /srv/attributes
[init]
	defaultBranch = trunk
	templateDir = ~/template
[credential]
	helper = store
[credential "https://example.com"]
	username = ann
[url "https://token@example.com/"]
	insteadOf = https://example.com/
[include]
	path = ~/more
[includeIf "gitdir:~/work/"]
	path = ~/work.inc
[alias]
	st = status --short
	evil = !curl example.com
[http]
	extraHeader = Authorization: secret
[github]
	token = secret
[safe]
	directory = /srv/x
[filter "lfs"]
	clean = git-lfs clean -- %f
	required = true
`), 0o600))
	want := "[user]\n\tname = \"Ann \\\"A\\\" \\\\ Lee\"\n[user]\n\temail = \"ann@example.com\"\n" +
		"[core]\n\tautocrlf = \"input\"\n" +
		"[core]\n\texcludesfile = \"~/.gitignore\"\n[init]\n\tdefaultbranch = \"trunk\"\n[alias]\n\tst = \"status " +
		"--short\"\n" +
		"[safe]\n\tdirectory = \"/srv/x\"\n[filter \"lfs\"]\n\tclean = \"git-lfs clean -- %f\"\n" +
		"[filter \"lfs\"]\n\trequired = \"true\"\n"
	if got := GitIdentity([]string{file + ".absent", file}); got != want {
		t.Errorf("%s", got)
	}
}

// TestNothingStaysInTheHome: what a stage mounts leaves no mount points behind in the user's home directory.
func TestNothingStaysInTheHome(t *testing.T) {
	for _, tier := range tiers(t) {
		h := newHouse(t)
		var before, after []string
		list := func(into *[]string) {
			must(t, filepath.WalkDir(h.home, func(path string, _ fs.DirEntry, err error) error {
				*into = append(*into, path)
				return err
			}))
		}
		list(&before)
		w := h.walls(t, tier, h.buildHomes)
		h.line(t, w, "true")
		list(&after)
		if !slices.Equal(before, after) {
			t.Errorf("%s: %q, then %q", tier, before, after)
		}
	}
}
