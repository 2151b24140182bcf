package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// heap is an ignored file, or an ignored directory with all that is in it.
type heap struct {
	path  string
	files int
	bytes int64
}

// largeIgnored returns the ignored files and directories that are not kept: the largest, as far as all of them together
// exceed the limit. It adds a gap for each.
func (w *walk) largeIgnored() map[string]bool {
	heaps := w.heaps()
	slices.SortFunc(heaps, func(a, b heap) int {
		return cmp.Or(cmp.Compare(a.bytes, b.bytes), strings.Compare(a.path, b.path))
	})
	skipped := map[string]bool{}
	bytes, files := int64(0), 0
	for _, h := range heaps {
		if bytes+h.bytes <= w.options.IgnoredLimit && files+h.files <= w.options.CountLimit/2 {
			bytes, files = bytes+h.bytes, files+h.files
			continue
		}
		skipped[h.path] = true
		w.gap(h.path, fmt.Sprintf("%.1f MB that .gitignore excludes are more than is kept", float64(h.bytes)/1e6),
			false)
	}
	return skipped
}

// heaps returns the ignored files and directories that are not below another one.
func (w *walk) heaps() []heap {
	var heaps []heap
	at := map[string]int{} // directory -> its heap, also for directories below it
	for _, f := range w.index.folders {
		in, beneath := at[f.path]
		if !beneath && f.path != "" {
			if in, beneath = at[f.path[:max(strings.LastIndexByte(f.path, '/'), 0)]]; beneath {
				at[f.path] = in
			}
		}
		for i := range f.entries {
			e := &f.entries[i]
			if e.about&ignored == 0 {
				continue
			}
			to := in
			if !beneath {
				to = len(heaps)
				heaps = append(heaps, heap{path: f.join(e.name)})
				if e.Mode.IsDir() {
					at[f.join(e.name)] = to
				}
			}
			if e.Mode.IsRegular() {
				heaps[to].files++
				heaps[to].bytes += e.Size
			}
		}
	}
	return heaps
}
