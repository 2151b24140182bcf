package guard

import (
	"strings"
	"testing"
)

// TestWhatGitLoses: git overwrites files that are ignored as readily as it spares others, and only reads with many of
// its commands.
func TestWhatGitLoses(t *testing.T) {
	t.Parallel()
	ignored := Gap{Path: "/w/ws/dist", Why: "it is ignored"}
	loose := Gap{Path: "/w/ws/data/big.bin", Why: "it is large", Loose: true}
	state := Gap{Path: "/w/main/.git/worktrees/wt", Why: "it lies elsewhere", Loose: true}
	for _, c := range []struct {
		gap  Gap
		asks bool
		args []string
	}{
		{ignored, true, []string{
			"checkout side", "switch side", "merge side", "rebase side", "reset --hard side", "stash -a", "stash pop",
			"read-tree -u side", "apply x.patch", "am x", "cherry-pick side", "revert HEAD", "clean -fdx",
			"-C sub clean -fdx", "-c a=b checkout side", "checkout -b x side", "pull",
		}},
		{ignored, false, []string{
			"clean -fd", "clean -fdx src", "clean -ndx", "stash", "stash -u", "stash list", "checkout .", "restore .",
			"checkout -- src", "checkout -b x", "switch -c x", "reset", "reset HEAD", "reset --hard",
			"reset --hard HEAD", "branch -D x", "rm -r src",
			"commit -am x", "log", "status", "diff", "add .", "reflog", "apply --check x", "gc",
		}},
		{loose, true, []string{
			"checkout .", "restore .", "checkout -- data", "restore data/big.bin", "rm -rf data", "reset --hard",
			"clean -fd", "stash -u", "checkout side", "restore \"$x\"", "restore :/",
		}},
		{loose, false, []string{
			"restore src", "checkout -- src", "restore --staged .", "stash", "reset HEAD",
			"rm src/a",
		}},
		{state, true, []string{
			"branch -D x", "branch -m a b", "tag -d v1", "stash drop", "stash clear", "reflog expire --all", "gc",
			"update-ref -d refs/heads/x", "worktree remove x", "reset --hard x", "reset HEAD~1", "rebase x", "prune",
		}},
		{state, false, []string{
			"branch", "branch -a", "branch x", "stash list", "reflog", "worktree list", "checkout -b x",
			"switch -c x",
			"restore .", "reset HEAD", "reset --hard", "checkout -- a", "checkout .", "tag", "merge x",
			"commit -am x", "stash show",
		}},
	} {
		place := held()
		place.Containment.Network, place.Containment.Cover.Gaps = true, []Gap{c.gap}
		for _, args := range c.args {
			v := Judge{Known: known(), Place: place}.Call(Call{Tool: "Bash", Kind: "command", Command: "git " + args})
			if (v.Decision == Ask) != c.asks || c.asks && !strings.Contains(v.Reasons[0].Text, "undo does not cover") {
				t.Errorf("git %s without %s: %s: %+v", args, c.gap.Path, v.Decision, v.Reasons)
			}
		}
	}
}
