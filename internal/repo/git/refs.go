package git

import "strings"

// BranchOf returns the branch whose file a path is, which leads through a directory .git.
func BranchOf(path string) (name string, ok bool) {
	dir, name, ok := strings.Cut(path, "/refs/heads/")
	return name, ok && !strings.HasSuffix(dir, "logs") // where the reflogs are
}
