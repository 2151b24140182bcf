package acp

import (
	"fmt"
	"path/filepath"
	"strings"
)

// around is how many lines of context a change has on each side.
const around = 3

// mostCells limits the table in which two versions are compared; larger ones are shown as one change.
const mostCells = 4 << 20

// patch returns a diff in git's form, with the absolute path of the file.
func patch(d Diff) string {
	path := strings.TrimPrefix(filepath.ToSlash(d.Path), "/")
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", quoted("a/"+path), quoted("b/"+path))
	var old string
	if d.Old == nil {
		fmt.Fprintf(&b, "new file mode 100644\n")
	} else {
		old = *d.Old
	}
	was, is := linesOf(old), linesOf(d.New)
	ops := compare(was, is)
	hunks := hunksOf(ops)
	if len(hunks) == 0 {
		return b.String()
	}
	if d.Old == nil {
		b.WriteString("--- /dev/null\n")
	} else {
		fmt.Fprintf(&b, "--- %s\n", quoted("a/"+path))
	}
	fmt.Fprintf(&b, "+++ %s\n", quoted("b/"+path))
	for _, h := range hunks {
		h.write(&b, ops)
	}
	return b.String()
}

// quoted returns a name as git writes it: in quotes if it has special characters.
func quoted(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}

// linesOf splits a text into lines with their ends.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// op is a line that is unchanged (' '), deleted ('-') or added ('+').
type op struct {
	sign byte
	line string
}

func compare(was, is []string) []op {
	var ops []op
	head := 0
	for head < len(was) && head < len(is) && was[head] == is[head] {
		head++
	}
	tail := 0
	for tail < len(was)-head && tail < len(is)-head && was[len(was)-1-tail] == is[len(is)-1-tail] {
		tail++
	}
	for _, line := range was[:head] {
		ops = append(ops, op{' ', line})
	}
	ops = append(ops, middle(was[head:len(was)-tail], is[head:len(is)-tail])...)
	for _, line := range was[len(was)-tail:] {
		ops = append(ops, op{' ', line})
	}
	return ops
}

// middle finds the longest common subsequence of lines.
func middle(was, is []string) []op {
	var ops []op
	if (len(was)+1)*(len(is)+1) > mostCells {
		for _, line := range was {
			ops = append(ops, op{'-', line})
		}
		for _, line := range is {
			ops = append(ops, op{'+', line})
		}
		return ops
	}
	width := len(is) + 1
	common := make([]int32, (len(was)+1)*width) // of the remaining lines
	for i := len(was) - 1; i >= 0; i-- {
		for j := len(is) - 1; j >= 0; j-- {
			if was[i] == is[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(was) || j < len(is) {
		switch {
		case i < len(was) && j < len(is) && was[i] == is[j]:
			ops = append(ops, op{' ', was[i]})
			i, j = i+1, j+1
		case j == len(is) || i < len(was) && common[(i+1)*width+j] >= common[i*width+j+1]:
			ops = append(ops, op{'-', was[i]})
			i++
		default:
			ops = append(ops, op{'+', is[j]})
			j++
		}
	}
	return ops
}

// hunk is a range of the ops, and its line numbers.
type hunk struct{ from, to, was, is int }

func hunksOf(ops []op) []hunk {
	var hunks []hunk
	was, is := 0, 0
	for i, o := range ops {
		if o.sign != ' ' {
			if n := len(hunks); n > 0 && i-around <= hunks[n-1].to {
				hunks[n-1].to = min(i+1+around, len(ops))
			} else {
				before := min(around, i)
				hunks = append(hunks, hunk{i - before, min(i+1+around, len(ops)), was - before, is - before})
			}
		}
		if o.sign != '+' {
			was++
		}
		if o.sign != '-' {
			is++
		}
	}
	return hunks
}

func (h hunk) write(b *strings.Builder, ops []op) {
	was, is := 0, 0
	for _, o := range ops[h.from:h.to] {
		if o.sign != '+' {
			was++
		}
		if o.sign != '-' {
			is++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(h.was, was), span(h.is, is))
	for _, o := range ops[h.from:h.to] {
		b.WriteByte(o.sign)
		b.WriteString(strings.TrimSuffix(o.line, "\n"))
		b.WriteByte('\n')
		if !strings.HasSuffix(o.line, "\n") {
			b.WriteString("\\ No newline at end of file\n")
		}
	}
}

// span returns where lines begin, and how many there are.
func span(before, count int) string {
	if count == 0 {
		return fmt.Sprintf("%d,0", before)
	}
	return fmt.Sprintf("%d,%d", before+1, count)
}
