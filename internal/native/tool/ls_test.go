package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLS(t *testing.T) {
	d := newDesk(t)
	d.put("b.txt", "1234567")
	d.put(".hidden", "")
	d.put("sub/x", "")
	d.put("n/x", "")
	d.put("a.o", "")
	want := "d          - n/\nd          - sub/\n-          0 .hidden\n-          0 a.o\n-          7 b.txt"
	for _, input := range []string{``, `{}`, `null`, `{"path": null}`, `{"path": "."}`, `{"directory": "sub/.."}`} {
		if r := d.says(LS, input); r.Text != want {
			t.Errorf("%s: got\n%s\nwant\n%s", input, r.Text, want)
		}
	}
	if r := d.says(LS,
		object{"ignore": []string{"*.o", ".*", "**/n/**"}}); r.Text != "d          - sub/\n-          7 b.txt" {
		t.Errorf("got\n%s", r.Text)
	}
	check(t, os.Mkdir(filepath.Join(d.in, "empty"), 0o755))
	d.says(LS, object{"path": "empty"}, "(The directory is empty.)")
	d.fails(LS, object{"path": "b.txt"}, "b.txt is not a directory. Look at it with Read.")
	d.fails(LS, object{"path": "sbu"}, "Directory not found: ", "Did you mean sub?")
	d.fails(LS, object{"path": ".."}, "outside the workspace")
	d.fails(LS, object{"ignore": "x"}, `"ignore" must be a list, but came the string "x"`)
	d.fails(LS, object{"ignore": []any{5, "["}}, `"ignore[0]" must be a string`, "not a pattern of names")
	if err := os.Symlink("sub", filepath.Join(d.in, "sub", "link")); err == nil {
		check(t, os.Symlink("..", filepath.Join(d.in, "sub", "up")))
		d.says(LS, object{"path": "sub"}, "l          - link\n", "l          - up/\n")
	}
}

func TestLSOfManyAndOddNames(t *testing.T) {
	d := newDesk(t)
	check(t, os.Mkdir(filepath.Join(d.in, "many"), 0o755))
	for i := range listedEntries + 5 {
		check(t, os.WriteFile(filepath.Join(d.in, "many", fmt.Sprintf("%05d", i)), nil, 0o600))
	}
	r := d.says(LS, object{"path": "many"}, fmt.Sprintf("\n(%d of %d entries are shown.", listedEntries,
		listedEntries+5))
	if n := strings.Count(r.Text, "\n"); n != listedEntries {
		t.Errorf("%d lines", n)
	}
	check(t, os.Mkdir(filepath.Join(d.in, "odd"), 0o755))
	if err := os.WriteFile(filepath.Join(d.in, "odd", "a\nb"), nil, 0o600); err != nil {
		t.Skipf("no such names here: %v", err)
	}
	if r := d.says(LS, object{"path": "odd"}); r.Text != `-          0 a\nb` {
		t.Errorf("got %q", r.Text)
	}
}
