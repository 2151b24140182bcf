package fork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/sys/workspace"
)

// head is the state of a repository's HEAD.
type head struct {
	git.Head
	Index string `json:"index,omitempty"` // the file with a copy of the index
	Turn  string `json:"turn,omitempty"`  // the turn that applied it; ignored if that was undone
}

// stood returns the workspace's head at the beginning, or after the last commits were applied.
func (f *Fork) stood() (h head, known bool) {
	for _, h := range slices.Backward(f.Heads) {
		if !f.undone(h.Turn) {
			return h, true
		}
	}
	return h, false
}

// standsNow records the workspace's head after commits were applied.
func (f *Fork) standsNow(m move, turn string) error {
	h := head{Head: git.Head{Ref: m.ref, Commit: m.to}, Turn: turn, Index: m.stood.Index}
	if m.index != nil { // not the index that the workspace has now: somebody may have staged since
		h.Index = "index-" + turn
		if err := workspace.WriteFile(filepath.Join(f.dir, h.Index), m.index, 0o600); err != nil {
			return err
		}
	}
	f.Heads = append(f.Heads, h)
	return f.write()
}

// home reads the branches of the workspace, and inside those that programs of the fork see. Paths are those of the
// workspace's repository.
func (f *Fork) home() git.Refs { return git.RefsOf(f.GitDir, f.Common, pathname.Real) }

func (f *Fork) inside() git.Refs {
	return f.refs(f.GitDir, f.Common, func(path string) string { return f.Real(pathname.Real(path)) })
}

// refs returns the refs that programs of the fork see in two directories of the workspace. A link there may be the
// fork's or the workspace's, wherever its directory is.
func (f *Fork) refs(dir, common string, at func(path string) string) git.Refs {
	refs := git.RefsOf(dir, common, at)
	refs.Link = func(path string) string {
		dir, name := pathname.Real(filepath.Dir(path)), filepath.Base(path)
		if f.Tier == Overlay {
			return git.LinkAt(f.Real(filepath.Join(dir, name)))
		}
		if path = filepath.Join(f.Place(dir), name); f.leadsOn(path) { // Place would follow the workspace's link
			return ""
		}
		return git.LinkAt(path)
	}
	return refs
}

const indexLimit = 1 << 30

// move describes how the commits of a fork are applied to the workspace.
type move struct {
	fork    *Fork
	old     journal  // of an Apply that was killed
	stood   head     // the workspace's head at the beginning
	from    git.Head // the workspace's head
	there   git.Head // the fork's head
	to      string   // the fork's commit; empty if it has none
	ref     string   // the ref that gets the commit
	branch  string   // its short name
	count   int
	inPlace bool
	// the history of the fork's commits ends elsewhere, as after git fetch --depth, or is damaged
	incomplete bool
	held       string // the branch where commits stay because they have files that are run later by themselves
	rewrote    bool   // the fork no longer has the commit of the branch
	index      []byte // the fork's index; nil if it has none of its own
	keepIndex  bool   // an Apply that was killed has moved the branch, and somebody has staged since
	stage      string // the prefix of incomplete files
}

// considerSubmodules lists the submodules at a commit that only the fork has.
func (a *applying) considerSubmodules(m move) error {
	if m.to == "" {
		return nil
	}
	listed, err := a.git(a.ctx, "ls-tree", "-r", "-z", m.to)
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(listed, "\x00") {
		is, name, _ := strings.Cut(entry, "\t")
		commit, isLink := strings.CutPrefix(is, "160000 commit ")
		if !isLink {
			continue
		}
		dir := filepath.Join(a.Workspace, filepath.FromSlash(name))
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil {
			continue // it is not checked out, so nothing is known of it
		}
		if _, _, err := a.callIn(a.ctx, dir, nil, nil, "cat-file", "-e", commit); err != nil {
			a.conflict(name, staysInFork)
		}
	}
	return nil
}

