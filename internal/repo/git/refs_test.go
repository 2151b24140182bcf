package git_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
)

var one, two = strings.Repeat("1", 40), strings.Repeat("2", 40)

const (
	header   = "# pack-refs with: peeled fully-peeled sorted \n"
	symbolic = "ref: refs/heads/main\n"
)

func refsOf(dir string) git.Refs { return git.RefsOf(dir, dir, pathname.Real) }

func TestHead(t *testing.T) {
	onMain := git.Head{Ref: "refs/heads/main", Commit: one}
	for name, c := range map[string]struct {
		files map[string]string
		want  git.Head
		fails string
	}{
		"loose": {files: map[string]string{"HEAD": symbolic, "refs/heads/main": one + "\n"}, want: onMain},
		"packed": {
			files: map[string]string{
				"HEAD": symbolic,
				"packed-refs": header + two + " refs/heads/a/refs/heads/main\n^" + one + "\n" + one +
					" refs/heads/main\n",
			},
			want: onMain,
		},
		"the last line has no end": {
			files: map[string]string{"HEAD": "ref: refs/heads/main", "packed-refs": one + " refs/heads/main"},
			want:  onMain,
		},
		"loose before packed": {
			files: map[string]string{
				"HEAD": symbolic, "refs/heads/main": one + "\n", "packed-refs": two + " refs/heads/main\n",
			},
			want: onMain,
		},
		"without a space": {
			files: map[string]string{"HEAD": "ref:refs/heads/main\n", "refs/heads/main": one + "\n"}, want: onMain,
		},
		"no commit yet": {
			files: map[string]string{"HEAD": symbolic}, want: git.Head{Ref: "refs/heads/main"},
		},
		"a directory of the name": {
			files: map[string]string{"HEAD": symbolic, "refs/heads/main/x": one + "\n"},
			want:  git.Head{Ref: "refs/heads/main"},
		},
		"detached":       {files: map[string]string{"HEAD": one + "\n"}, want: git.Head{Commit: one}},
		"no HEAD":        {fails: "no such file"},
		"a damaged HEAD": {files: map[string]string{"HEAD": "refs/heads/main\n"}, fails: "names no commit"},
		"out of refs": {
			files: map[string]string{"HEAD": "ref: refs/../main\n", "main": one + "\n"}, fails: "names no commit",
		},
		"a damaged ref": {
			files: map[string]string{"HEAD": symbolic, "refs/heads/main": "x\n"}, fails: "names no commit",
		},
		"a ref that names a ref": {
			files: map[string]string{"HEAD": symbolic, "refs/heads/main": "ref: refs/heads/a\n"},
			fails: "names no commit",
		},
		"a damaged line": {
			files: map[string]string{"HEAD": symbolic, "packed-refs": "x " + one + " refs/heads/main\n"},
			fails: "names no commit",
		},
		"the last packed line counts": {
			files: map[string]string{
				"HEAD": symbolic, "packed-refs": two + " refs/heads/main\n" + one + " refs/heads/main\n",
			},
			want: onMain,
		},
		"spaces at the end": {
			files: map[string]string{"HEAD": "ref: \trefs/heads/main \r\n", "refs/heads/main": one + " \r\n"},
			want:  onMain,
		},
		"CRLF in packed-refs": {
			files: map[string]string{"HEAD": symbolic, "packed-refs": one + " refs/heads/main\r\n"},
			want:  git.Head{Ref: "refs/heads/main"},
		},
		"a tab in packed-refs": {
			files: map[string]string{"HEAD": symbolic, "packed-refs": "\t" + one + " refs/heads/main\n"},
			fails: "names no commit",
		},
		"a space before a commit": {
			files: map[string]string{"HEAD": symbolic, "refs/heads/main": " " + one + "\n"}, fails: "names no commit",
		},
		"HEAD has two lines": {
			files: map[string]string{"HEAD": symbolic + symbolic, "refs/heads/main": one}, fails: "names no commit",
		},
		"HEAD begins with a line end": {
			files: map[string]string{"HEAD": "\n" + symbolic, "refs/heads/main": one}, fails: "names no commit",
		},
		"an empty part of a name": {
			files: map[string]string{"HEAD": "ref: refs/heads//main\n", "refs/heads/main": one},
			fails: "names no commit",
		},
		"a dot in a name": {
			files: map[string]string{"HEAD": "ref: refs/heads/./main\n", "refs/heads/main": one},
			fails: "names no commit",
		},
		"a space in a name": {
			files: map[string]string{"HEAD": "ref: refs/heads/a b\n", "refs/heads/a b": one}, fails: "names no commit",
		},
		"reftable": {
			files: map[string]string{
				"HEAD": "ref: refs/heads/.invalid\n", "refs/heads": "this repository uses the reftable format\n",
			},
			fails: "reftable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				write(t, dir, name, text)
			}
			h, err := refsOf(dir).Head()
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%+v, %v; want an error with %q", h, err, c.fails)
				}
			} else if err != nil || h != c.want {
				t.Errorf("%+v, %v; want %+v", h, err, c.want)
			}
		})
	}
}

