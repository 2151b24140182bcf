package git

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ObjectsIn lists the packs and the loose objects of a repository, sorted, without the index of several packs, which
// git replaces under the same name. Git does without it.
func ObjectsIn(common string) (names []string) {
	dir := filepath.Join(common, "objects")
	folders, _ := os.ReadDir(dir)
	for _, folder := range folders {
		name := folder.Name()
		if !folder.IsDir() || len(name) != 2 && name != "pack" {
			continue
		}
		files, _ := os.ReadDir(filepath.Join(dir, name))
		for _, f := range files {
			if f.Type().IsRegular() && !strings.HasPrefix(f.Name(), "tmp_") &&
				!strings.HasPrefix(f.Name(), "multi-pack-index") {
				names = append(names, name+"/"+f.Name())
			}
		}
	}
	slices.Sort(names)
	return names
}

// Unfinished lists the names in a git directory that exist while a merge, a rebase or the like is in progress.
func Unfinished() []string {
	return []string{"rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"}
}

// Essential reports whether a name in a git directory is that of refs, settings, or an operation in progress. Others,
// such as the objects, reflogs and the index, git writes all the time.
func Essential(name string) bool {
	return slices.Contains(append(Unfinished(), "HEAD", "refs", PackedRefs, "config", "config.worktree", "hooks",
		"info"), name)
}

// IsState reports whether a file of a git directory says which commits are there, checked out or staged.
func IsState(rel string) bool {
	first, _, _ := strings.Cut(rel, "/")
	return !Transient(rel) && slices.Contains(append(Unfinished(), "HEAD", "index", PackedRefs, "refs", "sequencer",
		"reftable", "modules"), first)
}

// Transient reports whether a file of a git directory is one that git writes when it fetches, reads, or keeps a log.
func Transient(rel string) bool {
	return strings.HasPrefix(rel, "refs/remotes/") || strings.Contains("/"+rel, "/logs/") || slices.Contains([]string{
		"FETCH_HEAD", "ORIG_HEAD", "AUTO_MERGE", "COMMIT_EDITMSG", "gc.log", "gc.pid",
	}, path.Base(rel))
}

// Momentary reports whether a file of a git directory exists only while git runs, also in the background. Restored, it
// would lock the repository for good.
func Momentary(name string) bool {
	base := path.Base(name)
	return base == "gc.pid" || strings.HasSuffix(base, ".lock") && !strings.Contains("/"+name, "/hooks/")
}
