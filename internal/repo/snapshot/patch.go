package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"omniagent/internal/kit/diff"
	"omniagent/internal/kit/fault"
)

const (
	// Like git, a file with a zero byte among its first bytes counts as binary.
	binaryHead = 8000
	// readLimit is more than any limit with which Take is sensibly called.
	readLimit = 64 << 20
)

// Count counts the added and removed lines of each file. It reads the contents that Take has kept. If ctx ends, it
// fails, and the files counted so far keep their numbers.
func (c *Changes) Count(ctx context.Context, store *Store) error {
	r := newReader(store)
	defer r.Close()
	for i := range c.Files {
		if err := ended(ctx); err != nil {
			return err
		}
		change := &c.Files[i]
		before, after, ok := r.both(change)
		if !ok || isBinary(before) || isBinary(after) {
			continue
		}
		removed, added := diff.Count(before, after)
		change.Removed, change.Added = &removed, &added
	}
	return nil
}

// Keep adds to the store the contents that only a repository has, which may lose them later. A file beyond the default
// limits of Take stays in the repository only.
func (c *Changes) Keep(ctx context.Context, store *Store) error {
	r, left := newReader(store), Options{}.withDefaults()
	defer r.Close()
	defer store.Close()
	for _, change := range c.Files {
		for _, e := range []*fileEntry{change.before, change.after} {
			if err := ended(ctx); err != nil {
				return err
			}
			if e == nil || e.content == nil || !e.content.inGit || e.Size > left.FileLimit ||
				e.Size > left.TotalLimit || left.CountLimit == 0 {
				continue
			}
			data, ok := r.content(e)
			if !ok {
				continue
			}
			sum, err := store.Put(data)
			if err != nil {
				return err
			}
			left.TotalLimit, left.CountLimit = left.TotalLimit-e.Size, left.CountLimit-1
			kept := *e.content
			kept.sum, kept.kept, kept.inGit = sum, true, false
			e.content = &kept
		}
	}
	return nil
}

func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "comparing files was interrupted").Because(ctx.Err())
	}
	return nil
}

func isBinary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), binaryHead)], 0) >= 0 }

// Patch writes a unified diff as git apply takes it. It has regular files and links, and of their modes only whether a
// file is executable. A file whose content is not known is named, which git apply refuses.
func (c *Changes) Patch(ctx context.Context, store *Store, w io.Writer) error {
	r := newReader(store)
	defer r.Close()
	out := bufio.NewWriter(w)
	for i := range c.Files {
		if err := ended(ctx); err != nil {
			return err
		}
		change := &c.Files[i]
		if change.Status == Git {
			continue
		}
		if change.Status != Type {
			r.write(out, change)
			continue
		}
		r.write(out, &Change{Path: change.Path, before: change.before})
		r.write(out, &Change{Path: change.Path, after: change.after})
	}
	return out.Flush()
}

// reader reads contents, those in git from the repositories of the index.
type reader struct{ *Contents }

func newReader(store *Store) reader {
	return reader{OpenContents(store, func(dir string) string { return dir })}
}

// both returns the contents of a file before and after. A missing file is empty.
func (r reader) both(c *Change) (before, after []byte, ok bool) {
	before, ok = r.content(c.before)
	if ok {
		after, ok = r.content(c.after)
	}
	return before, after, ok
}

func (r reader) content(e *fileEntry) (data []byte, ok bool) {
	switch {
	case e == nil, e.Mode.IsDir():
		return nil, true
	case isLink(e.Mode):
		return []byte(e.target), true
	case !e.Mode.IsRegular():
		return nil, false
	case e.Size == 0:
		return nil, true
	case e.content == nil || e.Size > readLimit:
		return nil, false
	}
	var err error
	switch c := e.content; {
	case c.inGit:
		data, err = r.blob(c, e.Size)
	case c.kept && r.store != nil:
		data, err = r.store.Get(c.sum, e.Size)
	default:
		return nil, false
	}
	return data, err == nil && int64(len(data)) == e.Size
}

// write writes the change of one file.
func (r reader) write(out *bufio.Writer, c *Change) {
	was, is := gitMode(c.before), gitMode(c.after)
	if was == is && c.Status == Mode || was == "" && is == "" {
		return // nothing that git would notice
	}
	from, to := diff.Quote("a/"+c.Path), diff.Quote("b/"+c.Path)
	fmt.Fprintf(out, "diff --git %s %s\n", from, to)
	switch {
	case was == "":
		fmt.Fprintf(out, "new file mode %s\n", is)
		from = "/dev/null"
	case is == "":
		fmt.Fprintf(out, "deleted file mode %s\n", was)
		to = "/dev/null"
	case was != is:
		fmt.Fprintf(out, "old mode %s\nnew mode %s\n", was, is)
	}
	if c.Status == Mode {
		return
	}
	before, after, ok := r.both(c)
	switch {
	case ok && (isBinary(before) || isBinary(after)):
		r.writeBinary(out, c, before, after)
	case !ok:
		fmt.Fprintf(out, "Binary files %s and %s differ\n", from, to)
	case !bytes.Equal(before, after):
		_, _ = out.WriteString(diff.Names(from, to))
		_ = diff.Write(out, before, after) // out keeps its first error
	}
}

// gitMode returns the mode as git records it, and "" for what it does not record.
func gitMode(e *fileEntry) string {
	switch {
	case e == nil:
	case isLink(e.Mode):
		return "120000"
	case e.Mode.IsRegular() && e.Mode&0o100 != 0:
		return "100755"
	case e.Mode.IsRegular():
		return "100644"
	}
	return ""
}
