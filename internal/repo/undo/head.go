package undo

import (
	"path"
	"strings"

	"omniagent/internal/kit/text"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
)

// otherCommit returns why an index is not restored although everything else may be: HEAD names another commit than
// before the turn, and is not restored with it. The index would list the files of the one as removed under the HEAD of
// the other, and the next commit would remove them.
func (c *comparison) otherCommit(dir string, actions []action) reason {
	restored := map[string]bool{} // paths
	for _, a := range actions {
		if _, foreign := c.doubted(a.path); !foreign {
			restored[a.path] = true
		}
	}
	for _, a := range actions {
		at := path.Dir(a.path)
		common, _, _ := strings.Cut(at, "/worktrees/")
		was, is := c.head(c.before, at), c.head(c.now, at)
		if path.Base(a.path) != "index" || was == (git.Head{}) || is == (git.Head{}) {
			continue
		}
		if was != is && !restored[path.Join(at, "HEAD")] {
			return c.elsewhereNow(dir, common, at, was, is)
		}
		if was.Ref != "" && !restored[path.Join(common, was.Ref)] && !restored[path.Join(common, git.PackedRefs)] &&
			c.value(c.before, common, was.Ref) != c.value(c.now, common, was.Ref) {
			return reason{
				CausePermanent, "the branch has commits of others, and the index of before would remove their files",
			}
		}
	}
	return reason{}
}

// elsewhereNow says what to do where another branch or commit is checked out than before the turn.
func (c *comparison) elsewhereNow(dir, common, at string, was, is git.Head) reason {
	for _, name := range git.Unfinished() {
		if c.now.Find(path.Join(at, name)) != nil {
			return reason{CauseTemporary, "git is in the middle of a rebase, a merge or the like"}
		}
	}
	in := []string{"git"}
	if where := path.Dir(dir); where != "." && where != "" {
		in = append(in, "-C", c.name(where))
	}
	name := strings.TrimPrefix(was.Ref, "refs/heads/")
	switch {
	case name != "" && c.value(c.now, common, was.Ref) == "":
		return reason{CausePermanent, "the branch of before the turn, " + name + ", is not there any more"}
	case name != "":
		in = append(in, "switch", name)
	case is.Ref == "": // a switch would leave what was committed here without a name
		return reason{CausePermanent, "HEAD is detached, and names another commit than before the turn"}
	default:
		in = append(in, "switch", "--detach", was.Commit)
	}
	return reason{CauseTemporary, "another branch is checked out than before the turn; first: " + text.Shell(in...)}
}

// goBack returns the branches, and a detached HEAD, that are restored although they are not where the turn left them.
func (c *comparison) goBack(dir string, actions []action) (all []Moved) {
	for _, a := range actions {
		branch, ok := git.BranchOf("/" + a.path)
		at := func(x *snapshot.Index) string { return c.value(x, dir, "refs/heads/"+branch) }
		if !ok {
			if a.path != path.Join(dir, "HEAD") || c.head(c.now, dir).Ref+c.head(c.before, dir).Ref != "" {
				continue
			}
			branch, at = "HEAD", func(x *snapshot.Index) string { return c.head(x, dir).Commit }
		}
		was, left, is := at(c.before), at(c.after), at(c.now)
		if is != "" && is != left && is != was {
			all = append(all, Moved{branch, is, was, a.path})
		}
	}
	return all
}
