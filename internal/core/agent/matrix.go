package agent

import (
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/kit/setting"
)

// Level says how far an agent does what a flag asks for.
type Level string

// The levels.
const (
	Full    Level = "yes"
	Nearest Level = "nearest" // something similar: see the note
	None    Level = "no"
)

// The features of a matrix. The first five are the shared flags.
const (
	Approval   = "approval"
	Sandbox    = "sandbox"
	Output     = "output"
	Model      = "model"
	Web        = "web"
	Continue   = "continue"      // can it resume the newest session of the directory?
	Provider   = "provider"      // can the model API be chosen?
	APIBase    = "api-base"      // can the API's address be chosen?
	Schema     = "output-schema" // does the agent itself fit its answer to a schema?
	Resume     = "resume"        // can it resume an earlier session?
	SessionID  = "session-id"    // can we choose the id?
	Ask        = "ask"           // can it ask a person?
	RepoConfig = "repo-config"   // can a repository's configuration change what it does?
	Denials    = "denials"       // are denied tools known after the run?
	Records    = "records"       // does it keep a transcript that we can read?
	ACP        = "acp"           // does it speak the Agent Client Protocol?
)

// Matrix describes what an agent can do. It drives the translation of flags, and help, docs and `agents show` print it.
type Matrix struct {
	Measured string // the version that every cell was tested with
	Limit    Limit
	Rows     []Row
}

// Limit is the longest one-shot prompt. Zero means unknown.
type Limit struct {
	Characters int64
	Bytes      int64
	Note       string // what happens to a longer prompt
}

// Row is one feature with one value. Features without values have one row, with an empty Value.
type Row struct {
	Feature     string
	Value       string
	Interactive Cell
	OneShot     Cell
}

// Cell holds the arguments that are sent to an agent, and their effect.
type Cell struct {
	Level Level
	Args  []string // sent if a person asked for it
	// sent otherwise, in a form that the passthrough can override; nil means Args, and an empty slice means nothing
	Weak  []string
	Env   []string // NAME=value
	Note  string   // for people, a phrase
	Needs []string // the programs that it needs
	Fix   string   // of the level None: how a person can change that
}

// Cell returns a cell of the matrix. A missing cell has the level None.
func (m Matrix) Cell(feature, value string, mode setting.Mode) Cell {
	i := m.find(feature, value)
	if i < 0 {
		return Cell{Level: None}
	}
	return m.Rows[i].Cell(mode)
}

// Cell returns the cell of a mode.
func (r Row) Cell(mode setting.Mode) Cell {
	if mode == setting.Interactive {
		return r.Interactive
	}
	return r.OneShot
}

// Both returns a row with the same cell in both modes.
func Both(feature, value string, c Cell) Row { return Row{feature, value, c, c} }

// ReadMatrix reads the matrix in a driver's matrix.txt, which describes the version measured. The first line of a cell
// has the feature, its value if there is one, the mode unless the cell is for both, and the level. The indented lines
// below have the rest.
func ReadMatrix(measured, table string) Matrix {
	m := Matrix{Measured: measured}
	var cells []*Cell
	limit := Cell{}
	for line := range strings.Lines(table) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case key == "" || key[0] == '#':
		case line[0] == ' ':
			for _, c := range cells {
				c.read(key, rest)
			}
		case key == "limit":
			cells = []*Cell{&limit}
			for word := range strings.FieldsSeq(rest) {
				unit, number, _ := strings.Cut(word, "=")
				n, _ := strconv.ParseInt(number, 10, 64)
				if unit == "bytes" {
					m.Limit.Bytes = n
				} else {
					m.Limit.Characters = n
				}
			}
		default:
			cells = m.cells(strings.TrimSpace(line))
		}
	}
	m.Limit.Note = limit.Note
	return m
}

// cells returns the cells that a line begins, in an existing row or a new one.
func (m *Matrix) cells(line string) []*Cell {
	line, level, _ := strings.Cut(line, ": ")
	line, mode, _ := strings.Cut(line, ", ")
	feature, value, _ := strings.Cut(line, " ")
	i := m.find(feature, value)
	if i < 0 {
		i, m.Rows = len(m.Rows), append(m.Rows, Row{Feature: feature, Value: value})
	}
	row := &m.Rows[i]
	cells := []*Cell{&row.Interactive, &row.OneShot}
	switch mode {
	case "interactive":
		cells = cells[:1]
	case "one-shot":
		cells = cells[1:]
	}
	for _, c := range cells {
		c.Level = Level(level)
	}
	return cells
}

// read reads an indented line of a cell. A note may have several lines.
func (c *Cell) read(key, rest string) {
	switch key {
	case "args":
		c.Args = strings.Fields(rest)
	case "weak":
		c.Weak = strings.Fields(rest)
	case "env":
		c.Env = append(c.Env, rest)
	case "needs":
		c.Needs = strings.Fields(rest)
	case "note":
		c.Note = strings.TrimSpace(c.Note + " " + rest)
	}
}

// Set gives a row of the matrix the same cell in both modes.
func (m Matrix) Set(feature, value string, c Cell) {
	m.Edit(feature, value, func(old *Cell) { *old = c })
}

// Edit changes both cells of a row, if there is one.
func (m Matrix) Edit(feature, value string, edit func(*Cell)) {
	if i := m.find(feature, value); i >= 0 {
		edit(&m.Rows[i].Interactive)
		edit(&m.Rows[i].OneShot)
	}
}

func (m Matrix) find(feature, value string) int {
	return slices.IndexFunc(m.Rows, func(r Row) bool { return r.Feature == feature && r.Value == value })
}
