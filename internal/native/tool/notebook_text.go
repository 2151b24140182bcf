package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/text"
)

// notebook is the text of a .ipynb file, with the positions of its cells. Changes are made in the text, so that
// everything else stays the same, byte for byte.
type notebook struct {
	text        []byte
	cells       []spot
	open, close int    // where the list of cells begins, and its closing bracket
	newline     string // text between members, empty in a notebook on one line
	indent      string // indentation of one level
	colon       string
	minor       bool // cells have ids
}

func parseNotebook(text []byte) (*notebook, error) {
	if !json.Valid(text) {
		return nil, errors.New("it is not valid JSON")
	}
	n := &notebook{text: text, open: -1}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("it is not a JSON object")
	}
	n.format(int(decoder.InputOffset()))
	var major, minor int
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		switch key {
		case "cells":
			err = n.readCells(decoder)
		case "nbformat":
			err = decoder.Decode(&major)
		case "nbformat_minor":
			err = decoder.Decode(&minor)
		default:
			var skipped json.RawMessage
			err = decoder.Decode(&skipped)
		}
		if err != nil {
			return nil, err
		}
	}
	if n.open < 0 {
		return nil, errors.New("it has no cells")
	}
	n.minor = major > 4 || major == 4 && minor >= 5
	return n, nil
}

func (n *notebook) readCells(decoder *json.Decoder) error {
	token, err := decoder.Token()
	if err != nil || token != json.Delim('[') {
		return errors.New("its cells are not a list")
	}
	n.open, n.cells = int(decoder.InputOffset()), nil // the last duplicate wins
	for decoder.More() {
		var cell json.RawMessage
		if err := decoder.Decode(&cell); err != nil {
			return err
		}
		if cell[0] != '{' {
			return errors.New("one of its cells is not an object")
		}
		end := int(decoder.InputOffset())
		n.cells = append(n.cells, spot{end - len(cell), end})
	}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	n.close = int(decoder.InputOffset()) - 1
	return nil
}

// format detects the layout of the file from what follows its first brace.
func (n *notebook) format(at int) {
	rest := n.text[at:]
	blank := string(rest[:len(rest)-len(bytes.TrimLeft(rest, " \t\r\n"))])
	if i := strings.LastIndexByte(blank, '\n'); i >= 0 {
		n.newline, n.indent = "\n", blank[i+1:]
		if strings.Contains(blank, "\r\n") {
			n.newline = "\r\n"
		}
	}
	n.colon = ": "
	if n.newline == "" && !bytes.Contains(rest[:min(len(rest), 200)], []byte(`": `)) {
		n.colon = ":"
	}
}

// find returns the number of the cell with an id or a number, which may have the form cell-3.
func (n *notebook) find(cell string) int {
	for i := range n.cells {
		if n.id(i) == cell {
			return i
		}
	}
	i, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(cell), "cell-"))
	if err != nil || i < 0 || i >= len(n.cells) {
		return -1
	}
	return i
}

func (n *notebook) id(i int) string {
	var cell struct {
		ID json.RawMessage `json:"id"`
	}
	var id string
	if json.Unmarshal(n.raw(i), &cell) != nil || json.Unmarshal(cell.ID, &id) != nil {
		return ""
	}
	return id
}

func (n *notebook) raw(i int) []byte { return n.text[n.cells[i].start:n.cells[i].end] }

func (n *notebook) choices() string {
	const most = 20
	if len(n.cells) == 0 {
		return "It has no cells; insert one without cell_id."
	}
	var ids []string
	for i := range n.cells[:min(len(n.cells), most)] {
		if id := n.id(i); id != "" {
			ids = append(ids, id)
		}
	}
	hint := fmt.Sprintf("Its cells are 0 to %d", len(n.cells)-1)
	if len(ids) > 0 {
		hint += ", with the ids " + strings.Join(ids, ", ")
	}
	return hint + "."
}

// newCell returns a cell with its members in Jupyter's order.
func (n *notebook) newCell(kind, source string) []member {
	cell := []member{{"cell_type", quoted(kind)}}
	if kind == "code" {
		cell = append(cell, member{"execution_count", json.RawMessage("null")})
	}
	if n.minor {
		cell = append(cell, member{"id", quoted(ident.Hex(4))})
	}
	cell = append(cell, member{"metadata", json.RawMessage("{}")})
	if kind == "code" {
		cell = append(cell, member{"outputs", json.RawMessage("[]")})
	}
	return append(cell, member{"source", n.source(source, false)})
}