// TestRefsOfGit compares with git, in the directory of a linked worktree too.
func TestRefsOfGit(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "root")
	run(t, base, "init", "-q", "-b", "main", root)
	run(t, root, "commit", "-q", "--allow-empty", "-m", "one")
	run(t, root, "tag", "-am", "tag", "v1")
	run(t, root, "branch", "a/b")
	run(t, root, "pack-refs", "--all")
	run(t, root, "branch", "loose")
	run(t, root, "worktree", "add", "-q", "-b", "linked", "../linked")
	write(t, root, ".git/refs/heads/main.lock", "")
	for _, top := range []string{root, filepath.Join(base, "linked")} {
		r, err := git.Open(top)
		if err != nil {
			t.Fatal(err)
		}
		refs := git.RefsOf(r.Dir(), r.Common(), pathname.Real)
		want := git.Head{
			Ref:    strings.TrimSpace(run(t, top, "symbolic-ref", "HEAD")),
			Commit: strings.TrimSpace(run(t, top, "rev-parse", "HEAD")),
		}
		if h, err := refs.Head(); err != nil || h != want {
			t.Errorf("%s: %+v, %v; want %+v", top, h, err, want)
		}
		all := ""
		for _, name := range refs.Names() {
			value, err := refs.Commit(name)
			if err != nil {
				t.Error(err)
			}
			all += value + " " + name + "\n"
		}
		if diff := cmp.Diff(run(t, top, "for-each-ref", "--format=%(objectname) %(refname)"), all); diff != "" {
			t.Errorf("%s: %s", top, diff)
		}
		if diff := cmp.Diff(map[string]int64{
			filepath.Join(r.Dir(), "HEAD"): git.SmallFile, filepath.Join(r.Common(), "packed-refs"): git.RefsLimit,
			filepath.Join(r.Common(), "refs/heads/linked"): git.SmallFile,
			filepath.Join(r.Common(), "refs/heads/loose"):  git.SmallFile,
		}, refs.Files()); diff != "" {
			t.Errorf("%s: %s", top, diff)
		}
	}
}

// TestCommits: all refs at once are what each is alone.
func TestCommits(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"packed-refs": header + two + " refs/heads/main\n" + two + " refs/heads/a\n" + one + " refs/tags/b\n" + two +
			" refs/heads/bad\nx refs/heads/damaged\n",
		"refs/heads/main": one + "\n", "refs/heads/bad": "x", "refs/heads/a/b": two + "\n",
	} {
		write(t, dir, name, text)
	}
	refs := refsOf(dir)
	want := map[string]string{}
	for _, name := range refs.Names() {
		if commit, err := refs.Commit(name); err == nil {
			want[name] = commit
		}
	}
	if diff := cmp.Diff(want, refs.Commits()); diff != "" || len(want) != 4 {
		t.Errorf("%v: %s", want, diff)
	}
}

// TestManyRefs: the work grows with the number of refs, not with its square.
func TestManyRefs(t *testing.T) {
	reads := 0
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "%s refs/remotes/origin/%d\n", one, i)
	}
	dir := t.TempDir()
	refs := git.Refs{Dir: dir, Common: dir, At: pathname.Real, Read: func(path string, _ int64) ([]byte, error) {
		if filepath.Base(path) != git.PackedRefs {
			return nil, fs.ErrNotExist
		}
		reads++
		return []byte(b.String()), nil
	}}
	if n := len(refs.Commits()); n != 1000 || reads != 1 {
		t.Errorf("%d refs, and packed-refs was read %d times", n, reads)
	}
}

