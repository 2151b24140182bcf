package model_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"omniagent/internal/llm/model"
)

func TestBuilder(t *testing.T) {
	var heard []model.Piece
	b := model.Builder{Wire: "w", Emit: func(p model.Piece) { heard = append(heard, p) }}
	if b.Emitted() || b.Blocks() != nil || b.Texts() != nil {
		t.Error("something was said before anything was")
	}
	b.Call("c2", "id2", "")
	b.AddText(1, model.Thinking, "th")
	b.AddText(0, model.Text, "")
	b.AddText(1, model.Thinking, "ink")
	b.Arguments("c1", `{"a":`)
	b.AddText(0, model.Text, "te\xff")
	b.Call("c1", "id1", "one")
	b.AddText(9, model.Text, "")
	b.Arguments("c1", `1}`)
	b.Call("c2", "", "two")
	b.Opaque(1, model.Thinking, json.RawMessage(`"seal"`))
	b.Opaque(5, model.Text, json.RawMessage(`{}`))
	b.Input("c3", json.RawMessage(`{"b":2}`))
	b.Arguments("c3", "left out")
	b.Arguments("c4", " [1] ")
	want := []model.Block{
		{Kind: model.Call, ID: "id2", Name: "two", Input: json.RawMessage(`{}`)},
		{Kind: model.Thinking, Text: "think", Opaque: json.RawMessage(`"seal"`), Wire: "w"},
		{Kind: model.Text, Text: "te\uFFFD"},
		{Kind: model.Call, ID: "id1", Name: "one", Input: json.RawMessage(`{"a":1}`)},
		{Kind: model.Text, Opaque: json.RawMessage(`{}`), Wire: "w"},
		{Kind: model.Call, Input: json.RawMessage(`{"b":2}`)},
		{Kind: model.Call, Input: json.RawMessage(`{}`), Broken: "[1]"},
	}
	if got := b.Blocks(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := b.Texts(); !reflect.DeepEqual(got, []model.Block{want[1], want[2], want[4]}) {
		t.Errorf("%+v", got)
	}
	if want := []model.Piece{
		{Kind: model.Thinking, Text: "th"}, {Kind: model.Thinking, Text: "ink"}, {Kind: model.Text, Text: "te\uFFFD"},
	}; !b.Emitted() ||
		!reflect.DeepEqual(heard, want) {
		t.Errorf("%+v", heard)
	}
	err := b.Failure(errors.New("x"), model.Usage{Input: 3})
	var e *model.Error
	if !errors.As(err, &e) || !e.Emitted || len(e.Partial) != 3 || e.Usage.Input != 3 || e.Trouble != model.Broken {
		t.Errorf("%#v", err)
	}
}

// Whatever comes as arguments, the call has an object, and what came is not lost.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		"", " ", "{}", `{"a":1}`, `{"a":`, "[]", "null", "7", "\"{}\"", "{\"a\":\"\xff\"}",
		"{}{}", `{"a":1,"a":2}`,
	} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, s string, at int) {
		cut := 0
		if at > 0 {
			cut = at % (len(s) + 1)
		}
		var b model.Builder
		b.Call(0, "id", "name")
		b.Arguments(0, s[:cut])
		b.Arguments(0, s[cut:])
		call := b.Blocks()[0]
		var object map[string]any
		if err := json.Unmarshal(call.Input, &object); err != nil || object == nil {
			t.Fatalf("%q became %s", s, call.Input)
		}
		var given map[string]any
		s = strings.TrimSpace(s)
		ok := s == "" || json.Unmarshal([]byte(s), &given) == nil && given != nil
		if ok != (call.Broken == "") {
			t.Fatalf("%q is broken: %q", s, call.Broken)
		}
		if !utf8.ValidString(s) {
			return // bytes that are no text are replaced
		}
		if call.Broken == "" && !reflect.DeepEqual(given, object) && len(given) > 0 {
			t.Fatalf("%q became %s", s, call.Input)
		}
	})
}

func TestComplete(t *testing.T) {
	q := model.Request{Messages: []model.Message{{
		Role:   model.Assistant,
		Blocks: []model.Block{{Kind: model.Call, ID: "call_3"}, {Kind: model.Call, ID: "x"}},
	}}}
	a := model.Answer{Blocks: []model.Block{
		{Kind: model.Text, Text: "12345"},
		{Kind: model.Call},
		{Kind: model.Call, ID: "x"},
		{Kind: model.Call, ID: "own"},
	}}
	a.Complete(q, "call")
	seen := map[string]bool{"": true, "call_3": true, "x": true}
	for _, c := range a.Calls() {
		if seen[c.ID] {
			t.Errorf("%q is there twice", c.ID)
		}
		seen[c.ID] = true
	}
	if !seen["own"] || a.Usage != (model.Usage{Input: 1, Output: 2, Estimated: true}) {
		t.Errorf("%+v", a)
	}
	a.Usage = model.Usage{Output: 2}
	a.Complete(q, "call")
	if a.Usage != (model.Usage{Input: 1, Output: 2, Estimated: true}) { // what the API told counts
		t.Errorf("%+v", a.Usage)
	}
}

func TestEstimate(t *testing.T) {
	for want, q := range map[int64]model.Request{
		0: {},
		1: {System: []string{"äöü"}},
		3: {
			System:   []string{"four"},
			Messages: []model.Message{{Blocks: []model.Block{{Kind: model.Text, Text: "five5"}}}},
		},
		1502: {Messages: []model.Message{{Blocks: []model.Block{{
			Kind: model.Result, Text: "result", Parts: []model.Block{{Kind: model.Image, Data: make([]byte, 99)}},
		}}}}},
	} {
		if got := model.Estimate(q); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
