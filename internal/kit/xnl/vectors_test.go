package xnl_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/kit/xnl"
)

// vectors were observed on seed 2's own implementation; testdata/vectors.json has no more than the parts used here.
type vectors struct {
	Parse     []parseCase `json:"xnl_parse"`
	Documents []parseCase `json:"xnl_parse_documents"`
	Older     []parseCase `json:"xnl_parse_older_dialect"`
	Print     []struct {
		ID      string
		Value   json.RawMessage
		Options struct {
			Pretty bool
			Indent int
		}
		Output string
	} `json:"xnl_stringify"`
	History []struct {
		ID      string
		Message json.RawMessage
		Output  string
	} `json:"history_record"`
	CLI []struct {
		Entry  struct{ ID, Role, Text string }
		Output string
	} `json:"cli_history_record"`
}

type parseCase struct {
	ID, Mode, Name, Input string
	OK                    json.RawMessage `json:"ok"`
	Error                 *struct {
		Code, Message          string
		Position, Line, Column int
	}
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// plain returns a value as encoding/json reads it.
func plain(t *testing.T, v any) (read any) {
	t.Helper()
	raw, ok := v.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return read
}

// parse reads a text in a mode and returns the outcome in the form of the vectors.
func (c parseCase) parse() (outcome any, err error) {
	type one struct {
		Node     *xnl.Node     `json:"node"`
		Warnings []xnl.Warning `json:"warnings"`
	}
	switch c.Mode {
	case "single":
		n, w, err := xnl.ParseSingle(c.Input)
		return one{n, w}, err
	case "unique":
		n, w, err := xnl.ParseUnique(c.Name, c.Input)
		return one{n, w}, err
	}
	n, w, err := xnl.Parse(c.Input)
	return struct {
		Nodes    []*xnl.Node   `json:"nodes"`
		Warnings []xnl.Warning `json:"warnings"`
	}{n, w}, err
}

func (c parseCase) check(t *testing.T) {
	t.Helper()
	got, err := c.parse()
	if c.Error == nil {
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
		} else if got, want := plain(t, got), plain(t, c.OK); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\nwant %v", c.ID, got, want)
		}
		return
	}
	var e *xnl.Error
	if !errors.As(err, &e) {
		t.Errorf("%s: %v, want %s", c.ID, err, c.Error.Message)
		return
	}
	if e.Code != c.Error.Code || e.Error() != c.Error.Message || e.Position != c.Error.Position ||
		e.Line != c.Error.Line || e.Column != c.Error.Column {
		t.Errorf("%s: %+v, want %+v", c.ID, *e, *c.Error)
	}
}

// TestParse: everything as observed, but what was observed is a mistake of that implementation where differs says so.
func TestParse(t *testing.T) {
	t.Parallel()
	differs := map[string]func(t *testing.T, c parseCase){
		"string-escapes-double": wants(
			`[{"kind":"DataElement","tag":"a","metadata":{"v":"a\nb\tc\"d'e\\f\rgx"}}]`),
		"text-comment-of-s-stripped": wants(
			`[{"kind":"TextElement","tag":"note","metadata":{},"text":"a<!--sS\\-->b"}]`),
		"adjacent-values": fails(xnl.InvalidLiteral), "null-prefix-run-on": fails(xnl.InvalidLiteral),
		"bool-prefix-run-on": fails(xnl.InvalidLiteral),
	}
	for _, c := range readVectors(t).Parse {
		if own := differs[c.ID]; own != nil {
			own(t, c)
			continue
		}
		c.check(t)
	}
}

func wants(nodes string) func(*testing.T, parseCase) {
	return func(t *testing.T, c parseCase) {
		t.Helper()
		got, _, err := xnl.Parse(c.Input)
		if err != nil || !reflect.DeepEqual(plain(t, got), plain(t, json.RawMessage(nodes))) {
			t.Errorf("%s: %v, %v", c.ID, plain(t, got), err)
		}
	}
}

func fails(code string) func(*testing.T, parseCase) {
	return func(t *testing.T, c parseCase) {
		t.Helper()
		var e *xnl.Error
		if _, err := c.parse(); !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %v, want %s", c.ID, err, code)
		}
	}
}

