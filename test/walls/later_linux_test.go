package walls

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// plot is a way to have a person run something later: what is there before, what a command does, and what the person
// does then. {out}/ran is the harm.
type plot struct{ before, attack, act string }

// evil is a script, a setting or a program that does the harm.
const evil = "echo 'touch {out}/ran' >> "

// plots are ways to write what runs later by itself, under names that do not say so, or that are on no list.
func plots() map[string]plot {
	return map[string]plot{
		"link to git's configuration": {
			"mkdir git; cp {home}/.gitconfig git/config; ln -sf {work}/git/config {home}/.gitconfig",
			`printf '[core]\n\tfsmonitor = "touch {out}/ran; false"\n' >> git/config`, "git status",
		},
		"link to a start-up file": {
			"echo : > rc; ln -s {work}/rc {home}/.bashrc", evil + "rc", "bash -ic true",
		},
		"link over a link to the workspace": {
			"echo : > rc; ln -s {work} {home}/dots; ln -s dots/rc {home}/.bashrc", "rm -f rc; " + evil + "rc", "bash -ic true",
		},
		"link that leads to nothing yet": {
			"echo '. ~/.bash_aliases' > {home}/.bashrc; ln -s {work}/aliases {home}/.bash_aliases", evil + "aliases",
			"bash -ic true",
		},
		"script that a start-up file reads": {
			"mkdir sh; echo : > sh/env.sh; echo '[ -f {work}/sh/env.sh ] && source {work}/sh/env.sh' > {home}/.bashrc",
			"mv sh old; mkdir -p sh; " + evil + "sh/env.sh", "bash -ic true",
		},
		"link to a directory of programs": {
			"mkdir -p bin {home}/.local; ln -s {work}/bin {home}/.local/bin",
			evil + "bin/tool; chmod +x bin/tool", "{home}/.local/bin/tool",
		},
		"program that PATH has as a link": {
			"echo : > tool.sh; chmod +x tool.sh; mkdir {home}/apps; ln -s {work}/tool.sh {home}/apps/tool",
			evil + "tool.sh", "{home}/apps/tool",
		},
		"script of .envrc": {
			"mkdir s; echo : > s/env; echo 'source s/env' > .envrc", "rm -f s/env; " + evil + "s/env", ". ./.envrc",
		},
		"script of a script of .envrc": {
			"mkdir s t; echo : > t/more.sh; echo '. t/more.sh' > s/env.sh; echo 'source ./s/env.sh' > .envrc",
			evil + "t/more.sh", ". ./.envrc",
		},
		"script of .envrc that is not there yet": {
			"mkdir s; echo '[ -f s/local.sh ] && . s/local.sh' > .envrc", evil + "s/local.sh", ". ./.envrc",
		},
		"script of a hook": {
			"mkdir tools; echo : > tools/check.sh; echo 'sh tools/check.sh' > .git/hooks/pre-commit; " +
				"chmod +x .git/hooks/pre-commit",
			evil + "tools/check.sh", "git commit --allow-empty -m x",
		},
		"script of a hook elsewhere": {
			"mkdir tools hk; echo : > tools/check.sh; echo 'exec sh ./tools/check.sh' > hk/pre-commit; " +
				"chmod +x hk/pre-commit; git config core.hooksPath hk",
			"mv tools t2; mkdir -p tools; " + evil + "tools/check.sh", "git commit --allow-empty -m x",
		},
		"interpreter of an editor": {
			`mkdir -p .vscode .venv/bin; echo : > .venv/bin/python; chmod +x .venv/bin/python; ` +
				`echo '{"python.defaultInterpreterPath":".venv/bin/python"}' > .vscode/settings.json`,
			"rm -rf .venv; mkdir -p .venv/bin; " + evil + ".venv/bin/python; chmod +x .venv/bin/python", ".venv/bin/python",
		},
		"server of an agent": {
			`mkdir srv; echo : > srv/run.sh; echo '{"mcpServers":{"x":{"command":"sh","args":["srv/run.sh"]}}}' > .mcp.json`,
			evil + "srv/run.sh", "sh srv/run.sh",
		},
		"settings of a listed tool": {"true", evil + "mise.toml", "sh ./mise.toml"},
		"settings of a tool on no list": {
			"true", "mkdir -p .newtool; " + evil + ".newtool/start", "sh .newtool/start",
		},
		"beneath a directory that is there": {
			"mkdir -p .github/workflows; echo x > .github/workflows/ci.yml",
			"mkdir -p .github/run; " + evil + ".github/run/start", "sh .github/run/start",
		},
		"directory that is moved there": {
			"true", "mkdir -p plain; " + evil + "plain/start; mv plain .newtool", "sh .newtool/start",
		},
		"directory in the place of one that was there": {
			"mkdir .newtool; echo x > .newtool/conf", "mkdir -p plain; " + evil +
				"plain/start; rm -rf .newtool; mv plain .newtool", "sh .newtool/start",
		},
		"link with such a name": {"true", evil + "plain; ln -s plain .newrc", "sh .newrc"},
		"second name of a file": {"true", evil + "plain; ln plain .newrc", "sh .newrc"},
		"over a harmless name":  {"true", evil + ".x.tmp; mv .x.tmp .newrc", "sh .newrc"},
		"ignored a moment ago": {
			"true", "echo .newrc >> .gitignore; echo .newrc >> .git/info/exclude; " + evil + ".newrc", "sh .newrc",
		},
		"unpacked": {
			"mkdir ../made; cd ../made; mkdir .newtool; " + evil + ".newtool/start; tar cf {work}/a.tar .newtool",
			"tar xf a.tar", "sh .newtool/start",
		},
	}
}

