package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReadNumbersLines(t *testing.T) {
	d := newDesk(t)
	d.put("a.txt", "x1\nx2\r\nx3\n")
	d.put("torn", "x1\nx2")
	d.put("empty", "")
	for input, want := range map[string]string{
		`{"file_path": "a.txt"}`: "     1\tx1\n     2\tx2\n   " +
			"  3\tx3",
		`{"file_path": "torn"}`:               "     1\tx1\n     2\tx2",
		`{"file_path": "a.txt", "offset": 2}`: "     2\tx2\n     3\tx3",
		`{"file_path": "a.txt", "offset": 2, "limit": 1}`: "     2\tx2\n\n(Lines 2-2 of 3 " +
			"are shown. Read on with offset 3.)",
		`{"path": "a.txt", "offset": "3", "limit": "9"}`: "     3\tx3",
		`{"file_path": "a.txt", "offset": 0, "limit": 0}`: "     1\tx1\n     2\tx2\n   " +
			"  3\tx3",
		`{"file_path": "empty"}`: "(empty exists but is empty.)",
		`{"file_path": "` + filepath.ToSlash(d.in) + `/../in/torn", "limit": null}`: "     1\tx1\n     2\tx2",
	} {
		if r := d.says(Read, input); r.Text != want {
			t.Errorf("%s: got\n%q, want\n%q", input, r.Text, want)
		}
	}
	d.fails(Read, object{"file_path": "a.txt", "offset": 4}, "has only 3 lines")
	d.fails(Read, object{"file_path": "a.txt", "offset": -1}, `"offset" must be a whole number from 0 on, but came -1`)
}

func TestReadIsBounded(t *testing.T) {
	d := newDesk(t)
	d.put("lines", strings.Repeat("a\n", 5000))
	d.says(Read, object{"file_path": "lines"},
		"\n  2000\ta\n\n(Lines 1-2000 of 5000 are shown. Read on with offset 2001.)")

	d.put("long", "short\n"+strings.Repeat("ä", 3000)+"\n"+strings.Repeat("b", 2000)+"\nend")
	r := d.says(Read, object{"file_path": "long"}, "ä… [the line is cut here; it has 6001 bytes]\n", "\n     4\tend")
	if n := strings.Count(r.Text, "ä"); n != 2000 {
		t.Errorf("%d characters of the line are shown", n)
	}
	if strings.Count(r.Text, "cut") != 1 {
		t.Error("a line of 2000 characters was cut")
	}

	d.put("wide", strings.Repeat(strings.Repeat("w", 1900)+"\n", 1000))
	r = d.says(Read, object{"file_path": "wide"},
		" of 1000 are shown: no more than 256 KB at once. Read on with offset ")
	if len(r.Text) > largestPage+1000 {
		t.Errorf("the result has %d bytes", len(r.Text))
	}
	next := r.Text[strings.LastIndex(r.Text, " ")+1:]
	first := strings.TrimRight(next, ".)")
	d.says(Read, fmt.Sprintf(`{"file_path": "wide", "offset": %s, "limit": 1}`, first), first+"\tw")

	d.put("one", strings.Repeat("x", 3<<20))
	if r := d.says(Read, object{"file_path": "one"}, "it has 3145728 bytes"); len(r.Text) > 3000 {
		t.Errorf("the result has %d bytes", len(r.Text))
	}
}

// TestReadOfAFileThatIsTooLargeToCount shows its beginning only.
func TestReadOfAFileThatIsTooLargeToCount(t *testing.T) {
	d := newDesk(t)
	f, err := os.Create(filepath.Join(d.in, "huge"))
	check(t, err)
	_, err = f.WriteString(strings.Repeat("line\n", 10_000))
	check(t, err)
	check(t, f.Truncate(largestFile+1))
	check(t, f.Close())
	d.says(Read, object{"file_path": "huge", "limit": 3},
		"     3\tline\n\n(Lines 1-3 are shown. Read on with offset 4.)")
	if _, ok := d.env.Seen.Lookup("huge"); ok {
		t.Error("a file counts as seen of which most was not read")
	}
	d.fails(Edit, object{"file_path": "huge", "old_string": "line", "new_string": "x"}, "is larger than")
}

func TestReadOfOtherEncodings(t *testing.T) {
	d := newDesk(t)
	d.put("bom", "\ufeffone\ntwo\n")
	d.put("le", "\xff\xfeo\x00n\x00e\x00\r\x00\n\x00\x3d\xd8\x00\xdeX\x00")
	d.put("be", "\xfe\xff\x00o\x00n\x00e")
	d.put("latin", "caf\xe9\nna\xefve")
	for name, want := range map[string]string{
		"bom": "     1\tone\n     2\ttwo", "le": "     1\tone\n     2\t😀X", "be": "     1\tone",
		"latin": "     1\tcaf\ufffd\n     2\tna\ufffdve",
	} {
		if r := d.says(Read, object{"file_path": name}); r.Text != want {
			t.Errorf("%s: got %q, want %q", name, r.Text, want)
		}
	}
}

