package webpage

import (
	"net/url"
	"strings"
	"unicode"
)

// toText converts HTML to text: headings, lists, links, code and tables roughly as in Markdown, everything else as
// plain text. It stops soon after most bytes.
func toText(page string, base *url.URL, most int) (title, text string, cut bool) {
	w := &writer{base: base}
	for z := newScanner(page); ; {
		t, ok := z.next()
		if !ok {
			break
		}
		if w.b.Len()+w.code.Len() > most {
			cut = true
			break
		}
		w.take(t)
	}
	w.endPre()
	w.endLink()
	return strings.Join(strings.Fields(w.title.String()), " "), strings.TrimRight(w.b.String(), " \n"), cut
}

// maxDepth limits the nesting that is shown; deeper content appears at the last level.
const maxDepth = 12

const maxAddress = 2000 // bytes of an address that is shown

// writer builds the text from tags as they come, without a tree: an unmatched tag costs no more than a wrong
// indentation.
type writer struct {
	base  *url.URL
	title strings.Builder
	b     strings.Builder

	breaks  int  // newlines to write before the next text
	space   bool // a space to write before it
	inTitle bool
	skip    string // the element that is being skipped
	skipped int    // how many of them are open

	blocks []block // open lists, items and quotations
	rows   []row   // of the open tables
	mark   string  // of a heading, to write before the next text

	inPre    int
	code     strings.Builder // of a pre
	language string

	link     string // target of the open link, or empty
	linkText bool   // something was written in it
	inCode   bool   // a code span is open, and something was written in it
	wantCode bool   // a code span begins with the next text
}

// block is an element that indents.
type block struct {
	name   string // ul, ol, li, blockquote
	number int    // of the next item of an ol
	first  string // before the first line; empty: already written
	rest   string // before the others
}

// row is a table row.
type row struct {
	cells   int  // cells begun
	pending int  // separators to write before the next text
	heading bool // all cells are headings
	wrote   bool // something was written in it
	empty   bool // nothing was written in the cell
	broken  bool // a line ended in it
}

// isSkipped reports whether an element is skipped with its content.
func isSkipped(name string) bool {
	switch name {
	case "script", "style", "template", "svg", "select", "datalist", "textarea", "iframe", "noembed", "noframes",
		"canvas", "audio", "video":
		return true
	}
	return false
}

// lines returns how many newlines surround an element; 0: it is inline.
func lines(name string) int {
	switch name {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "table", "hr", "dl", "figure", "fieldset":
		return 2
	case "div", "section", "article", "main", "header", "footer", "nav", "aside", "form", "figcaption", "address",
		"details", "summary", "dt", "dd",
		"hgroup", "center", "body", "html", "head", "legend", "caption", "thead", "tbody", "tfoot", "search", "option",
		"ul", "ol", "menu", "li", "xmp", "listing":
		return 1
	}
	return 0
}

func (w *writer) take(t token) {
	if w.skip != "" {
		if t.name == w.skip && t.kind == startTag && !t.closed {
			w.skipped++
		} else if t.name == w.skip && t.kind == endTag {
			if w.skipped--; w.skipped == 0 {
				w.skip = ""
			}
		}
		return
	}
	switch t.kind {
	case textToken:
		w.text(t.text)
	case startTag:
		if isSkipped(t.name) {
			if !t.closed || t.name != "svg" {
				w.skip, w.skipped = t.name, 1
			}
			return
		}
		w.start(t)
	case endTag:
		w.end(t.name)
	}
}