// TestWhatRunsLater: no command makes or changes what a person's tools run later by themselves.
func TestWhatRunsLater(t *testing.T) {
	for name, p := range plots() {
		t.Run(name, func(t *testing.T) {
			inTiers(t, func(t *testing.T, where tier) {
				g := newGround(t)
				g.laterGround(t, p)
				out, err := g.command(where, "sandbox", "run", "--", "bash", "-c",
					g.fill(p.attack, "")+"\ntouch behind").CombinedOutput()
				if err != nil || !exists(g.work+"/behind") {
					t.Fatalf("%v: %s", err, out)
				}
				said := g.person(p.act)
				if exists(g.out + "/ran") {
					t.Errorf("a person ran it: %s\n%s", said, out)
				}
				g.person(p.attack) // without walls it would
				if said := g.person(p.act); !exists(g.out + "/ran") {
					t.Errorf("the attack does not even work without walls: %s", said)
				}
			}, turns(name)...)
		})
	}
}

// turns are the tiers in which a case is tried: every day one of them, by its name.
func turns(name string) []tier {
	switch {
	case hermetic.Matrices():
		return []tier{namespaces(), landlock()}
	case len(name)%2 == 0:
		return []tier{landlock()}
	}
	return []tier{namespaces()}
}

// laterGround is a repository with what is there before.
func (g *ground) laterGround(t *testing.T, p plot) {
	t.Helper()
	must(t, os.RemoveAll(g.work+"/.git"))
	g.env = append(g.env, "PATH="+g.home+"/apps:/usr/local/bin:/usr/bin:/bin", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	g.write(t, g.home+"/.gitconfig", "[user]\n\tname = a\n\temail = a@b\n")
	if out := g.person("git init -q . && " + p.before); out != "" {
		t.Fatal(out)
	}
}

// person runs a line as a person would, in the workspace.
func (g *ground) person(line string) string {
	cmd := exec.Command("bash", "-c", g.fill(line, ""))
	cmd.Dir, cmd.Env = g.work, g.env
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// TestHarmlessNames: commands can write names that are harmless, ignored, or were there before.
func TestHarmlessNames(t *testing.T) {
	const before = `mkdir -p .github/workflows .tool; echo 1 > .github/workflows/ci.yml; echo 1 > .tool/conf; echo 1 > .rc
		printf '.local-state\n*.ign\n' > .gitignore; git add -A; git commit -qm 1; git checkout -qb other
		echo 2 > .github/workflows/ci.yml; echo 2 > .tool/conf; echo 2 > .rc; git commit -qam 2; git checkout -q -`
	for name, line := range map[string]string{
		"caches":            "mkdir .pytest_cache .venv .mypy_cache; touch .pytest_cache/x .venv/y .coverage .eslintcache",
		"git's files":       "echo x >> .gitignore; touch .gitattributes .gitkeep .mailmap",
		"editors":           "touch .editorconfig .prettierrc .main.c.swp .#lock",
		"ignored":           "mkdir .local-state; touch .local-state/x .a.ign",
		"changed":           "echo 3 >> .rc; sed -i s/1/4/ .tool/conf; echo x > .tool/conf.tmp; mv .tool/conf .moved.tmp",
		"replaced":          "cp .rc new; mv new .rc; rm .tool/conf; echo 5 > .tool/conf",
		"git":               "git checkout -q other; git checkout -q -; echo 9 > .rc; git stash -q; git stash pop -q",
		"workflow":          "echo x > .github/workflows/new.yml",
		"first of its kind": "mkdir -p .github/workflows; echo x > .github/workflows/new.yml",
		"other histories":   "mkdir -p .hg/store .svn; touch .hg/store/x .svn/wc.db",
		"deeper":            "mkdir -p src/.hidden; touch src/.hidden/x a.b",
		"repository":        "git init -q sub; git clone -q . copy",
	} {
		t.Run(name, func(t *testing.T) {
			inTiers(t, func(t *testing.T, where tier) {
				g := newGround(t)
				if g.laterGround(t, plot{before: before}); name == "first of its kind" {
					must(t, os.RemoveAll(g.work+"/.github"))
				}
				out, err := g.command(where, "sandbox", "run", "--", "bash", "-ec", line).CombinedOutput()
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
			}, turns(name)...)
		})
	}
}

// TestARefusalSaysWhy: the result of a command that was kept from such a file names the file, as the command did, and
// what the model can do.
func TestARefusalSaysWhy(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		g.write(t, g.work+"/do.sh", "cd sub; mkdir ../.newtool; mv b.txt ../mise.toml; echo x > c.txt")
		o := g.turn(t, where, []string{bash("sh do.sh")}, "--permission-mode", "auto")
		if len(o.results) != 1 {
			t.Fatalf("%+v\n%s", o.results, o.stderr)
		}
		for _, path := range []string{`"../.newtool"`, `"../mise.toml"`} {
			if !strings.Contains(o.results[0].Content, "[The walls refused: a write to "+path+
				", which may run later by itself; Write and Edit ask a person about it.") {
				t.Errorf("%s: %q", path, o.results[0].Content)
			}
		}
		if strings.Contains(o.results[0].Content, "c.txt\"") || !exists(g.work+"/sub/c.txt") {
			t.Errorf("what was written counts as refused: %q", o.results[0].Content)
		}
	}, namespaces(), landlock())
}