func TestFits(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "refs/heads/loose/x", one)
	write(t, dir, "refs/heads/broken", "x")
	write(t, dir, "packed-refs", header+one+" refs/heads/packed/x\n"+one+" refs/heads/packed-y\n")
	write(t, dir, "refs/heads/empty/x", one)
	if err := os.Remove(filepath.Join(dir, "refs/heads/empty/x")); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]bool{
		"refs/heads/new": true, "refs/heads/loose": false, "refs/heads/loose/x/y": false, "refs/heads/loose/y": true,
		"refs/heads/packed": false, "refs/heads/packed/x/y": false, "refs/heads/packed/y": true,
		"refs/heads/pack":    true,
		"refs/heads/loose/x": true, "refs/heads/broken/x": false, "refs/heads/empty": false,
	} {
		if fits := refsOf(dir).Fits(ref); fits != want {
			t.Errorf("%s: %v", ref, fits)
		}
	}
}

// TestFitsNextToADirectory: what lies where git has a directory does not keep every branch from existing.
func TestFitsNextToADirectory(t *testing.T) {
	packed := one + " refs/heads\n" + one + " refs/stash\n"
	for name, text := range map[string]string{"packed-refs": packed, "refs": one} {
		dir := t.TempDir()
		write(t, dir, name, text)
		refs := refsOf(dir)
		if !refs.Fits("refs/heads/new") {
			t.Errorf("%s: no branch fits", name)
		}
		if name == "packed-refs" && refs.Fits("refs/stash/x") {
			t.Errorf("%s: a name is a ref and a directory", name)
		}
	}
}

// TestLongRefs: what is larger than any file of git is not held in memory.
func TestLongRefs(t *testing.T) {
	for name, limit := range map[string]int64{
		"HEAD": git.SmallFile, "refs/heads/main": git.SmallFile, "packed-refs": git.RefsLimit,
	} {
		dir := t.TempDir()
		write(t, dir, "HEAD", symbolic)
		write(t, dir, name, "")
		if err := os.Truncate(filepath.Join(dir, name), limit+1); err != nil { // a hole
			t.Fatal(err)
		}
		refs := refsOf(dir)
		if h, err := refs.Head(); !errors.Is(err, fault.FieldTooLarge) || h.Commit != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplacedFiles reads refs from elsewhere: the paths lead to other files, or the contents come from a store.
func TestReplacedFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "copies/HEAD", symbolic)
	write(t, dir, "copies/refs/heads/main", one+"\n")
	at := func(path string) string {
		if filepath.Base(path) == git.PackedRefs {
			return ""
		}
		return filepath.Join(dir, "copies", strings.TrimPrefix(path, "git"))
	}
	read := func(path string, limit int64) ([]byte, error) {
		if path == filepath.Join("git", "HEAD") && limit == git.SmallFile {
			return []byte(symbolic), nil
		}
		if path == filepath.Join("git", git.PackedRefs) && limit == git.RefsLimit {
			return []byte(one + " refs/heads/main\n"), nil
		}
		return nil, fs.ErrNotExist
	}
	for name, r := range map[string]git.Refs{
		"at": git.RefsOf("git", "git", at), "read": {Dir: "git", Common: "git", Read: read},
	} {
		if h, err := r.Head(); err != nil || h != (git.Head{Ref: "refs/heads/main", Commit: one}) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		if commit, err := r.Commit("refs/heads/missing"); err != nil || commit != "" {
			t.Errorf("%s: %q, %v", name, commit, err)
		}
	}
}

func TestState(t *testing.T) {
	for name, want := range map[string]string{
		"HEAD": "essential state", "packed-refs": "essential state", "MERGE_HEAD": "essential state",
		"config": "essential", "info": "essential", "index": "state", "reftable/tables.list": "state",
		"refs/heads/main": "state", "refs/remotes/origin/main": "transient", "logs/HEAD": "transient",
		"rebase-merge/done": "state", "modules/a/logs/HEAD": "transient", "FETCH_HEAD": "transient", "description": "",
		"index.lock": "momentary", "gc.pid": "transient momentary", "hooks/a.lock": "",
	} {
		var is []string
		for what, yes := range map[string]func(string) bool{
			"essential": git.Essential, "state": git.IsState, "transient": git.Transient, "momentary": git.Momentary,
		} {
			if yes(name) {
				is = append(is, what)
			}
		}
		wanted := strings.Fields(want)
		slices.Sort(is)
		slices.Sort(wanted)
		if !slices.Equal(is, wanted) {
			t.Errorf("%s is %q, want %q", name, is, wanted)
		}
	}
}
