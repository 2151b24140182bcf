package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const jupyter = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "m1",
   "metadata": {},
   "source": [
    "# Title <&> ä\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "c1",
   "metadata": {
    "tags": [ "odd",   "blanks" ]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n"
     ]
    }
   ],
   "source": [
    "print(1)"
   ]
  }
 ],
 "metadata": {
  "kernelspec": {"name":"python3"},
  "big": 123456789012345678901234567890
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

// cell cuts the text of a cell out of the notebook above.
func cutCell(from, to string) string {
	return jupyter[strings.Index(jupyter, from) : strings.Index(jupyter, to)+len(to)]
}

func TestNotebookEditKeepsWhatItDoesNotChange(t *testing.T) {
	d := newDesk(t)
	outputs := cutCell("   \"outputs\"", "   ],\n   \"source\": [\n    \"print(1)\"\n   ]")
	markdown := cutCell("  {\n   \"cell_type\": \"markdown\"", "\"text\"\n   ]\n  }")
	for _, c := range []struct {
		name  string
		input object
		want  string
		says  string
	}{
		{
			"replace by id",
			object{"cell_id": "c1", "new_source": "a = 1\nprint(a < 2)\n"},
			strings.Replace(strings.Replace(jupyter, outputs,
				"   \"outputs\": [],\n   \"source\": [\n    \"a = 1\\n\",\n    \"print(a < 2)\\n\"\n   ]", 1),
				"count\": 7", "count\": null", 1),
			"The file a.ipynb has been updated: cell 1 was replaced",
		},
		{
			"replace by number",
			object{"cell_id": 0, "new_source": "new"},
			strings.Replace(jupyter, "    \"# Title <&> ä\\n\",\n    \"text\"", "    \"new\"",
				1), "cell 0 was replaced",
		},
		{
			"empty",
			object{"cell_id": "cell-0", "new_source": ""},
			strings.Replace(jupyter, "[\n    \"# Title <&> ä\\n\",\n    \"text\"\n   ]", "[]",
				1), "cell 0 was replaced",
		},
		{
			"another type",
			object{"cell_id": "m1", "new_source": "x", "cell_type": "code"},
			strings.Replace(jupyter, markdown,
				"  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"m1\",\n   "+
					"\"metadata\": {},\n"+
					"   \"outputs\": [],\n   \"source\": [\n    \"x\"\n   ]\n  }", 1), "cell 0 was replaced",
		},
		{
			"delete the first",
			object{"cell_id": "m1", "edit_mode": "delete"},
			strings.Replace(jupyter, markdown[2:]+",\n  ", "", 1), "cell 0 was deleted",
		},
		{
			"delete the last",
			object{"cell_id": "c1", "edit_mode": "delete", "new_source": ""},
			jupyter[:strings.Index(jupyter, ",\n  {\n   \"cell_type\": \"code\"")] +
				jupyter[strings.Index(jupyter, "\n ],\n \"metadata\""):], "cell 1 was deleted",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.t = t
			d.put("a.ipynb", jupyter)
			d.env.Seen = &Seen{}
			c.input["notebook_path"] = "a.ipynb"
			d.says(NotebookEdit, c.input, c.says)
			got, _ := os.ReadFile(filepath.Join(d.in, "a.ipynb"))
			if string(got) != c.want {
				t.Fatalf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestNotebookEditInserts(t *testing.T) {
	cells := func(t *testing.T, d *desk) (sources []string) {
		data, err := os.ReadFile(filepath.Join(d.in, "a.ipynb"))
		check(t, err)
		book, err := parseNotebook(data)
		check(t, err)
		for i := range book.cells {
			var cell shownCell
			check(t, json.Unmarshal(book.raw(i), &cell))
			if book.minor && book.id(i) == "" {
				t.Errorf("cell %d has no id", i)
			}
			sources = append(sources, string(cell.Source))
		}
		return sources
	}
	d := newDesk(t)
	for name, book := range map[string]string{
		"jupyter":  jupyter,
		"one line": `{"cells": [{"id": "m1", "cell_type": "raw", "source": "a"}, {"id": "c1", "source": ["b"]}], "nbformat": 4}`,
		"tight":    `{"cells":[{"id":"m1","cell_type":"raw","source":"a"},{"id":"c1","source":["b"]}],"nbformat":4}`,
		"windows":  strings.ReplaceAll(jupyter, "\n", "\r\n"), "tabs": strings.ReplaceAll(jupyter, "\n ", "\n\t"),
	} {
		d.put("a.ipynb", book)
		d.env.Seen = &Seen{}
		before := cells(t, d)
		for _, at := range []struct {
			id   any
			want int
		}{{nil, 0}, {"m1", 1}, {"c1", 2}, {1, 2}} {
			d.put("a.ipynb", book)
			d.env.Seen = &Seen{}
			d.says(NotebookEdit, object{
				"notebook_path": "a.ipynb", "cell_id": at.id, "new_source": "x\ny",
				"cell_type": "code", "edit_mode": "insert",
			}, "was inserted")
			got := cells(t, d)
			want := append(append(append([]string{}, before[:at.want]...), "x\ny"), before[at.want:]...)
			if strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("%s, after %v: got %q, want %q", name, at.id, got, want)
			}
			data, _ := os.ReadFile(filepath.Join(d.in, "a.ipynb"))
			if n := strings.Count(string(data), "\n"); strings.Contains(book, "\r\n") &&
				n != strings.Count(string(data), "\r\n") || !strings.Contains(book, "\n") && n > 0 {
				t.Errorf("%s: the line endings are not kept", name)
			}
		}
	}
	d.put("a.ipynb", strings.Replace(jupyter, "minor\": 5", "minor\": 4", 1))
	d.env.Seen = &Seen{}
	d.says(NotebookEdit, object{
		"notebook_path": "a.ipynb", "cell_id": "m1", "new_source": "x", "cell_type": "markdown",
		"edit_mode": "insert",
	})
	d.holds("a.ipynb", strings.Replace(strings.Replace(jupyter, "minor\": 5", "minor\": 4", 1),
		"    \"text\"\n   ]\n  },\n",
		"    \"text\"\n   ]\n  },\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    "+
			"\"x\"\n   ]\n  },\n", 1))
	for _, empty := range []string{
		"{\n \"cells\": [],\n \"nbformat\": 4\n}",
		"{\n \"cells\": [\n ],\n \"nbformat\": 4\n}", `{"cells":[]}`,
	} {
		d.put("a.ipynb", empty)
		d.env.Seen = &Seen{}
		d.says(NotebookEdit, object{
			"notebook_path": "a.ipynb", "new_source": "x", "cell_type": "code",
			"edit_mode": "insert",
		})
		d.says(NotebookEdit, object{"notebook_path": "a.ipynb", "cell_id": "0", "edit_mode": "delete"})
		if got := cells(t, d); len(got) != 0 {
			t.Errorf("got %q", got)
		}
	}
}

func TestNotebookEditRefuses(t *testing.T) {
	d := newDesk(t)
	d.put("a.ipynb", jupyter)
	d.put("torn.ipynb", jupyter[:100])
	d.put("list.ipynb", "[]")
	d.put("none.ipynb", `{"cells": 5}`)
	for _, c := range []struct {
		input string
		part  string
	}{
		{
			`{"notebook_path": "a.ipynb", "cell_id": "zz", "new_source": "x"}`,
			`a.ipynb has no cell "zz". Its cells are 0 to 1, with the ids m1, c1.`,
		},
		{`{"notebook_path": "a.ipynb", "cell_id": 2, "new_source": "x"}`, `has no cell "2"`},
		{
			`{"notebook_path": "a.ipynb", "cell_id": -1, "new_source": "x"}`,
			`"cell_id" must be the id or the number of a cell, but came the number -1`,
		},
		{`{"notebook_path": "a.ipynb", "new_source": "x"}`, `"cell_id" is missing`},
		{`{"notebook_path": "a.ipynb", "cell_id": "m1"}`, `"new_source" is missing`},
		{`{"notebook_path": "a.ipynb", "new_source": "x", "edit_mode": "insert"}`, `"cell_type" is missing`},
		{
			`{"notebook_path": "a.ipynb", "cell_id": "m1", "new_source": "x", "edit_mode": "change"}`,
			"replace, insert or delete",
		},
		{
			`{"notebook_path": "a.ipynb", "cell_id": "m1", "new_source": "x", "cell_type": "python"}`,
			"code, markdown or raw",
		},
		{`{"notebook_path": "a.txt", "cell_id": "m1", "new_source": "x"}`, "must be a notebook"},
		{`{"notebook_path": "b.ipynb", "cell_id": "m1", "new_source": "x"}`, "File not found"},
		{
			`{"notebook_path": "torn.ipynb", "cell_id": "m1", "new_source": "x"}`,
			"torn.ipynb is not a notebook: it is not valid JSON",
		},
		{`{"notebook_path": "list.ipynb", "cell_id": "m1", "new_source": "x"}`, "is not a notebook"},
		{`{"notebook_path": "none.ipynb", "cell_id": "m1", "new_source": "x"}`, "its cells are not a list"},
	} {
		d.fails(NotebookEdit, c.input, c.part)
	}
	d.holds("a.ipynb", jupyter)
}

// TestANotebookStaysOne makes any edits of any cells, and holds that the rest stays.
func TestANotebookStaysOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{
			jupyter, strings.ReplaceAll(jupyter, "\n", ""),
			strings.ReplaceAll(jupyter, "\n", "\r\n"),
		}).Draw(t, "book")
		source := rapid.String().Draw(t, "source")
		e := cellEdit{
			subject: &subject{shown: "a"}, cell: rapid.SampledFrom([]string{"0", "1", "m1", "c1"}).Draw(t,
				"cell"), source: strings.ToValidUTF8(source, "?"),
			mode: rapid.SampledFrom([]string{modeReplace, modeInsert, modeDelete}).Draw(t, "mode"),
			kind: rapid.SampledFrom([]string{"code", "markdown", "raw"}).Draw(t, "kind"),
		}
		book, err := parseNotebook([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := e.apply(book)
		if err != nil {
			t.Fatal(err)
		}
		after, err := parseNotebook(got)
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		want := len(book.cells) + map[string]int{modeInsert: 1, modeDelete: -1}[e.mode]
		if len(after.cells) != want {
			t.Fatalf("%d cells, want %d", len(after.cells), want)
		}
		if string(got[after.close:]) != string(book.text[book.close:]) ||
			string(got[:after.open]) != string(book.text[:book.open]) {
			t.Fatal("what is not a cell has changed")
		}
		at := book.find(e.cell)
		if e.mode == modeInsert {
			at++
		}
		var cell shownCell
		if e.mode != modeDelete && (json.Unmarshal(after.raw(at), &cell) != nil || string(cell.Source) != e.source ||
			cell.Type != e.kind) {
			t.Fatalf("the cell holds %q, want %q", cell.Source, e.source)
		}
	})
}