// TestATurnSaysWhatRunsLater: where no walls hold it, the end of the turn names it, in one line.
func TestATurnSaysWhatRunsLater(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.rules(t, "allow = ['Bash']\n")
	g.write(t, g.work+"/do.sh", "mkdir .newtool; echo x > .newtool/start; echo x > plain; echo x > .git/hooks/post-commit")
	o := g.turn(t, tier{name: "none"}, []string{bash("sh do.sh")}, "--sandbox", "off", "--permission-mode", "yolo")
	const want = "Some changed files run by themselves later: "
	_, line, found := strings.Cut(o.stderr, want)
	line, _, _ = strings.Cut(line, "\n")
	names := strings.Split(line, ", ")
	slices.Sort(names)
	if !found || !slices.Equal(names, []string{".git/hooks/post-commit", ".newtool/start"}) {
		t.Errorf("%q\n%s\n%v", names, o.stderr, o.results)
	}
}

// TestAStartUpPlaceIsTheWorkspace: where a start-up place is a link to the workspace, everything in it would run.
func TestAStartUpPlaceIsTheWorkspace(t *testing.T) {
	g := newGround(t)
	must(t, os.MkdirAll(filepath.Join(g.home, ".config"), 0o700))
	must(t, os.Symlink(g.work, filepath.Join(g.home, ".config", "autostart")))
	out, err := g.command(namespaces(), "sandbox", "run", "--", "touch", "made").CombinedOutput()
	if err == nil || exists(g.work+"/made") {
		t.Errorf("it ran: %s", out)
	}
}