// start handles a start tag.
func (w *writer) start(t token) {
	if n := lines(t.name); n > 0 && t.name != "li" && t.name != "ul" && t.name != "ol" && t.name != "menu" {
		w.breakLines(n)
	}
	switch t.name {
	case "title":
		w.inTitle = w.title.Len() == 0
	case "base":
		if to := w.resolve(t.attributes["href"]); to != nil {
			w.base = to
		}
	case "h1", "h2", "h3", "h4", "h5", "h6":
		w.mark = "######"[:t.name[1]-'0'] + " "
	case "br":
		if w.inPre > 0 {
			w.code.WriteByte('\n')
		} else {
			w.breakLines(1)
		}
	case "hr":
		w.word("---")
		w.breakLines(2)
	case "ul", "ol", "menu":
		w.startList(t)
	case "li":
		w.startItem()
	case "blockquote":
		w.push(block{name: "blockquote", first: "> ", rest: "> "})
	case "pre", "xmp", "listing":
		w.inPre++
		w.language = language(t)
	case "code", "kbd", "samp", "tt":
		if w.inPre > 0 {
			if w.language == "" && w.code.Len() < 100 && strings.TrimSpace(w.code.String()) == "" {
				w.language = language(t)
			}
		} else if !w.inCode {
			w.wantCode = true
		}
	case "a":
		w.endLink()
		if to := w.resolve(t.attributes["href"]); to != nil && w.inPre == 0 &&
			!strings.HasPrefix(t.attributes["href"], "#") {
			w.link = target(to)
		}
	case "img":
		w.image(t)
	case "table":
		if len(w.rows) < maxDepth {
			w.rows = append(w.rows, row{})
		}
	case "tr":
		w.startRow()
	case "td", "th":
		w.startCell(t.name == "th")
	case "dd":
		w.mark = ": "
	}
}

func (w *writer) end(name string) {
	switch name {
	case "title":
		w.inTitle = false
	case "h1", "h2", "h3", "h4", "h5", "h6", "dd":
		w.mark = ""
	case "ul", "ol", "menu":
		w.pop(name)
		if !w.inList() {
			w.breakLines(2)
		}
	case "li":
		if w.inList() {
			w.popItem()
		}
	case "blockquote":
		w.pop(name)
	case "pre", "xmp", "listing":
		w.endPre()
	case "code", "kbd", "samp", "tt":
		w.endCode()
	case "a":
		w.endLink()
	case "tr":
		w.endRow()
	case "table":
		w.endRow()
		if len(w.rows) > 0 {
			w.rows = w.rows[:len(w.rows)-1]
		}
	}
	if n := lines(name); n > 0 {
		w.breakLines(n)
	}
}

// text writes text of the page, with white space collapsed.
func (w *writer) text(s string) {
	switch {
	case w.inTitle:
		w.title.WriteString(s[:min(len(s), 1000)])
		return
	case w.inPre > 0:
		w.code.WriteString(s)
		return
	}
	for s != "" {
		end := strings.IndexFunc(s, blank)
		if end < 0 {
			end = len(s)
		}
		if end > 0 {
			w.word(s[:end])
			s = s[end:]
			continue
		}
		w.space = true
		s = strings.TrimLeftFunc(s, blank)
	}
}

