package text

import "testing"

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aé", 2, "a…"},
		{"é", 1, "…"},
		{"\x80\x80", 1, "…"},
	} {
		if got := Cut(c.s, c.most); got != c.want {
			t.Errorf("%q, %d: %q", c.s, c.most, got)
		}
	}
	if got := OneLine(" a\x1b[1m \n b\tc ", 4); got != "a b …" {
		t.Errorf("%q", got)
	}
}