// commits finds the fork's commits, and copies their objects, which has no effect by itself.
//
// stayPut reports whether the commits between two may not move the branch.
func (f *Fork) commits(ctx context.Context, old journal, stayPut func(from, to string) (bool, error)) (move, error) {
	m := move{fork: f, old: old}
	stood, known := f.stood()
	if f.GitDir == "" || !known {
		return m, nil
	}
	forkHead, err := f.inside().Head()
	if err != nil || forkHead.Commit == "" || forkHead == stood.Head && !old.InPlace {
		return m, nil // the fork has removed its repository
	}
	if m.from, err = f.home().Head(); err != nil {
		return m, fault.New(fault.Unsafe, "the repository of %s cannot be read: %v", f.Workspace, err)
	}
	if m.from == forkHead && !old.InPlace {
		return m, nil
	}
	if f.away().Find("git") == "" {
		return m, fault.New(fault.NotInstalled, "git is not installed, and the fork %s has commits to bring home",
			f.Name).Hint("install git, and call this again")
	}
	if err := f.bringObjects(); err != nil {
		return m, err
	}
	m.stood, m.there, m.to = stood, forkHead, forkHead.Commit
	own := filepath.Join(f.GitDir, "index")
	if is := f.Real(own); is != "" && is != own {
		if m.index, err = workspace.ReadFile(is, indexLimit); unlessMissing(err) != nil {
			return m, err
		}
	}
	m.count = f.countCommits(ctx, forkHead.Commit)
	if m.count < 0 {
		return move{fork: f, incomplete: true}, nil
	}
	return m.target(ctx, stayPut)
}

// target decides which branch gets the commits.
func (m move) target(ctx context.Context, stayPut func(from, to string) (bool, error)) (move, error) {
	f, there := m.fork, m.there
	unstaged := m.unstaged()
	m.keepIndex = m.arrived(m.from) && !unstaged
	m.inPlace = m.unmoved(m.from) && (unstaged || m.keepIndex) && m.isPlain(ctx)
	if m.inPlace && m.from.Ref == there.Ref && m.from.Commit != "" {
		_, err := f.git(ctx, "merge-base", "--is-ancestor", m.from.Commit, there.Commit)
		m.inPlace, m.rewrote = err == nil, err != nil
	}
	held := false
	var err error
	if m.inPlace && !m.arrived(m.from) {
		if held, err = stayPut(m.stood.Commit, there.Commit); err != nil {
			return m, err
		}
	}
	m.inPlace = m.inPlace && !held
	if m.inPlace {
		m.ref = there.Ref
	} else {
		var has bool
		if m.ref, has, err = f.freeBranch(ctx, there.Commit); err != nil {
			return m, err
		}
		if held {
			m.held = strings.TrimPrefix(m.ref, "refs/heads/")
		}
		if has {
			m.ref, m.to, m.count, m.rewrote = "", "", 0, false
		}
	}
	m.branch = strings.TrimPrefix(m.ref, "refs/heads/")
	return m, nil
}

// arrived reports whether an Apply that was killed has given the workspace the fork's head.
func (m move) arrived(here git.Head) bool { return m.old.InPlace && here == m.there }

// unmoved reports whether the workspace's head is the same as at the beginning, and no merge or rebase is in progress,
// so that it can take over the fork's head.
func (m move) unmoved(here git.Head) bool {
	f, arrived := m.fork, m.arrived(here)
	if m.there.Ref == "" || here != m.stood.Head && !arrived {
		return false
	}
	if m.there.Ref != m.stood.Ref && !arrived {
		if taken, err := f.home().Commit(m.there.Ref); err != nil ||
			taken != "" && taken != m.there.Commit || !f.home().Fits(m.there.Ref) {
			return false
		}
	}
	for _, name := range git.Unfinished() {
		path := filepath.Join(f.GitDir, name)
		for _, path := range []string{path, f.Real(path)} {
			if _, err := os.Lstat(path); err == nil {
				return false
			}
		}
	}
	return true
}

// unstaged reports whether the workspace's index lists what it listed at the beginning, or what the fork's does. Then
// nothing is lost if the fork's takes its place.
func (m move) unstaged() bool {
	size := len(m.there.Commit) / 2
	was, errWas := workspace.ReadFile(filepath.Join(m.fork.dir, m.stood.Index), indexLimit)
	is, errIs := workspace.ReadFile(filepath.Join(m.fork.GitDir, "index"), indexLimit)
	if git.Split(was, size) || git.Split(is, size) || git.Split(m.index, size) {
		return false // its other file would be missing
	}
	if errWas != nil && errIs != nil {
		return workspace.Absent(errWas) && workspace.Absent(errIs)
	}
	return git.SameIndex(is, was, size) || git.SameIndex(is, m.index, size)
}