func blank(r rune) bool { return unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff' }

// word writes a word, and before it what is pending.
func (w *writer) word(s string) {
	w.separate()
	if w.mark != "" {
		w.b.WriteString(w.mark)
		w.mark = ""
	}
	if w.link != "" && !w.linkText {
		w.linkText = true
		w.b.WriteByte('[')
	}
	if w.wantCode {
		w.wantCode, w.inCode = false, true
		w.b.WriteByte('`')
	}
	w.b.WriteString(s)
	for i := range w.rows {
		w.rows[i].wrote, w.rows[i].empty = true, false
	}
}

// separate writes newlines with the indentation after them, separators of cells, or a space.
func (w *writer) separate() {
	began, bars := w.b.Len() > 0, ""
	if len(w.rows) > 0 {
		r := &w.rows[len(w.rows)-1]
		bars = strings.Repeat("| ", min(r.pending, 100))
		r.pending = 0
	}
	switch {
	case !began || w.breaks > 0:
		w.closeCode()
		for n := range w.breaks {
			if n > 0 {
				w.b.WriteString(strings.TrimRight(w.indentation(false), " "))
			}
			w.b.WriteByte('\n')
		}
		w.breaks = 0
		w.b.WriteString(w.indentation(true) + bars)
		for i := range w.rows {
			w.rows[i].broken = w.rows[i].wrote
		}
	case bars != "":
		w.b.WriteString(" " + bars)
	case w.space:
		w.b.WriteByte(' ')
	}
	w.space = false
}

// indentation returns the beginning of a line. begins: text follows, so items show their marks.
func (w *writer) indentation(begins bool) string {
	var all strings.Builder
	for i := range w.blocks {
		b := &w.blocks[i]
		switch {
		case b.first == "":
			all.WriteString(b.rest)
		case begins:
			all.WriteString(b.first)
			b.first = ""
		}
	}
	return all.String()
}

// breakLines ends the line, if there is something on it; 2 adds an empty one.
func (w *writer) breakLines(n int) {
	if w.inPre > 0 {
		if w.code.Len() > 0 && !strings.HasSuffix(w.code.String(), "\n") {
			w.code.WriteByte('\n')
		}
		return
	}
	w.space = false
	if len(w.rows) > 0 {
		r := &w.rows[len(w.rows)-1]
		if r.cells > 0 && r.empty {
			return
		}
	}
	if w.b.Len() > 0 {
		w.breaks = max(w.breaks, n)
	}
}

// endPre writes the content of a pre, between fences that are longer than any in it.
func (w *writer) endPre() {
	if w.inPre == 0 {
		return
	}
	if w.inPre--; w.inPre > 0 {
		return
	}
	content := strings.TrimRight(strings.ReplaceAll(w.code.String(), "\r\n", "\n"), " \t\n")
	content = strings.TrimPrefix(content, "\n") // HTML ignores the first newline
	w.code.Reset()
	if content == "" {
		return
	}
	run := longestRun(content, '`')
	if run > 60 { // real code has no such run
		content, run = strings.ReplaceAll(content, "`", "'"), 0
	}
	fence := strings.Repeat("`", max(3, run+1))
	w.wantCode = false
	if len(w.rows) > 0 {
		r := &w.rows[len(w.rows)-1]
		r.pending, r.empty = 0, false
	}
	w.breakLines(2)
	w.word(fence + w.language)
	for line := range strings.SplitSeq(content, "\n") {
		w.b.WriteByte('\n')
		w.b.WriteString(strings.TrimRight(w.indentation(false)+line, " \t\r"))
	}
	w.b.WriteString("\n" + w.indentation(false) + fence)
	w.language = ""
	w.breakLines(2)
}

// longestRun returns the length of the longest run of the byte.
func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if run++; s[i] != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// language returns the language of code that a class names.
func language(t token) string {
	for class := range strings.FieldsSeq(t.attributes["class"]) {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-"} {
			if name, ok := strings.CutPrefix(class, prefix); ok && len(name) < 30 &&
				strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#-") == "" {
				return name
			}
		}
	}
	return ""
}

// endCode ends a code span. An empty one is dropped.
func (w *writer) endCode() {
	w.wantCode = false
	w.closeCode()
}

func (w *writer) closeCode() {
	if w.inCode {
		w.inCode = false
		w.b.WriteByte('`')
	}
}

func (w *writer) endLink() {
	if w.link != "" && w.linkText {
		w.closeCode()
		w.b.WriteString("](" + w.link + ")")
	}
	w.link, w.linkText = "", false
}

// image writes an image's alternative text. An image without one is decoration.
func (w *writer) image(t token) {
	words := strings.Join(strings.Fields(t.attributes["alt"]), " ")
	if words == "" || w.inPre > 0 {
		return
	}
	shown := "![" + cutAt(words, maxAddress) + "]"
	if to := w.resolve(t.attributes["src"]); to != nil {
		shown += "(" + target(to) + ")"
	}
	w.word(shown)
}

// resolve resolves an address relative to the page; nil: it cannot be fetched.
func (w *writer) resolve(written string) *url.URL {
	written = strings.TrimSpace(written)
	if written == "" || len(written) > maxAddress {
		return nil
	}
	to, err := url.Parse(written)
	if err == nil && w.base != nil {
		to = w.base.ResolveReference(to)
	}
	if err != nil || to.Scheme != "http" && to.Scheme != "https" && to.Scheme != "mailto" {
		return nil
	}
	return to
}

// target returns an address with brackets escaped, so that none ends it early.
func target(u *url.URL) string {
	s := u.String()
	if strings.ContainsAny(s, "() \n") {
		s = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "\n", "").Replace(s)
	}
	return s
}
