package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
)

// read feeds pieces to a parser and lists what came out, and how it ended.
func read(pieces ...[]byte) (events []string, end string) {
	p := parser{each: func(e Event) (bool, error) {
		events = append(events, e.Name+"="+string(e.Data))
		return string(e.Data) == "stop", nil
	}}
	for _, piece := range pieces {
		done, err := p.feed(piece)
		if err != nil {
			return events, trouble0(err)
		}
		if done {
			return events, "done"
		}
	}
	if err := p.end(); err != nil {
		return events, trouble0(err)
	}
	return events, "done"
}

func trouble0(err error) string {
	var e *model.Error
	if !errors.As(err, &e) {
		return "untyped: " + err.Error()
	}
	return string(e.Trouble)
}

func TestParser(t *testing.T) {
	for name, c := range map[string]struct {
		in, end string
		events  []string
	}{
		"usual":                   {"event: a\ndata: 1\n\ndata:2\n\n", "cut", []string{"a=1", "=2"}},
		"carriage returns":        {"event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\r", "cut", []string{"a=1", "b=2"}},
		"byte order mark":         {"\ufeffdata: 1\n\n", "cut", []string{"=1"}},
		"mark before a name":      {"\ufeffevent: a\ndata: 1\n\n\ufeffdata: 2\n\n", "cut", []string{"a=1"}},
		"comments":                {": hello\n\ndata: 1\n: between\ndata: 2\n\n", "cut", []string{"=1\n2"}},
		"lines of data":           {"data: a\ndata:\ndata:  b\n\n", "cut", []string{"=a\n\n b"}},
		"no data":                 {"event: a\n\nevent: b\ndata:\n\ndata: 1\n\n", "cut", []string{"=1"}},
		"id and retry":            {"id: 1\nretry: 5\ndata: 1\n\n", "cut", []string{"=1"}},
		"field without a colon":   {"data\ndata: 1\n\n", "cut", []string{"=\n1"}},
		"stops":                   {"data: stop\n\ndata: 1\n\n", "done", []string{"=stop"}},
		"end without blank line":  {"data: {\"a\":1}", "cut", []string{`={"a":1}`}},
		"end after one line":      {"event: x\ndata: {\"a\":1}\n", "cut", []string{`x={"a":1}`}},
		"end in the middle":       {"data: {\"a\":1", "cut", nil},
		"end that looks whole":    {"data: stop", "cut", nil},
		"end with done":           {"data: [DONE]", "cut", []string{"=[DONE]"}},
		"end with half of done":   {"data: [DON", "cut", nil},
		"end within a field":      {"dat", "cut", nil},
		"end within a mark":       {"\xef\xbb", "cut", nil},
		"nothing":                 {"", "cut", nil},
		"text":                    {"Bad gateway\n", "garbage", nil},
		"text without an end":     {"Bad gateway", "garbage", nil},
		"text with a colon":       {"Error: no upstream\n\n", "garbage", nil},
		"unknown field later":     {"data: 1\nx-new: 2\n\n", "cut", []string{"=1"}},
		"blank lines before":      {"\n\r\n\ndata: 1\n\n", "cut", []string{"=1"}},
		"not UTF-8":               {"data: \xff\xfe\n\n", "cut", []string{"=\xff\xfe"}},
		"NUL":                     {"data: a\x00b\n\n", "cut", []string{"=a\x00b"}},
		"only the space is taken": {"data:\tx\n\ndata:   y\n\n", "cut", []string{"=\tx", "=  y"}},
	} {
		events, end := read([]byte(c.in))
		if !slices.Equal(events, c.events) || end != c.end {
			t.Errorf("%s: %q, %s; want %q, %s", name, events, end, c.events, c.end)
		}
		for i := range len(c.in) {
			got, how := read([]byte(c.in[:i]), []byte(c.in[i:]))
			if !slices.Equal(got, events) || how != end {
				t.Errorf("%s, cut at %d: %q, %s", name, i, got, how)
			}
		}
		var each [][]byte
		for i := range len(c.in) {
			each = append(each, []byte{c.in[i]})
		}
		if got, how := read(each...); !slices.Equal(got, events) || how != end {
			t.Errorf("%s, byte by byte: %q, %s", name, got, how)
		}
	}
}

