package fork

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// Branch creates a branch in the workspace's repository with the content of the fork: its commits, and one more for its
// uncommitted changes. It leaves out ignored files. It does not change the workspace's files, index or HEAD. count is
// the number of new commits; it is 0 if a branch already had them.
func (f *Fork) Branch(ctx context.Context, message string) (branch string, count int, err error) {
	held, err := f.lock(ctx)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = held.Unlock() }()
	stood, known := f.stood()
	if f.GitDir == "" || !known || stood.Commit == "" {
		return "", 0, fault.New(fault.Conflicting, "%s has no commit to start a branch from", f.Workspace).
			Hint("omniagent fork apply %s", f.Name)
	}
	if f.away().Find("git") == "" {
		return "", 0, fault.New(fault.NotInstalled, "git, which makes the branch, is not installed").Hint("install git")
	}
	parent := stood.Commit
	if forkHead, err := f.inside().Head(); err == nil && forkHead.Commit != "" && forkHead != stood.Head {
		if err := f.bringObjects(); err != nil {
			return "", 0, err
		}
		if parent = forkHead.Commit; f.countCommits(ctx, parent) < 0 {
			return "", 0, fault.New(fault.Unsafe, "no branch can have the commits of the fork %s: %s", f.Name,
				incomplete).Hint("omniagent fork apply %s", f.Name)
		}
	}
	commit, err := f.commitOn(ctx, parent, message)
	if err != nil {
		return "", 0, fault.New(fault.Unsafe, "cannot make a branch of the fork %s: %v", f.Name, err).
			Hint("omniagent fork apply %s", f.Name)
	}
	if commit == stood.Commit {
		return "", 0, nil
	}
	ref, has, err := f.freeBranch(ctx, commit)
	if err != nil || has {
		return strings.TrimPrefix(ref, "refs/heads/"), 0, err
	}
	count = f.countCommits(ctx, commit)
	if _, err := f.git(ctx, "update-ref", "-m", "omniagent runs apply", ref, commit); err != nil {
		return "", 0, fault.New(fault.Conflicting, "cannot make the branch: %v", err)
	}
	return strings.TrimPrefix(ref, "refs/heads/"), count, nil
}

// commitOn commits the content of the fork and returns the commit, or parent if there is nothing to commit.
func (f *Fork) commitOn(ctx context.Context, parent, message string) (string, error) {
	changes, err := f.Changes(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "omniagent-branch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	g := staging{f, dir, []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}}
	if _, err := g.git(ctx, nil, "read-tree", parent); err != nil {
		return "", err
	}
	entries, err := g.entries(ctx, changes, len(parent))
	if err == nil && len(entries) > 0 {
		_, err = g.git(ctx, entries, "update-index", "-z", "--add", "--replace", "--index-info")
	}
	if err != nil {
		return "", err
	}
	root, err := g.git(ctx, nil, "write-tree")
	if err != nil {
		return "", err
	}
	if was, err := g.git(ctx, nil, "rev-parse", parent+"^{tree}"); err == nil && was == root {
		return parent, nil
	}
	if at, err := f.home().Commit("refs/heads/" + f.BranchName()); err == nil && at != "" { // made by an earlier call
		if is, err := g.git(ctx, nil, "rev-parse", at+"^{tree}", at+"^"); err == nil && is == root+"\n"+parent {
			return at, nil
		}
	}
	if name, _ := g.git(ctx, nil, "config", "user.email"); name == "" {
		g.env = append(g.env, "GIT_AUTHOR_NAME=omniagent", "GIT_AUTHOR_EMAIL=omniagent@localhost",
			"GIT_COMMITTER_NAME=omniagent", "GIT_COMMITTER_EMAIL=omniagent@localhost")
	}
	return g.git(ctx, []byte(message), "commit-tree", root, "-p", parent)
}

// staging runs git in the workspace with a separate index.
type staging struct {
	fork *Fork
	dir  string // directory for files that git reads
	env  []string
}

// entries returns the input for git that adds the fork's changes to an index. hash is the length of an object's name.
func (g staging) entries(ctx context.Context, changes []Change, hash int) ([]byte, error) {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return g.nested(c.Path) })
	ignored, err := g.ignored(ctx, changes)
	if err != nil {
		return nil, err
	}
	var lines, paths bytes.Buffer
	var blobs []string // the mode and the name of each file
	for _, c := range changes {
		if ignored[c.Path] {
			continue
		}
		path := g.fork.at(c.Path)
		file, err := theirs(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", c.Path, fault.Bare(err))
		}
		mode := "100644"
		switch {
		case file == nil, file.isDir(): // a directory may have replaced a file or a link
			fmt.Fprintf(&lines, "0 %s\t%s\x00", strings.Repeat("0", hash), c.Path)
			continue
		case file.isLink():
			mode, path = "120000", filepath.Join(g.dir, fmt.Sprintf("link-%d", len(blobs)))
			err = os.WriteFile(path, []byte(file.target), 0o600)
		case !file.isFile():
			continue
		case strings.ContainsAny(path, "\r\n"): // git reads one path a line
			from := path
			path = filepath.Join(g.dir, fmt.Sprintf("file-%d", len(blobs)))
			err = workspace.Copy(from, path, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s", c.Path, fault.Bare(err))
		}
		if file.isFile() && file.status.Mode&fs.FileMode(0o100) != 0 {
			mode = "100755"
		}
		fmt.Fprintln(&paths, path)
		blobs = append(blobs, mode+"\t"+c.Path)
	}
	if len(blobs) == 0 {
		return lines.Bytes(), nil
	}
	out, err := g.git(ctx, paths.Bytes(), "hash-object", "-w", "--no-filters", "--stdin-paths") // filters run programs
	if err != nil {
		return nil, err
	}
	sums := strings.Fields(out)
	if len(sums) != len(blobs) {
		return nil, fmt.Errorf("git hash-object: %d names for %d files", len(sums), len(blobs))
	}
	for i, blob := range blobs {
		mode, name, _ := strings.Cut(blob, "\t")
		fmt.Fprintf(&lines, "%s %s\t%s\x00", mode, sums[i], name)
	}
	return lines.Bytes(), nil
}

