package run

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// An index of the workspace leaves out git's objects, reflogs and index, which git writes all the time. So this file
// compares their names to find what a run has removed of them.

// Gone describes files of a repository that are missing, although git needs them.
type Gone struct {
	Path  string `json:"path"`  // objects, logs or index of the repository, relative to the directory of the run
	Count int    `json:"count"` // of files, or of packs and loose objects
}

// holding lists what a repository had when the run began.
type holding struct {
	Dir     string   `json:"dir"` // usually called .git
	Common  string   `json:"common"`
	Objects []string `json:"objects"`
	Logs    []string `json:"logs"`
	Index   bool     `json:"index"`
}

const (
	holdingsFile  = "repositories.json"
	holdingsLimit = 1 << 30
)

// holdings returns the holding of each repository of an index.
func holdings(x *snapshot.Index) (all []holding) {
	for _, dir := range x.GitDirs() {
		opened, err := git.At(dir)
		if err != nil {
			continue
		}
		h := holding{Dir: dir, Common: opened.Common(), Objects: git.ObjectsIn(opened.Common())}
		_, err = os.Lstat(filepath.Join(dir, "index"))
		h.Index = err == nil
		logs := filepath.Join(h.Common, "logs")
		_ = filepath.WalkDir(logs, func(at string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				rel, _ := filepath.Rel(logs, at)
				h.Logs = append(h.Logs, filepath.ToSlash(rel))
			}
			return nil
		})
		all = append(all, h)
	}
	return all
}

// gone returns what the repositories have lost since before the run. It skips a repository in which the run is known to
// have written nothing.
func (r *Run) gone() (all []Gone) {
	var before []holding
	if workspace.ReadJSON(filepath.Join(r.Path(), holdingsFile), holdingsLimit, &before) != nil {
		return nil
	}
	known := r.Result != nil && r.Result.Changed != nil && len(r.Result.Changed.Gone) > 0 // before it waited
	for _, h := range before {
		seen := r.sight.seen
		if !known && seen != nil && seen.Exact() && !seen.WroteBeneath(pathname.Real(h.Common)) &&
			!seen.WroteBeneath(pathname.Real(h.Dir)) {
			continue
		}
		name := func(dir, base string) string {
			full := filepath.Join(dir, base)
			if rel, within := pathname.In(r.Dir, full); within {
				return filepath.ToSlash(rel)
			}
			return full
		}
		if n := h.lostObjects(); n > 0 {
			all = append(all, Gone{name(h.Common, "objects"), n})
		}
		if n := h.lostLogs(); n > 0 {
			all = append(all, Gone{name(h.Common, "logs"), n})
		}
		if _, err := os.Lstat(filepath.Join(h.Dir, "index")); h.Index && workspace.Absent(err) {
			all = append(all, Gone{name(h.Dir, "index"), 1})
		}
	}
	return all
}

// lostObjects counts the missing loose objects and packs, except those that git has packed or repacked.
func (h holding) lostObjects() (lost int) {
	there := git.ObjectsIn(h.Common)
	repacked := slices.ContainsFunc(there, func(name string) bool {
		_, was := slices.BinarySearch(h.Objects, name)
		return !was && path.Ext(name) == ".pack"
	})
	opened, err := git.At(h.Common)
	if err == nil {
		defer opened.Close()
	}
	for _, name := range h.Objects {
		if _, has := slices.BinarySearch(there, name); has {
			continue
		}
		folder, base, _ := strings.Cut(name, "/")
		switch {
		case folder != "pack":
			if err != nil || !opened.Has(folder+base) {
				lost++
			}
		case path.Ext(name) == ".pack" && !repacked:
			lost++
		}
	}
	return lost
}

// lostLogs counts the missing reflogs whose refs still exist.
func (h holding) lostLogs() (lost int) {
	names := git.RefsOf(h.Dir, h.Common, pathname.Real).Names()
	for _, ref := range h.Logs {
		if _, err := os.Lstat(filepath.Join(h.Common, "logs", filepath.FromSlash(ref))); !workspace.Absent(err) {
			continue
		}
		_, named := slices.BinarySearch(names, ref)
		if info, err := os.Lstat(filepath.Join(h.Common, filepath.FromSlash(ref))); named ||
			err == nil && !info.IsDir() { // HEAD, or a link
			lost++
		}
	}
	return lost
}
