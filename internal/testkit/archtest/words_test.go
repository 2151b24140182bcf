package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	problems, err := Words(filepath.Join("..", "..", ".."), pending())
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

func TestWordsFindsPhrasesAcrossLines(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"a/a.go": "package a\n\n// A lock that is\n// none holds nothing.\nvar x = \"a file is \" + \"none\"\n\n" +
			"// There is no lock, and it is no longer held.\n\nvar y = `it is no id`\n",
		"b/b.go":         "package b\n\n// What of it?\n",
		"c/c.go":         "package c\n",
		"page.md":        "# Page\n\nThe file beside\nit.\n",
		"testdata/t.go":  "package t // whoever\n",
		"scripts/script": "#!/bin/sh\n# the host\n# for who asks\n",
	}
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Words(root, []string{"b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`a/a.go:3: "is none" is not plain English`,
		`a/a.go:9: "is no id" is not plain English`,
		"c: has no rejected phrase any more: take it off the list of pending places",
		`page.md:3: "beside it" is not plain English`,
		`scripts/script:1: "for who" is not plain English`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// pending lists the places that still have rejected phrases. Rewrite one, and take it off.
func pending() []string {
	return nil
}