// ignored returns the changed paths that the repository ignores, according to the fork's .gitignore files. git sees
// these files in an otherwise empty directory, because in the workspace part of a path may be a link.
func (g staging) ignored(ctx context.Context, changes []Change) (map[string]bool, error) {
	top := filepath.Join(g.dir, "ignore")
	if err := os.Mkdir(top, 0o700); err != nil {
		return nil, err
	}
	var names bytes.Buffer
	seen := map[string]bool{}
	for _, c := range changes {
		names.WriteString(c.Path + "\x00")
		for dir := path.Dir(c.Path); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			from := g.fork.at(path.Join(dir, ".gitignore"))
			if file, err := theirs(from); err != nil || !file.isFile() {
				continue
			}
			to := filepath.Join(top, filepath.FromSlash(dir), ".gitignore")
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return nil, err
			}
			if err := workspace.Copy(from, to, 0o600); err != nil {
				return nil, fmt.Errorf("%s: %s", from, fault.Bare(err))
			}
		}
	}
	env := append(slices.Clone(g.env), "GIT_DIR="+g.fork.GitDir, "GIT_WORK_TREE="+top)
	out, code, err := g.fork.callIn(ctx, top, names.Bytes(), env, "check-ignore", "-z", "--stdin")
	if err != nil && code != 1 { // git exits with 1 if no path is ignored
		return nil, err
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(out, "\x00") {
		ignored[name] = true
	}
	return ignored, nil
}

// nested reports whether a path is in a nested repository.
func (g staging) nested(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		name := path.Join(dir, ".git")
		for _, at := range []string{filepath.Join(g.fork.Workspace, filepath.FromSlash(name)), g.fork.at(name)} {
			if _, err := os.Lstat(at); err == nil {
				return true
			}
		}
	}
	return false
}

// LeftOut returns the changed paths in nested repositories, which a branch does not have.
func (f *Fork) LeftOut(changes []Change) (names []string) {
	for _, c := range changes {
		if (staging{fork: f}).nested(c.Path) {
			names = append(names, c.Path)
		}
	}
	return names
}

func (g staging) git(ctx context.Context, input []byte, args ...string) (string, error) {
	out, _, err := g.fork.call(ctx, input, g.env, args...)
	return out, err
}
