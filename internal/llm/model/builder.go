package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// Builder assembles an answer from its pieces. Pieces of several blocks may come in any order: a key of the wire
// identifies a block, and the first piece of a block decides its position.
type Builder struct {
	Emit   func(Piece) // gets text, thinking and searches; may be nil
	Wire   string      // marks opaque data
	blocks []*part
	byKey  map[any]*part
	heard  bool
}

type part struct {
	block Block
	text  strings.Builder // of text and thinking, or a call's arguments
	whole json.RawMessage // a call's arguments, if they come as a whole
}

func (b *Builder) part(key any, kind Kind) *part {
	if p, ok := b.byKey[key]; ok && p.block.Kind == kind {
		return p
	}
	p := &part{block: Block{Kind: kind}}
	if b.byKey == nil {
		b.byKey = map[any]*part{}
	}
	b.blocks, b.byKey[key] = append(b.blocks, p), p
	return p
}

// AddText adds to a block of text or thinking.
func (b *Builder) AddText(key any, kind Kind, text string) {
	p := b.part(key, kind)
	if text = strings.ToValidUTF8(text, "\uFFFD"); text == "" {
		return
	}
	p.text.WriteString(text)
	b.heard = true
	if b.Emit != nil {
		b.Emit(Piece{Kind: kind, Text: text})
	}
}

// Searched reports a search that the API made.
func (b *Builder) Searched(s Search) {
	if b.Emit != nil {
		b.Emit(Piece{Kind: Searched, Search: &s})
	}
}

// Call sets the id and the name of a call, if they are not empty.
func (b *Builder) Call(key any, id, name string) {
	p := b.part(key, Call)
	p.block.ID = cmp.Or(id, p.block.ID)
	p.block.Name = cmp.Or(name, p.block.Name)
}

// Arguments adds a fragment of a call's arguments.
func (b *Builder) Arguments(key any, fragment string) { b.part(key, Call).text.WriteString(fragment) }

// Input sets the complete arguments of a call, which override fragments.
func (b *Builder) Input(key any, input json.RawMessage) { b.part(key, Call).whole = input }

// Opaque stores data that must go back to the API with a block.
func (b *Builder) Opaque(key any, kind Kind, data json.RawMessage) {
	p := b.part(key, kind)
	p.block.Opaque, p.block.Wire = data, b.Wire
}

// Emitted reports whether Emit was called.
func (b *Builder) Emitted() bool { return b.heard }

// Texts returns the blocks of text and thinking so far, without calls, which may be incomplete.
func (b *Builder) Texts() []Block { return b.collect(false) }

// Blocks returns the whole answer. Arguments that are not a JSON object become Broken. It leaves out empty blocks.
func (b *Builder) Blocks() []Block { return b.collect(true) }

func (b *Builder) collect(calls bool) []Block {
	var all []Block
	for _, p := range b.blocks {
		block := p.block
		if block.Kind != Call {
			block.Text = p.text.String()
			if block.Text != "" || block.Opaque != nil {
				all = append(all, block)
			}
			continue
		}
		if !calls {
			continue
		}
		raw := p.whole
		if raw == nil {
			raw = json.RawMessage(p.text.String())
		}
		block.Input, block.Broken = object(raw)
		all = append(all, block)
	}
	return all
}

// Unfinished marks the last call as broken if only its name came before the answer was cut off. Then {} does not mean
// that it has no arguments.
func Unfinished(blocks []Block) {
	if n := len(blocks) - 1; n >= 0 && blocks[n].Kind == Call && string(blocks[n].Input) == "{}" &&
		blocks[n].Broken == "" {
		blocks[n].Broken = CutOff
	}
}

// object returns the arguments as a JSON object. Empty arguments become {}.
func object(raw []byte) (input json.RawMessage, broken string) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return json.RawMessage("{}"), ""
	}
	if raw[0] == '{' && json.Valid(raw) {
		return bytes.ToValidUTF8(raw, []byte("\uFFFD")), ""
	}
	return json.RawMessage("{}"), strings.ToValidUTF8(string(raw), "\uFFFD")
}
