package webpage

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"omniagent/internal/testkit/hermetic"
)

func render(t testing.TB, page string) string {
	t.Helper()
	base, err := url.Parse("https://example.org/dir/page")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := toText(page, base, MaxText)
	return text
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"<h1>A</h1><h2>B <a href='#b'></a></h2><h3></h3>x":    "# A\n\n## B\n\nx",
		"a  b\n\tc&nbsp;d<br>e":                               "a b c d\ne",
		"<p>one<p>two</p></p><div>three</div><div>four</div>": "one\n\ntwo\n\nthree\nfour",
		"a<b>b</b>c <i>d</i>":                                 "abc d",
		"<ul><li>a<li>b<ol start=9><li>x<li>y</ol><li>c</ul>d": "- a\n- b\n  9. x\n  10. " +
			"y\n- c\n\nd",
		"<ul><li><p>a</p><p>b</p></li></ul>": "- a\n\n  b",
		"<blockquote>a<p>b</blockquote>c":    "> a\n>\n> b\n\nc",
		"see <a href='../x y?a=1&copy=2&amp;d=(3)'>the <b>link</b></a>.": "see [the " +
			"link](https://example.org/x%20y?a=1&copy=2&d=%283%29).",
		"<base href='https://other.org/'><a href=z>z</a>":                                 "[z](https://other.org/z)",
		"<a href='javascript:x()'>a</a> <a href='#x'>b</a> <a>c</a> <a href=data:x>d</a>": "a b c d",
		"<a href=/x><img src=i.png></a><a href=/y>y<a href=/z>z":                          "[y](https://example.org/y)[z](https://example.org/z)",
		"<img alt='two  words' src=/i.png>":                                               "![two words](https://example.org/i.png)",
		"run <code>go  test</code> or <code></code><kbd>x</kbd>":                          "run `go test` or `x`",
		"<pre>\n  a &lt; b\n\n<b>c</b>  \n</pre>d": "```\n  a < " +
			"b\n\nc\n```\n\nd",
		"<pre><code class='x language-go'>f()</code></pre>": "```go\nf()\n```",
		"<pre>```</pre>":                "````\n```\n````",
		"<ul><li>x<pre>a\nb</pre></ul>": "- x\n\n  ```\n  a\n  b\n  ```",
		"<table><tr><th>A<th>B<tr><td>1<td>2<tr><td><td><p>4</p></table>e": "A | B\n--- | ---\n1 | 2\n| 4\n\ne",
		"<table><tr><td><div>a</div><td><p>b</p><td>c</tr></table>":        "a | b | c",
		"<script>if (a<b) " +
			"'</p>'</script><style>x</style>a<template>no</template><svg><title>t</title></svg><select><option>o</select>b": "ab",

		"<script>x</scripty></script >a":                            "a",
		"a<!-- <p> -- > -->b<!-->c<!---->d<!doctype x><?pi?></ x>e": "abcde",
		"1 < 2 <3 a<b":                                            "1 < 2 <3 a",
		"<p title='a>b' x=\"c>d\" y=e/f>t</P >u":                  "t\n\nu",
		"&lt;p&gt; &amp;amp; &#x41;&#66; &eacute; &nosuch; &copy": "<p> &amp; AB é &nosuch; ©",
		"<dl><dt>T<dd>d<dd></dl>":                                 "T\n: d",
		"a<hr>b":                                                  "a\n\n---\n\nb",
		"</ul></li></table></pre></a></blockquote></td>x":         "x",
		"<td>a<td>b":                                              "a b",
	} {
		if got := render(t, page); got != want {
			t.Errorf("%s\n got %q\nwant %q", page, got, want)
		}
	}
	title, _, _ := toText("<title>a\n &amp; <b>b</title><svg><title>c</title></svg>", nil, 100)
	if title != "a & <b>b" {
		t.Errorf("title %q", title)
	}
}

func TestLongPagesAreCut(t *testing.T) {
	t.Parallel()
	_, text, cut := toText(strings.Repeat("<p>paragraph</p>", 10_000), nil, 1000)
	if !cut || len(text) < 1000 || len(text) > 1200 {
		t.Errorf("%d bytes, cut %v", len(text), cut)
	}
}

// TestTimeGrowsWithTheLength has pages that are made to take long.
func TestTimeGrowsWithTheLength(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{
		"<", "<a", "<a ", "<!--", "<!-- --", "</", "&", "&#", "&amp", "<b x=", "<b x='", "<title>", "<script>",
		"<script></", "<div>", "<ul><li>", "<table><tr><td>",
		"<blockquote>", "<a href=x>", "<pre>", "<code>", "</li>", "<svg>", "<td>", "<p>\n", "-", "<![CDATA[",
		"<x a=1 b=2 c=3 ", "`", "<pre>`</pre>", "<pre><div>",
	} {
		base, _ := url.Parse("https://example.org/")
		var text string
		hermetic.Linear(t, unit, 1<<17, func(n int) {
			_, text, _ = toText(strings.Repeat(unit, n/len(unit)), base, 64<<20)
		})
		if len(text) > 64<<20 {
			t.Errorf("%q made %d bytes", unit, len(text))
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	seeds, _ := filepath.Glob("testdata/*.html")
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("<p>a<table><tr><td><ul><li><pre>x</pre><a href=y>z")
	f.Add("<!--<script></script><title>&#0;&#x110000;</title>")
	f.Fuzz(func(t *testing.T, page string) {
		if len(page) > 1<<16 {
			return
		}
		text := render(t, strings.ToValidUTF8(page, "\uFFFD"))
		if !utf8.ValidString(text) {
			t.Errorf("%q is not valid UTF-8", text)
		}
		if len(text) > 100*len(page)+2*maxAddress {
			t.Errorf("%d bytes of %d", len(text), len(page))
		}
		decoded, _ := decode([]byte(page), "", true)
		if !utf8.ValidString(decoded) {
			t.Errorf("%q is not valid UTF-8", decoded)
		}
	})
}
