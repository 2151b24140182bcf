package xnl_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/kit/xnl"
	"omniagent/internal/testkit/hermetic"
)

// plainOf removes the places, which differ between two texts of equal nodes.
func plainOf(nodes []*xnl.Node) []*xnl.Node {
	for _, n := range nodes {
		n.Offset = 0
		plainOf(n.Extend)
		for _, item := range n.Body {
			if child, ok := item.(*xnl.Node); ok {
				plainOf([]*xnl.Node{child})
			}
		}
	}
	return nodes
}

// identity checks that what is printed and read again is equal, and that a stream finds the same nodes however it is
// cut.
func identity(t *testing.T, text string) {
	t.Helper()
	nodes, warnings, err := xnl.Parse(text)
	if err != nil {
		var e *xnl.Error
		if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Code == "" {
			t.Fatalf("%q: %v", text, err)
		}
		return
	}
	plainOf(nodes)
	for _, indent := range []string{"", "  ", "\t"} {
		printed := xnl.Print(nodes, indent)
		again, _, err := xnl.Parse(printed)
		if err != nil || !reflect.DeepEqual(nodes, plainOf(again)) {
			t.Fatalf("%q is printed as %q, which is read as %v, %v", text, printed, again, err)
		}
	}
	if len(warnings) > 0 || strings.HasPrefix(text, "\uFEFF") {
		return
	}
	for _, size := range []int{1, 3, len(text) + 1} {
		var s xnl.Stream
		found := []*xnl.Node{}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			more, err := s.Feed(rest[:n])
			if err != nil {
				t.Fatalf("%q, in pieces of %d: %v", text, size, err)
			}
			found, rest = append(found, more...), rest[n:]
		}
		more, err := s.End()
		if found = append(found, more...); err != nil || !reflect.DeepEqual(nodes, plainOf(found)) {
			t.Fatalf("%q, in pieces of %d: %d nodes, %v, want %d", text, size, len(found), err, len(nodes))
		}
	}
}

func FuzzIdentity(f *testing.F) {
	for _, c := range []string{
		"", "<a>", "<a {} [] ()>", `<a k=-0.0 "b c"=[1 2.0 1e300 {}] { x = "\r\n\"" }>`, "<a [<b #m>x</#></#m> <c>]>",
		"<t #>\n  a\n b\n  </#>", "<t #>hi<#>", "<!-- c --><a ( <b> <b {x=1}> )>", `<a 'q\'s'='\\'>`, "<a [+1 -1 007]>",
		"<a{x=1}[2](<b>)>", `<a "#"=1 {x="<!--"} #m1></#></#m1>`, "\uFEFF<a>",
	} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, text string) { identity(t, text) })
}

// TestVectorsAreIdentical reads every vector again after printing it.
func TestVectorsAreIdentical(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	for _, c := range append(append(v.Parse, v.Documents...), v.Older...) {
		identity(t, c.Input)
	}
}

// TestDepth: nesting beyond the limit is an error, in every kind of bracket.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"<a [", "<a (", "<a x={y=", "<a x=["} {
		var e *xnl.Error
		if _, _, err := xnl.Parse(strings.Repeat(open, 100_000)); !errors.As(err, &e) {
			t.Errorf("%s: %v", open, err)
		}
	}
	for _, nested := range [][2]string{{"[", "]"}, {"{x=", "}"}} {
		var e *xnl.Error
		text := "<a v=" + strings.Repeat(nested[0], 100_000) + "1" + strings.Repeat(nested[1], 100_000) + ">"
		if _, _, err := xnl.Parse(text); !errors.As(err, &e) || e.Code != xnl.InvalidContent {
			t.Errorf("%s: %v", nested[0], err)
		}
		text = "<a v=" + strings.Repeat(nested[0], 200) + "1" + strings.Repeat(nested[1], 200) + ">"
		if _, _, err := xnl.Parse(text); err != nil {
			t.Errorf("%s: %v", nested[0], err)
		}
	}
}

// TestLinear: texts that make a careless parser look at the same bytes again and again.
func TestLinear(t *testing.T) {
	t.Parallel()
	for name, text := range map[string][3]string{
		"old closers":       {"", "<t #>x<#>", ""},
		"comments":          {"", "<!-- x -->", ""},
		"keys":              {"<a {", " k=1", "}>"},
		"children":          {"<a (", "<b>", ")>"},
		"keys of all kinds": {"<a {", ` "k\n"=1 'l'=2`, "}>"},
		"escapes":           {`<a v="`, `\\`, `">`},
	} {
		hermetic.Linear(t, name, 50_000, func(n int) {
			if _, _, err := xnl.Parse(text[0] + strings.Repeat(text[1], n) + text[2]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestPrintOthers: what a parser never returns is printed as well.
func TestPrintOthers(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		"<!-- note -->":                  &xnl.Node{Kind: xnl.Comment, Text: "note"},
		"<t #t1>a</#>b</#t1>":            &xnl.Node{Kind: xnl.Text, Tag: "t", Text: "a</#>b"},
		"<t #m1>a</#m>b</#m1>":           &xnl.Node{Kind: xnl.Text, Tag: "t", Text: "a</#m>b", Marker: "m"},
		"<t #t>x</#t>":                   &xnl.Node{Kind: xnl.Text, Tag: "t", Text: "x", Marker: "7"},
		"[1 2.0 true null \"a\\\\b\" 3]": []any{int64(1), 2.0, true, nil, `a\b`, 3},
		"<user {  }>":                    &xnl.Node{Tag: "user", Attributes: xnl.Object{}},
	} {
		if got := xnl.Print(v, ""); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := xnl.Record("user", nil); got != "<user {\n\n}>" {
		t.Error(got)
	}
}

// TestStreamRefuses: a stream gives up where no node can begin, and says at its end what is missing.
func TestStreamRefuses(t *testing.T) {
	t.Parallel()
	var s xnl.Stream
	if _, err := s.Feed("<a>\nhere is prose"); err == nil {
		t.Error("prose is accepted")
	}
	var open xnl.Stream
	if nodes, err := open.Feed("<t #>x"); len(nodes) > 0 || err != nil {
		t.Error(nodes, err)
	}
	var e *xnl.Error
	if _, err := open.End(); !errors.As(err, &e) || e.Code != xnl.MismatchedTag {
		t.Error(err)
	}
}

// TestUniqueChild finds children, values and places.
func TestUniqueChild(t *testing.T) {
	t.Parallel()
	root, _, err := xnl.ParseUnique("root", "<a {x=1}> <b s=\"t\">")
	if err != nil {
		t.Fatal(err)
	}
	if len(root.Extend) != 2 || root.Extend[0].Tag != "a" || root.Extend[1].Tag != "b" {
		t.Fatalf("%+v", root)
	}
	x, ok := root.Extend[0].Attributes.Get("x")
	if b := root.Extend[1]; x != int64(1) || !ok || b.Offset != 10 ||
		b.Metadata.String("s") != "t" || b.Metadata.String("none") != "" {
		t.Errorf("%+v", root)
	}
}
