package tree

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"omniagent/internal/fault"
	"omniagent/internal/git"
)

const (
	around = 3 // unchanged lines before and after each change
	// A file with a zero byte at its beginning is binary, as git judges.
	binaryHead = 8000
	// readLimit is more than any limit with which Take is sensibly called.
	readLimit = 64 << 20
)

// Count counts the lines that were added to and removed from each file. It reads the contents that Take has kept. If
// ctx ends, the files before that are counted.
func (c *Changes) Count(ctx context.Context, store *Store) error {
	r := newReader(store)
	defer r.close()
	for i := range c.Files {
		if err := ended(ctx); err != nil {
			return err
		}
		change := &c.Files[i]
		before, after, ok := r.both(change)
		if !ok || isBinary(before) || isBinary(after) {
			continue
		}
		removed, added := compareLines(splitLines(before), splitLines(after))
		change.Removed, change.Added = count(removed), count(added)
	}
	return nil
}

func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "comparing files was interrupted").Because(ctx.Err())
	}
	return nil
}

func count(marks []bool) *int {
	n := 0
	for _, marked := range marks {
		if marked {
			n++
		}
	}
	return &n
}

func isBinary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), binaryHead)], 0) >= 0 }

// Patch writes a unified diff as git apply takes it. It has regular files and links, and of their modes what git has of
// them: whether a file is executable. A file whose content is not known, because it is too large or was not kept, is
// named, which git apply refuses.
func (c *Changes) Patch(ctx context.Context, store *Store, w io.Writer) error {
	r := newReader(store)
	defer r.close()
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
	if err := out.Flush(); err != nil {
		return fault.New(fault.OutputFailed, "the diff cannot be written: %v", err).Because(err)
	}
	return nil
}

// reader reads contents.
type reader struct {
	store *Store
	repos map[string]*git.Repository
}

func newReader(store *Store) *reader { return &reader{store, map[string]*git.Repository{}} }

func (r *reader) close() {
	for _, repository := range r.repos {
		repository.Close()
	}
}

// both returns the contents of a file before and after. One that was not there is empty.
func (r *reader) both(c *Change) (before, after []byte, ok bool) {
	before, ok = r.content(c.before)
	if ok {
		after, ok = r.content(c.after)
	}
	return before, after, ok
}

func (r *reader) content(e *entry) (data []byte, ok bool) {
	switch {
	case e == nil, e.Mode.IsDir():
		return nil, true
	case isLink(e.Mode):
		return []byte(e.target), true
	case !isRegular(e.Mode):
		return nil, false
	case e.Size == 0:
		return nil, true
	case e.content == nil || e.Size > readLimit:
		return nil, false
	}
	var err error
	switch c := e.content; {
	case c.inGit:
		var opened *git.Repository
		if opened, err = r.open(c.repository.dir); err == nil {
			data, err = opened.Blob(c.blob, e.Size)
		}
	case c.kept && r.store != nil:
		data, err = r.store.get(c.sum, e.Size)
	default:
		return nil, false
	}
	return data, err == nil && int64(len(data)) == e.Size
}

func (r *reader) open(dir string) (*git.Repository, error) {
	if opened := r.repos[dir]; opened != nil {
		return opened, nil
	}
	opened, err := git.At(dir)
	if err == nil {
		r.repos[dir] = opened
	}
	return opened, err
}

// write writes the change of one file.
func (r *reader) write(out *bufio.Writer, c *Change) {
	was, is := gitMode(c.before), gitMode(c.after)
	if was == is && c.Status == Mode || was == "" && is == "" {
		return // nothing that git would notice
	}
	from, to := quote("a/"+c.Path), quote("b/"+c.Path)
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
		fmt.Fprintf(out, "--- %s\n+++ %s\n", tabbed(from), tabbed(to))
		writeHunks(out, splitLines(before), splitLines(after))
	}
}

// gitMode returns the mode as git records it, and "" for what it does not record.
func gitMode(e *entry) string {
	switch {
	case e == nil:
	case isLink(e.Mode):
		return "120000"
	case isRegular(e.Mode) && e.Mode&0o100 != 0:
		return "100755"
	case isRegular(e.Mode):
		return "100644"
	}
	return ""
}

// quote writes a name as git does: in quotes if it has bytes that a line cannot show.
func quote(name string) string {
	var b strings.Builder
	plain := true
	b.WriteByte('"')
	for i := range len(name) {
		c := name[i]
		short := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c)
		switch {
		case short >= 0:
			b.WriteByte('\\')
			b.WriteByte(`abtnvfr"\`[short])
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
			continue
		}
		plain = false
	}
	if plain {
		return name
	}
	b.WriteByte('"')
	return b.String()
}

// tabbed ends a name that has a blank, which would otherwise end there.
func tabbed(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

// writeHunks writes the changed parts of a file.
func writeHunks(out *bufio.Writer, before, after [][]byte) {
	removed, added := compareLines(before, after)
	for i, j := 0, 0; ; {
		for i < len(before) && j < len(after) && !removed[i] && !added[j] {
			i, j = i+1, j+1
		}
		if i == len(before) && j == len(after) {
			return
		}
		lead := min(around, i, j)
		h := hunk{fromBefore: i - lead, fromAfter: j - lead}
		for _, line := range before[i-lead : i] {
			h.line(' ', line)
		}
		for same := 0; (i < len(before) || j < len(after)) && same <= 2*around; {
			switch {
			case i < len(before) && removed[i]:
				h.line('-', before[i])
				i, same = i+1, 0
			case j < len(after) && added[j]:
				h.line('+', after[j])
				j, same = j+1, 0
			default:
				h.line(' ', before[i])
				i, j, same = i+1, j+1, same+1
			}
		}
		h.end(out)
	}
}

// hunk is a changed part with the lines around it.
type hunk struct {
	fromBefore, fromAfter int
	signs                 []byte
	lines                 [][]byte
}

func (h *hunk) line(sign byte, line []byte) {
	h.signs, h.lines = append(h.signs, sign), append(h.lines, line)
}

// end writes the hunk, without the unchanged lines at its end that are too many.
func (h *hunk) end(out *bufio.Writer) {
	last := bytes.LastIndexAny(h.signs, "+-")
	n := min(len(h.signs), last+1+around)
	signs := h.signs[:n]
	same := bytes.Count(signs, []byte{' '})
	out.WriteString("@@ -")
	writeRange(out, h.fromBefore, same+bytes.Count(signs, []byte{'-'}))
	out.WriteString(" +")
	writeRange(out, h.fromAfter, same+bytes.Count(signs, []byte{'+'}))
	out.WriteString(" @@\n")
	for i, line := range h.lines[:n] {
		out.WriteByte(signs[i])
		out.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// writeRange writes the first line and the number of lines. Of no lines it is the line before.
func writeRange(out *bufio.Writer, from, n int) {
	if n > 0 {
		from++
	}
	if fmt.Fprintf(out, "%d", from); n != 1 {
		fmt.Fprintf(out, ",%d", n)
	}
}
