package snapshot

import (
	"io/fs"
	"slices"
	"strings"

	"omniagent/internal/sys/workspace"
)

// inode identifies a file, whatever its names are.
type inode struct{ device, number uint64 }

// note counts one of several names of a file.
func (w *walk) note(s workspace.Status, links uint64) {
	if s.Inode == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names == nil {
		w.names = map[inode]uint64{}
	}
	at := inode{s.Device, s.Inode}
	if left, known := w.names[at]; known {
		links = left
	}
	w.names[at] = links - min(links, 1)
}

// OtherName is the reason of a gap for a file with a name outside of the root.
const OtherName = "it is hard-linked from outside the workspace, so writing to it would change that file too"

const noContent = "it is neither a file, a directory nor a link"

// beyond returns Index.Unrepresented.
func (w *walk) beyond() (all []Gap) {
	for _, f := range w.index.folders {
		for i := range f.entries {
			e, reason := &f.entries[i], ""
			switch {
			case e.about&stateOfGit != 0 && e.name == "index":
				continue // git replaces it and never writes into it, so a fork keeps it under another name
			case e.linked && w.names[inode{e.Device, e.Inode}] > 0:
				reason = OtherName
			case e.about&stateOfGit == 0 && e.Mode.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0:
				reason = noContent
			default:
				continue
			}
			g := Gap{Path: w.index.ignoredTop(f.join(e.name), e), Reason: reason}
			if n := len(all); n == 0 || all[n-1].Path != g.Path {
				all = append(all, g)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Gap) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(all, func(a, b Gap) bool { return a.Path == b.Path })
}

// ignoredTop returns the topmost ignored directory that contains a file, or the file.
func (x *Index) ignoredTop(name string, e *fileEntry) string {
	for at := 0; e.about&ignored != 0; {
		slash := strings.IndexByte(name[at:], '/')
		if slash < 0 {
			break
		}
		at += slash
		if dir := x.Find(name[:at]); dir != nil && dir.Ignored() {
			return name[:at]
		}
		at++
	}
	return name
}