// A large event is not copied needlessly, does not stay, and one that is too large is refused.
func TestLargeEvents(t *testing.T) {
	for _, lines := range []int{1, 3} {
		var got, sum int
		p := parser{each: func(e Event) (bool, error) {
			got, sum = len(e.Data), bytes.Count(e.Data, []byte("x"))
			return false, nil
		}}
		piece := bytes.Repeat([]byte("x"), 1<<20)
		for range lines {
			_, _ = p.feed([]byte("data: "))
			for range 4 {
				if _, err := p.feed(piece); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = p.feed([]byte("\n"))
		}
		_, _ = p.feed([]byte("\n"))
		if sum != lines*4<<20 || got != sum+lines-1 {
			t.Errorf("%d lines: %d bytes came, %d of them x", lines, got, sum)
		}
		if cap(p.data)+cap(p.line) > 2<<20 {
			t.Errorf("%d bytes stay", cap(p.data)+cap(p.line))
		}
	}
	for _, in := range []string{"data: ", "", "event: ", ": "} {
		p := parser{each: func(Event) (bool, error) { return false, nil }}
		_, err := p.feed([]byte(in))
		n := 0
		for piece := bytes.Repeat([]byte("x"), 1<<20); err == nil && n < 100; n++ {
			_, err = p.feed(piece)
		}
		if err == nil || trouble0(err) != "too-large" || n > 17 {
			t.Errorf("%q: %v after %d MiB", in, err, n)
		}
	}
	p := parser{each: func(Event) (bool, error) { return false, nil }}
	var err error
	n := 0
	for line := []byte("data: " + strings.Repeat("x", 1<<16) + "\n"); err == nil && n < 1000; n++ {
		_, err = p.feed(line)
	}
	if err == nil || trouble0(err) != "too-large" || n > 257 {
		t.Errorf("%v after %d lines", err, n)
	}
}

// reference is the standard's reading of a whole stream, without any regard for how it comes.
func reference(in []byte) (events []string) {
	s := strings.TrimPrefix(string(in), "\ufeff")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(s, "\n")
	var name string
	var data []string
	for _, l := range lines[:len(lines)-1] {
		field, value, _ := strings.Cut(l, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case l == "":
			if strings.Join(data, "\n") != "" {
				events = append(events, name+"="+strings.Join(data, "\n"))
			}
			name, data = "", nil
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		}
	}
	return events
}

func FuzzParser(f *testing.F) {
	for _, s := range []string{
		"event: a\r\ndata: 1\r\n\r\n", "\ufeffdata: a\ndata: b\n\n: c\n", "data: {\"a\":1}", "data: [DONE]\n\n",
		"id\rretry: 1\r\revent:x\rdata\rdata\r\r", "<html>", "{",
	} {
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		whole, end := read(in)
		if end == "done" && !slices.ContainsFunc(whole, func(e string) bool { return strings.HasSuffix(e, "=stop") }) {
			t.Fatalf("%q is whole without its end", in)
		}
		cut := int(at) % (len(in) + 1)
		if split, how := read(in[:cut], in[cut:]); !slices.Equal(split, whole) || how != end {
			t.Fatalf("%q cut at %d: %q, %s; else %q, %s", in, cut, split, how, whole, end)
		}
		if end != "cut" {
			return
		}
		want := reference(in)
		if len(whole) == len(want)+1 { // the last one lacks its end
			_, data, _ := strings.Cut(whole[len(want)], "=")
			if data = strings.TrimSpace(data); !json.Valid([]byte(data)) && data != "[DONE]" {
				t.Fatalf("%q: half an event: %q", in, data)
			}
			whole = whole[:len(want)]
		}
		if !slices.Equal(whole, want) {
			t.Fatalf("%q: %q; the standard: %q", in, whole, want)
		}
	})
}

func BenchmarkParser(b *testing.B) {
	var s bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&s,
			"event: content_block_delta\ndata: "+
				"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word "+
				"%d\"}}\n\n", i)
	}
	b.SetBytes(int64(s.Len()))
	b.ReportAllocs()
	buffer := make([]byte, 16<<10)
	for b.Loop() {
		p := parser{each: func(Event) (bool, error) { return false, nil }}
		for r := bytes.NewReader(s.Bytes()); ; {
			n, err := r.Read(buffer)
			if err == io.EOF {
				break
			}
			if _, err := p.feed(buffer[:n]); err != nil {
				b.Fatal(err)
			}
		}
	}
}
