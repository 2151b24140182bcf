package measure

import (
	"fmt"
	"os/exec"
	"strings"
)

// oracle is what other programs than ours say of a workspace: names, types, modes, links and checksums, and of a
// repository all that git tells. Objects of git count by what git says of them, the index by what it lists.
const oracle = `
find . -path ./.git/objects -prune -o ! -path ./.git/index -printf '%y %m %p %l\n' | LC_ALL=C sort
find . -path ./.git/objects -prune -o -type f ! -path ./.git/index -exec sha256sum {} + | LC_ALL=C sort
[ -e .git/HEAD ] || exit 0
export GIT_OPTIONAL_LOCKS=0
git fsck --no-dangling --no-progress && git status --porcelain=v2 --branch --ignored && git ls-files -s &&
git stash list && git for-each-ref && git reflog --all && git config --list --local`

// Oracle returns what is in a workspace, told by other programs than ours.
func Oracle(dir string, env []string) (string, error) {
	c := exec.Command("/bin/sh")
	c.Dir, c.Env, c.Stdin = dir, env, strings.NewReader(oracle)
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}
