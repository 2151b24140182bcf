package literal

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseJSON5ReadsWhatPeopleWrite(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{}`, `{}`},
		{"\uFEFF{}", `{}`},
		{` [ ] `, `[]`},
		{`null`, `null`},
		{`[true, false, null,]`, `[true,false,null]`},
		{`{a: 1, $b_2: 'x', "c": "y",}`, `{"a":1,"$b_2":"x","c":"y"}`},
		{`{größe: 1}`, `{"größe":1}`},
		{"// first\n{/* in */ a /* b */ : /* c */ 1 // end\n}", `{"a":1}`},
		{`[0x1F, 0XaB, -0x10, +0x1]`, `[31,171,-16,1]`},
		{`[.5, 5., -.5, +1.5, 5.e3, 1e3, 1E-3]`, `[0.5,5,-0.5,1.5,5e3,1e3,1E-3]`},
		{"'a\\\nb\\\r\nc'", `"abc"`},
		{`'it\'s "so"'`, `"it's \"so\""`},
		{`"\x41\u00e9\ud83d\ude00\v\0"`, `"Aé😀\u000b\u0000"`},
		{`"\ud800"`, `"` + "\uFFFD" + `"`},
		{`"\ud800A"`, `"` + "\uFFFD" + `A"`},
		{`'<a&b>'`, `"<a&b>"`},
		{`[12345678901234567890123]`, `[12345678901234567890123]`},
		{`{true: 1, Infinity: 2}`, `{"true":1,"Infinity":2}`},
	} {
		v, err := ParseJSON5([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := string(v.JSON()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
		if !json.Valid(v.JSON()) {
			t.Errorf("%s: JSON() is not JSON: %s", c.in, v.JSON())
		}
	}
}

func TestParseJSON5NamesThePlace(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, `1:1: expected a value, found end of input`},
		{`{"a": }`, `1:7: expected a value, found '}'`},
		{"{\n  \"a\" 1}", `2:7: expected ':' after the key "a", found '1'`},
		{`{"é": 1 "b": 2}`, `1:9: expected ',' or '}' after a member, found '"'`},
		{`[1, 2`, `1:6: expected ',' or ']' after an item, found end of input`},
		{`[1, 2}`, `1:6: expected ',' or ']' after an item, found '}'`},
		{`{"a": 1, "a": 2}`, `1:10: key "a" is given twice, first at 1:2`},
		{`{a: 1, 'a': 2}`, `1:8: key "a" is given twice, first at 1:2`},
		{`[Infinity]`, `1:2: Infinity has no form in JSON`},
		{`[-Infinity]`, `1:2: -Infinity has no form in JSON`},
		{`[NaN]`, `1:2: NaN has no form in JSON`},
		{`[hello]`, `1:2: expected a value, found hello: a string needs quotes`},
		{`[01]`, `1:2: a number must not begin with 0`},
		{`[1.2.3]`, `1:5: expected the end of the number, found '.'`},
		{`[5px]`, `1:3: expected the end of the number, found 'p'`},
		{`[-]`, `1:3: expected a digit, found ']'`},
		{`[1e]`, `1:4: expected a digit of the exponent, found ']'`},
		{`[0x]`, `1:4: expected a hexadecimal digit, found ']'`},
		{`[0x8000000000000000]`, `1:2: the number does not fit in 64 bits`},
		{`{} {}`, `1:4: expected nothing after the value, found '{'`},
		{`/* x`, `1:1: the comment is not closed with */`},
		{"['a\nb']", `1:4: expected ' to close the string, found end of line`},
		{`["a`, `1:4: expected " to close the string, found end of input`},
		{`["\q\u12G4"]`, `1:5: the escape needs 4 hexadecimal digits, found 'G'`},
		{`["\1"]`, `1:3: \1 is not an escape`},
		{"[\"\x00\"]", `1:3: the control character U+0000 must be written as an escape`},
		{"[\"\xff\"]", `1:3: byte 0xFF is not UTF-8`},
		{"[\xff]", `1:2: expected a value, found byte 0xFF, which is not UTF-8`},
		{`{,}`, `1:2: expected a key or '}', found ','`},
		{`[1,,2]`, `1:4: expected a value, found ','`},
		{strings.Repeat("[", 201), `1:201: nested deeper than 200 levels`},
	} {
		_, err := ParseJSON5([]byte(c.in))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.in, err, c.want)
		}
	}
}