// isPlain reports whether git itself takes each name that the fork's index lists. A program of the fork may have
// written it without git, and git restore makes a file of each entry, also of one in .git.
func (m move) isPlain(ctx context.Context) bool {
	if m.index == nil {
		return true
	}
	is := filepath.Join(m.fork.dir, "index-listed")
	again := is + "-again"
	defer os.Remove(is)
	defer os.Remove(again)
	for _, left := range []string{again, again + ".lock"} { // by an Apply that was killed
		_ = os.Remove(left)
	}
	if workspace.WriteFile(is, m.index, 0o600) != nil {
		return false
	}
	lists := func(index string) (string, error) {
		out, _, err := m.fork.call(ctx, nil, []string{"GIT_INDEX_FILE=" + index}, "ls-files", "--stage", "-z")
		return out, err
	}
	names, err := lists(is)
	if err != nil {
		return false
	}
	if _, _, err = m.fork.call(ctx, []byte(names), []string{"GIT_INDEX_FILE=" + again}, "update-index", "-z",
		"--index-info"); err != nil {
		return false
	}
	taken, err := lists(again) // git leaves out what it does not take
	return err == nil && taken == names
}

// BranchName returns the name of the branch for the fork's commits. freeBranch adds a number if it is taken.
func (f *Fork) BranchName() string {
	if at, err := f.home().Commit("refs/heads/fork"); err != nil || at != "" {
		return "fork-" + f.Name // the directory cannot exist
	}
	return "fork/" + f.Name
}

// mostBranches limits the search of freeBranch, which reads packed-refs for each name: programs can write that file.
const mostBranches = 100

// freeBranch returns a ref for the fork's commits, and whether it already has them.
func (f *Fork) freeBranch(ctx context.Context, commit string) (ref string, has bool, err error) {
	first := "refs/heads/" + f.BranchName()
	for n := 1; n <= mostBranches && ctx.Err() == nil; n++ {
		if ref = first; n > 1 {
			ref += "-" + strconv.Itoa(n)
		}
		at, err := f.home().Commit(ref)
		if err != nil || at == commit {
			return ref, at == commit, err
		}
		switch {
		case !f.home().Fits(ref):
		case at == "":
			return ref, false, nil
		default:
			if _, err := f.git(ctx, "merge-base", "--is-ancestor", at, commit); err == nil {
				return ref, false, nil // it has earlier commits
			}
		}
	}
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	name := f.BranchName()
	return "", false, fault.New(fault.Conflicting, "%s cannot have a branch for the fork's commits: the names from "+
		"%s to %s-%d are taken", f.Workspace, name, name, mostBranches).Hint("git branch --list '%s*'", name)
}

// bringObjects copies the objects that only the fork has, and checks their hashes.
func (f *Fork) bringObjects() error {
	to := pathname.Real(filepath.Join(f.Common, "objects"))
	from := f.upper(to)
	if f.Tier != Overlay {
		from = f.Place(to)
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(from, path)
		name = filepath.ToSlash(name)
		if !e.Type().IsRegular() || strings.HasPrefix(name, "info/") || strings.Contains(name, "tmp_") ||
			filepath.Ext(name) == ".lock" || filepath.Ext(name) == ".keep" || strings.HasPrefix(name, "pack/multi-") {
			return nil
		}
		home := filepath.Join(to, filepath.FromSlash(name))
		if _, err := os.Lstat(home); err == nil {
			return nil
		}
		if err := git.CheckObject(from, name); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(home), 0o777); err != nil {
			return err
		}
		staged := filepath.Join(filepath.Dir(home), "tmp_obj_omniagent_"+f.ID) // git cleans up such files
		_ = os.Remove(staged)
		if err := workspace.Copy(path, staged, 0o444); err != nil {
			return fault.New(fault.PermissionDenied, "cannot copy an object of git: %s", fault.Bare(err)).
				Because(err)
		}
		return os.Rename(staged, home)
	})
}

// countCommits returns the number of new commits, or -1 if they are incomplete.
func (f *Fork) countCommits(ctx context.Context, commit string) int {
	if _, err := f.git(ctx, "rev-list", "--quiet", "--objects", commit, "--not", "--all"); err != nil {
		return -1
	}
	text, err := f.git(ctx, "rev-list", "--count", commit, "--not", "--all")
	n, errCount := strconv.Atoi(text)
	if err != nil || errCount != nil {
		return -1
	}
	return n
}

// note appends a line to the log of a ref, if git keeps one.
func (m move) note(dir, ref, was string) {
	path := filepath.Join(dir, "logs", filepath.FromSlash(ref))
	if _, err := os.Stat(filepath.Join(dir, "logs")); err != nil || os.MkdirAll(filepath.Dir(path), 0o777) != nil {
		return
	}
	was = cmp.Or(was, strings.Repeat("0", len(m.to)))
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return
	}
	defer log.Close()
	_, _ = fmt.Fprintf(log, "%s %s omniagent <> %d +0000\tomniagent fork apply %s\n", was, m.to, time.Now().Unix(),
		m.fork.Name)
}