func TestReadOfWhatIsNoText(t *testing.T) {
	d := newDesk(t)
	for name, content := range map[string]string{
		"image/png": "\x89PNG\r\n\x1a\n123", "image/jpeg": "\xff\xd8\xff\xe0123", "image/gif": "GIF89a123",
		"image/webp": "RIFF1234WEBPVP8 ",
	} {
		d.put("picture", content)
		r := d.says(Read, object{"file_path": "picture"}, name)
		if len(r.Images) != 1 || r.Images[0].Media != name || string(r.Images[0].Data) != content {
			t.Errorf("%s: got %v", name, r.Images)
		}
	}
	d.put("large.png", "\x89PNG\r\n\x1a\n"+strings.Repeat("x", largestImage))
	d.fails(Read, object{"file_path": "large.png"}, "smaller copy")
	d.put("a.pdf", "%PDF-1.7\n")
	d.fails(Read, object{"file_path": "a.pdf"}, "a.pdf is a PDF document", "pdftotext")
	d.put("program", "\x7fELF\x02\x01\x00\x00")
	d.fails(Read, object{"file_path": "program"}, "an executable", "Bash")
	d.put("data", "abc\x00def")
	d.fails(Read, object{"file_path": "data"}, "a binary file")
	d.put("dir/x", "")
	d.fails(Read, object{"file_path": "dir"}, "dir is a directory. List it with LS.")
}

func TestReadOfWhatIsNotThere(t *testing.T) {
	d := newDesk(t)
	d.put("src/parser.go", "")
	d.put("src/lexer.ts", "")
	d.put("README.md", "")
	for name, parts := range map[string][]string{
		"src/praser.go": {
			"File not found: " + filepath.ToSlash(d.in) + "/src/praser.go",
			"Did you mean src/parser.go?",
		},
		"src/lexer.js":  {"Did you mean src/lexer.ts?"},
		"readme.md":     {"Did you mean README.md?"},
		"scr/parser.go": {"Did you mean src/parser.go?"},
		"none/of/it":    {"There is no directory none; look with LS or Glob."},
		"zzz":           {"Look for it with Glob."},
	} {
		d.fails(Read, object{"file_path": name}, parts...)
	}
	if err := os.Symlink("../out/none", filepath.Join(d.in, "link")); err == nil {
		d.fails(Read, object{"file_path": "link"}, "lies outside the workspace")
	}
	d.fails(Read, object{"file_path": "../out/x"}, "../out/x lies outside the workspace "+d.in)
	d.fails(Read, object{"file_path": "/etc/passwd"}, "lies outside the workspace")
	d.fails(Read, object{"file_path": ""}, "the path is empty")
}

func TestReadOfANotebook(t *testing.T) {
	d := newDesk(t)
	d.put("a.ipynb", `{"cells": [
 {"cell_type": "markdown", "id": "m1", "metadata": {}, "source": ["# Title\n", "text"]},
 {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": "print(1)", "outputs": [
  {"output_type": "stream", "text": ["1\n"]},
  {"output_type": "display_data", "data": {"image/png": "iVBORw0K\nGgo=\n", "text/plain": ["<Figure>"]}},
  {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": []}]}
], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`)
	r := d.says(Read, object{"file_path": "a.ipynb"})
	want := "Cell 0 (markdown, id m1):\n# Title\ntext\n\nCell 1 " +
		"(code):\nprint(1)\nOutput:\n1\nOutput:\n<Figure>\nOutput: picture 1\nOutput:\nValueError: bad\n"
	if r.Text != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
	if len(r.Images) != 1 || string(r.Images[0].Data) != "\x89PNG\r\n\x1a\n" {
		t.Errorf("got the images %v", r.Images)
	}
	d.says(Read, object{"file_path": "a.ipynb", "offset": 5, "limit": 2},
		"Cell 1 (code):\nprint(1)\n\n(Lines 5-6 of 14")
	d.put("odd.ipynb", `{"cells": [{"source": 5, "outputs": {}, "cell_type": []}, {}]}`)
	d.says(Read, object{"file_path": "odd.ipynb"}, "Cell 0 (", "Cell 1 (")
	d.put("torn.ipynb", `{"cells": [`)
	d.says(Read, object{"file_path": "torn.ipynb"}, "     1\t{\"cells\": [")
}

func TestReadEndsWithItsContext(t *testing.T) {
	d := newDesk(t)
	d.put("a", "x")
	action, err := Read(d.env).Plan(json.RawMessage(`{"file_path": "a"}`))
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r := action.Run(ctx); !r.Failed {
		t.Error("it went on")
	}
}

func TestAnyBytesAreShownAsText(t *testing.T) {
	d := newDesk(t)
	for n := range 256 {
		d.put("a", fmt.Sprintf("x%c%sy\n", n, string([]byte{byte(n), byte(n * 7)})))
		if r := d.call(Read, object{"file_path": "a"}); !utf8.ValidString(r.Text) {
			t.Fatalf("byte %d: the result is not UTF-8", n)
		}
	}
}