func TestValuesKnowTheirPlaces(t *testing.T) {
	v, err := ParseJSON5([]byte("{\n  ä: [1, {b: 'ü'}], c: 2}"))
	if err != nil {
		t.Fatal(err)
	}
	b, ok := v.Lookup("ä", "1", "b")
	if !ok || b.Pos != (Pos{Line: 2, Col: 14, Offset: 16}) || b.End != 20 {
		t.Errorf("got %+v", b)
	}
	c, ok := v.Member("c")
	if !ok || c.KeyPos.String() != "2:21" {
		t.Errorf("got %+v", c)
	}
	if _, ok := v.Lookup("ä", "2"); ok {
		t.Error("found an item that is not there")
	}
	want := map[string]any{"ä": []any{int64(1), map[string]any{"b": "ü"}}, "c": int64(2)}
	if diff := cmp.Diff(want, v.Any()); diff != "" {
		t.Error(diff)
	}
}

func TestAnyLosesNothing(t *testing.T) {
	v, err := ParseJSON5([]byte(`[9223372036854775807, 9223372036854775808, 1.5, 1e999, 0x10]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []any{int64(9223372036854775807), json.Number("9223372036854775808"), 1.5, json.Number("1e999"), int64(16)}
	if diff := cmp.Diff(want, v.Any()); diff != "" {
		t.Error(diff)
	}
}

func TestRepair(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{a: 1}`, `{"a":1}`},
		{`{"a": 1`, `{"a":1}`},
		{`{"a": [1, {"b": 2`, `{"a":[1,{"b":2}]}`},
		{`{"a": "b`, `{"a":"b"}`},
		{`{"a": ["b`, `{"a":["b"]}`},
		{"{\"a\": \"b\n}", `{"a":"b"}`},
		{`{"a": 1 "b": 2}`, `{"a":1,"b":2}`},
		{"{\"a\": 1 // one\n \"b\": 2}", `{"a":1,"b":2}`},
		{`{"a": [1, 2}`, `{"a":[1,2]}`},
		{`{"a": 1,`, `{"a":1}`},
		{`[1 2 3]`, ``},
		{`{"a"`, ``},
		{`{"a": `, ``},
		{`hello`, ``},
		{``, ``},
		{`{"a": 1, "a": 2}`, ``},
	} {
		got, ok := Repair([]byte(c.in))
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %q %v, want %q", c.in, got, ok, c.want)
		}
	}
}

func FuzzJSON5(f *testing.F) {
	for _, seed := range []string{
		`{"a": [1, 2.5e-3, "x\u00e9\ud83d\ude00\n", null, true]}`, `{a: 'b', /* c */ d: +.5,}`, `"\ud800\udbff"`,
		`[0x1F, -0]`, `{"a": "b`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseJSON5(data)
		if err == nil && !json.Valid(v.JSON()) {
			t.Fatalf("%q: JSON() is not JSON: %s", data, v.JSON())
		}
		if fixed, ok := Repair(data); ok != (fixed != "") || ok && !json.Valid([]byte(fixed)) {
			t.Fatalf("%q repaired to %q", data, fixed)
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		var want any
		if decoder.Decode(&want) != nil || !utf8.Valid(data) {
			return
		}
		if _, end := decoder.Token(); end != io.EOF {
			return
		}
		if err != nil {
			if message := err.Error(); strings.Contains(message, "twice") || strings.Contains(message, "deeper") {
				return // stricter on purpose
			}
			t.Fatalf("%q is JSON: %v", data, err)
		}
		if got := asDecoded(v); !reflect.DeepEqual(got, want) { // go-cmp takes 2^depth steps
			t.Fatalf("%q: got %#v, want %#v", data, got, want)
		}
	})
}

// asDecoded returns the value as encoding/json gives it with UseNumber.
func asDecoded(v Value) any {
	switch v.Kind {
	case Number:
		return json.Number(v.Num)
	case Array:
		items := []any{}
		for _, item := range v.Items {
			items = append(items, asDecoded(item))
		}
		return items
	case Object:
		members := map[string]any{}
		for _, m := range v.Members {
			members[m.Key] = asDecoded(m.Value)
		}
		return members
	}
	return v.Any()
}
