package git

import "testing"

// TestConversions reads attributes: those that keep the size of a file are told by its name.
func TestConversions(t *testing.T) {
	for text, want := range map[string]struct{ possible, keeps bool }{
		"":                                {false, false},
		"# *.txt filter=p\n\n":            {false, false},
		"*.txt -text -diff !eol binary":   {false, false},
		"*.txt diff=x linguist-generated": {false, false},
		"* text=auto":                     {true, false},
		"*.txt ident":                     {true, false},
		"a/*.TXT filter=p":                {true, true},
		"a/** working-tree-encoding=x":    {true, true},
		"*.bin filter=p":                  {true, false},
		"dir/ filter=p":                   {true, false},
		"\"a b.txt\" filter=p":            {true, true},
		"[ab].txt filter=p":               {true, true},
		"\uFEFFa.txt filter=p":            {true, true},
		"[attr]mine filter=p\n*.txt mine": {true, true},
		"[attr]binary filter=p":           {true, true},
		"*.txt unknown":                   {true, true},
	} {
		c := &Conversions{}
		c.Note([]byte(text))
		if is := c.KeepSize("a.txt"); c.Possible() != want.possible || is != want.keeps {
			t.Errorf("%q: possible %v, size kept %v", text, c.Possible(), is)
		}
	}
}