// changed returns the cell with another source. It drops the output of the old one.
func (n *notebook) changed(i int, kind, source string) ([]member, error) {
	cell, err := objectMembers(n.raw(i))
	if err != nil {
		return nil, err
	}
	set := func(name string, value json.RawMessage) {
		if at := slices.IndexFunc(cell, func(m member) bool { return m.name == name }); at >= 0 {
			cell[at].value = value
			return
		}
		at := slices.IndexFunc(cell, func(m member) bool { return m.name > name })
		if at < 0 {
			at = len(cell)
		}
		cell = slices.Insert(cell, at, member{name, value})
	}
	was := ""
	_ = json.Unmarshal(valueOf(cell, "cell_type"), &was)
	kind = cmp.Or(kind, was)
	old := valueOf(cell, "source")
	set("source", n.source(source, len(old) > 0 && old[0] == '"'))
	if kind != was {
		set("cell_type", quoted(kind))
	}
	if kind == "code" {
		set("execution_count", json.RawMessage("null"))
		set("outputs", json.RawMessage("[]"))
	} else {
		cell = slices.DeleteFunc(cell, func(m member) bool {
			return m.name == "execution_count" ||
				m.name == "outputs"
		})
	}
	return cell, nil
}

// source returns the content of a cell: a list of its lines, as Jupyter writes it, or one string if the cell had one.
func (n *notebook) source(text string, whole bool) json.RawMessage {
	if whole {
		return quoted(text)
	}
	var b bytes.Buffer
	b.WriteByte('[')
	lines := slices.Collect(strings.SplitAfterSeq(text, "\n"))
	if len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		n.gap(&b, 4, i > 0)
		b.Write(quoted(line))
	}
	if len(lines) > 0 {
		n.gap(&b, 3, false)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// gap begins a new line at a level, or writes the space after a comma in a notebook on one line.
func (n *notebook) gap(b *bytes.Buffer, level int, comma bool) {
	if n.newline == "" {
		if comma && n.colon == ": " {
			b.WriteByte(' ')
		}
		return
	}
	b.WriteString(n.newline)
	b.WriteString(strings.Repeat(n.indent, level))
}

func (n *notebook) render(cell []member) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range cell {
		if i > 0 {
			b.WriteByte(',')
		}
		n.gap(&b, 3, i > 0)
		b.Write(quoted(m.name))
		b.WriteString(n.colon)
		b.Write(m.value)
	}
	n.gap(&b, 2, false)
	b.WriteByte('}')
	return b.Bytes()
}

func (n *notebook) replace(i int, cell []byte) []byte {
	return slices.Concat(n.text[:n.cells[i].start], cell, n.text[n.cells[i].end:])
}

func (n *notebook) insert(i int, cell []byte) []byte {
	var gap, last bytes.Buffer
	n.gap(&gap, 2, true)
	n.gap(&last, 1, false)
	switch {
	case len(n.cells) == 0:
		gap.Reset()
		n.gap(&gap, 2, false)
		return slices.Concat(n.text[:n.open], gap.Bytes(), cell, last.Bytes(), n.text[n.close:])
	case i == len(n.cells):
		end := n.cells[i-1].end
		return slices.Concat(n.text[:end], []byte(","), gap.Bytes(), cell, n.text[end:])
	}
	start := n.cells[i].start
	return slices.Concat(n.text[:start], cell, []byte(","), gap.Bytes(), n.text[start:])
}

func (n *notebook) remove(i int) []byte {
	switch {
	case len(n.cells) == 1:
		return slices.Concat(n.text[:n.open], n.text[n.close:])
	case i == len(n.cells)-1:
		return slices.Concat(n.text[:n.cells[i-1].end], n.text[n.cells[i].end:])
	}
	return slices.Concat(n.text[:n.cells[i].start], n.text[n.cells[i+1].start:])
}

// quoted returns s as JSON. It cannot fail.
func quoted(s string) json.RawMessage {
	data, _ := text.JSON(s)
	return data
}