// TestDocuments: a text with a marker may have other closing markers in it.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range readVectors(t).Documents {
		switch c.ID {
		case "guide-shape":
			nodes, _, err := xnl.Parse(c.Input)
			if err != nil || len(nodes) != 1 {
				t.Fatalf("%s: %v", c.ID, err)
			}
			last, _ := nodes[0].Body[len(nodes[0].Body)-1].(*xnl.Node)
			if last == nil || last.Text != "  may hold `</#>` because a marker is used\n  second\n" {
				t.Errorf("%s: %+v", c.ID, last)
			}
		case "detail-doc":
			nodes, _, err := xnl.Parse(c.Input)
			if err != nil || len(nodes) != 3 || !strings.Contains(nodes[1].Text, "})\n</#>\n!unquote_end\n") {
				t.Errorf("%s: %v", c.ID, err)
			}
		default:
			c.check(t)
		}
	}
}

// TestOlderDialect: the closing marker without a slash counts where no other follows.
func TestOlderDialect(t *testing.T) {
	t.Parallel()
	for _, c := range readVectors(t).Older {
		switch c.ID {
		case "init-bare-ident":
			fails(xnl.InvalidLiteral)(t, c)
		case "init-new-close-fails":
			wants(`[{"kind":"TextElement","tag":"note","metadata":{},"text":"hi"}]`)(t, c)
		default:
			c.check(t)
		}
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	for _, c := range readVectors(t).Print {
		v, err := xnl.FromJSON(c.Value)
		if err != nil {
			t.Fatal(err)
		}
		indent := ""
		if c.Options.Pretty {
			indent = strings.Repeat(" ", c.Options.Indent)
		}
		if got := xnl.Print(element(v), indent); got != c.Output {
			t.Errorf("%s:\n%s\nwant\n%s", c.ID, got, c.Output)
		}
	}
}

// element makes nodes of the objects that describe them.
func element(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = element(v[i])
		}
	case xnl.Object:
		for i := range v {
			v[i].Value = element(v[i].Value)
		}
		if nodes, ok := v.Get("nodes"); ok {
			all := []*xnl.Node{}
			list, _ := nodes.([]any)
			for _, one := range list {
				n, _ := one.(*xnl.Node)
				all = append(all, n)
			}
			return all
		}
		if v.String("kind") != "" {
			return nodeOf(v)
		}
	}
	return v
}

func nodeOf(o xnl.Object) *xnl.Node {
	n := &xnl.Node{Tag: o.String("tag"), Text: o.String("text"), Marker: o.String("textMarker")}
	switch o.String("kind") {
	case "TextElement":
		n.Kind = xnl.Text
	case "Comment":
		n.Kind = xnl.Comment
	}
	metadata, _ := o.Get("metadata")
	n.Metadata, _ = metadata.(xnl.Object)
	attributes, _ := o.Get("attributes")
	n.Attributes, _ = attributes.(xnl.Object)
	body, _ := o.Get("body")
	n.Body, _ = body.([]any)
	extend, _ := o.Get("extend")
	if extend, ok := extend.(xnl.Object); ok {
		children, _ := extend.Get("children")
		n.Extend = []*xnl.Node{}
		for _, m := range children.(xnl.Object) {
			child, _ := m.Value.(*xnl.Node)
			n.Extend = append(n.Extend, child)
		}
	}
	return n
}

func TestRecord(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	for _, c := range v.History {
		message, err := xnl.FromJSON(c.Message)
		fields, _ := message.(xnl.Object)
		if err != nil || len(fields) == 0 {
			t.Fatal(c.ID, err)
		}
		if got := xnl.Record(fields.String("role"), fields[1:]); got != c.Output {
			t.Errorf("%s:\n%s\nwant\n%s", c.ID, got, c.Output)
		}
	}
	for _, c := range v.CLI {
		n := &xnl.Node{
			Tag: c.Entry.Role, Metadata: xnl.Object{{Key: "id", Value: c.Entry.ID}},
			Attributes: xnl.Object{{Key: "text", Value: c.Entry.Text}},
		}
		if got := xnl.Print(n, "  "); got != c.Output {
			t.Errorf("%s, want %s", got, c.Output)
		}
	}
}
