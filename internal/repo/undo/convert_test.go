package undo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// conversion is a way in which git converts files.
type conversion struct {
	settings   string // a script that makes them, in the home
	attributes string // of the repository
	file       string // a script that writes the file before it is committed
	stays      bool   // the file is not written again by git
}

func conversions() map[string]conversion {
	const (
		text  = `i=0; while [ $i -lt 500 ]; do echo 'line $Id$'; i=$((i+1)); done`
		wide  = text + ` | iconv -t UTF-16LE`
		marks = text + ` | sed 's/$/\r/'`
		auto  = `git config --global core.autocrlf true`
		more  = `; git config -f ~/inc core.autocrlf true`
		rot   = `git config --global filter.p.smudge 'tr a-z n-za-m'; git config --global filter.p.clean 'tr a-z n-za-m'; `
		zip   = `git config --global filter.p.smudge 'gzip -dc'; git config --global filter.p.clean 'gzip -nc'; `
		mine  = `mkdir -p ~/.config/git; echo '*.txt filter=p' > ~/.config/git/attributes`
		named = `git config --global core.attributesFile '~/mine'; echo '*.txt filter=p' > ~/mine`
	)
	return map[string]conversion{
		"line ends of the user":     {auto, ``, text, false},
		"line ends in attributes":   {``, `*.txt text=auto eol=crlf`, text, false},
		"line ends that stay":       {``, `* text=auto`, marks, true},
		"included settings":         {`git config --global include.path inc` + more, ``, text, false},
		"included on a condition":   {`git config --global includeIf.gitdir:/.path ~/inc` + more, ``, text, false},
		"a program":                 {rot, `*.txt filter=p`, text, false},
		"a program for a directory": {rot, `/dir/** filter=p`, text, false},
		"a macro":                   {rot, "[attr]mixed filter=p -diff\n*.txt mixed", text, false},
		"attributes of the user":    {rot + mine, ``, text, false},
		"attributes with a name":    {zip + named, ``, text, false},
		"a program that makes less": {zip + mine, ``, text, false},
		"another encoding":          {``, `*.txt working-tree-encoding=UTF-16LE`, wide, false},
		"names of versions":         {``, `*.txt ident`, text, false},
	}
}

// TestConvertedFilesComeBackAsTheyWere has git convert files as it writes them, by settings in several places.
func TestConvertedFilesComeBackAsTheyWere(t *testing.T) {
	hermetic.Long(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	for name, c := range conversions() {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_CONFIG_HOME", "")
			s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
			git := func(dir, script string) string {
				t.Helper()
				cmd := exec.Command("/bin/sh", "-ec", script)
				cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
					"GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL="+home+"/.gitconfig")
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				return strings.TrimSpace(string(out))
			}
			git(home, c.settings)
			git(root, `git init -q -b main .; mkdir dir`)
			if c.attributes != "" {
				put(t, filepath.Join(root, ".gitattributes"), c.attributes+"\n")
			}
			git(root, "{ "+c.file+"; } > dir/f.txt; touch -d 2020-01-01 dir/f.txt; git add -A; git commit -qm one")
			if !c.stays {
				git(root, `rm dir/f.txt; git checkout -q -- .; touch -d 2020-01-01 dir/f.txt; git update-index -q --refresh`)
			}
			same(t, "git status", "", git(root, "git status --porcelain"))
			if git(root, "git cat-file blob HEAD:dir/f.txt | sha256sum") == git(root, "sha256sum < dir/f.txt") {
				t.Fatal("git does not convert the file")
			}
			hermetic.Settle(t)
			was := look(t, root)
			turn := begin(t, s, root)
			git(root, "rm dir/f.txt")
			end(t, turn)
			same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
			same(t, "after the undo", was, look(t, root))
		})
	}
}

// TestAFileThatGitConvertedOnceIsNotRestoredWrongly removes the setting by which git has converted a file.
func TestAFileThatGitConvertedOnceIsNotRestoredWrongly(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root, `git init -q .; echo one > f; git -c core.autocrlf=true add f; git commit -qm one; rm f
		git -c core.autocrlf=true checkout -q -- f; touch -d 2020-01-01 f
		git -c core.autocrlf=true update-index -q --refresh`)
	same(t, "the file", "one\r\n", sh(t, root, `cat f`))
	hermetic.Settle(t)
	turn := begin(t, s, root)
	sh(t, root, `rm f`)
	end(t, turn)
	out := back(t, s, undo.Request{Dir: root})
	if len(out.NotRestored) != 1 || !strings.Contains(out.NotRestored[0].Reason, "converted") {
		t.Errorf("kept are %v, restored %v", out.NotRestored, out.Restored)
	}
}
