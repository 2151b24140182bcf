// Package foreignconfig writes one entry into the configuration file of another program, and takes it out again.
//
// It promises that every other byte of the file stays as it is: comments, order, line ends. What it would write is
// known before anything is written, and a file that changed in between is left alone.
//
// It refuses links, files that are not regular, files that cannot be parsed, with the place, and an entry of the same
// name that starts another program, unless the caller says to replace it.
package foreignconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/sys/workspace"
)

// Form is the format of a file.
type Form uint8

// The forms. JSON may have comments. A file of the form Whole contains nothing but our entry.
const (
	JSON Form = iota
	TOML
	Whole
)

// Place is an entry in the configuration of another program.
type Place struct {
	Files       []string // the first one that exists is edited; without any, the first one is made
	Form        Form
	Path        []string // the keys that lead to the entry
	Entry       Entry
	Text        string // of a file that is all ours
	RequiredDir string // of such a file: the directory that has to exist, or the program would not read it
	Reason      string // and why that is so, as a sentence
}

// Entry is the value of a Place: its members in their order.
type Entry []Member

// Member is one member of an Entry: a text, a list of texts, a number, a switch or an object.
type Member struct {
	Key   string
	Value any
}

// EntryOf returns the entry of these names and values, which alternate.
func EntryOf(pairs ...any) (e Entry) {
	for i := 0; i+1 < len(pairs); i += 2 {
		key, _ := pairs[i].(string)
		e = append(e, Member{key, pairs[i+1]})
	}
	return e
}

// MarshalJSON writes an object.
func (e Entry) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for i, m := range e {
		out.WriteByte("{,"[min(i, 1)])
		key, err := json.Marshal(m.Key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, err
		}
		out.Write(append(append(key, ':'), value...))
	}
	if len(e) == 0 {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// starts returns the program that an entry starts: its command, or the first word of it.
func starts(v literal.Value) string {
	command, _ := v.Member("command")
	if command.Value.Kind == literal.Array && len(command.Value.Items) > 0 {
		return command.Value.Items[0].Str
	}
	return command.Value.Str
}

// program returns the name of a program without its directory and extension.
func program(path string) string {
	return strings.TrimSuffix(path[strings.LastIndexAny(path, `/\`)+1:], ".exe")
}

func (e Entry) starts() string {
	text, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	v, _ := literal.ParseJSON5(text)
	return starts(v)
}

// Lines returns what a file with this entry alone would contain.
func (p Place) Lines() (string, error) {
	p.Files, p.RequiredDir = nil, ""
	switch p.Form {
	case Whole:
		return p.Text, nil
	case TOML:
		out, err := p.members(nil)
		return strings.TrimSuffix(string(out), "\n"), err
	}
	out, err := literal.SetJSON(nil, p.Path, p.Entry)
	return strings.TrimSuffix(string(out), "\n"), err
}

// Change is an edit of a file.
type Change struct {
	File        string
	Before      []byte // nil: there was no file
	After       []byte
	RemovesFile bool   // the file is removed
	Previous    string // what the entry started before; empty: there was none
	Unchanged   bool   // nothing has to be written
}

// most is the size up to which a file is edited. Claude Code keeps its history in the same file as its settings.
const most = 64 << 20

// read returns the file to edit and its content, which is nil if there is no file. If there are several, it is the one
// that has the entry already.
func (p Place) read() (file string, data []byte, err error) {
	for _, one := range p.Files {
		info, err := os.Lstat(one)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			to, _ := os.Readlink(one)
			return one, nil, fault.New(fault.Unsafe, "%s is a link to %s, and only files are edited", one, to).
				With("path", one).Hint("write the entry by hand: --dry-run --json has it in data.entry")
		}
		text, err := workspace.ReadFile(one, most)
		if err != nil {
			return one, nil, err
		}
		_, has, err := p.entry(one, text)
		if has || file == "" || err != nil {
			file, data = one, slices.Concat([]byte{}, text)
		}
		if has || err != nil {
			return file, data, err
		}
	}
	return cmp.Or(file, p.Files[0]), data, nil
}

// Install returns the change that writes the entry. An entry that starts the same program is brought up to date, and
// keeps members that are not ours; another one is replaced only if the caller says so.
func (p Place) Install(replace bool) (Change, error) {
	file, data, err := p.read()
	if err != nil {
		return Change{File: file}, err
	}
	change := Change{File: file, Before: data}
	old, found, err := p.entry(file, data)
	if err != nil {
		return change, err
	}
	if found {
		if change.Previous = starts(old); p.Form == Whole {
			change.Previous = file
		}
		if foreign := p.foreign(old, data); foreign && !replace {
			return change, p.taken(file, change.Previous)
		} else if foreign {
			if data, err = p.without(data); err != nil {
				return change, unfit(file, err)
			}
			found = false
		}
	}
	switch {
	case p.Form == Whole && change.Before == nil:
		change.After, err = []byte(p.Text), p.readable()
	case p.Form == Whole:
		change.After = []byte(p.Text)
	case found || p.Form == TOML:
		change.After, err = p.members(data)
	default:
		change.After, err = literal.SetJSON(data, p.Path, p.Entry)
	}
	change.Unchanged = bytes.Equal(change.Before, change.After) && change.Before != nil
	return change, unfit(file, err)
}

// readable refuses a file of our own where the program would not read it.
func (p Place) readable() error {
	if info, err := os.Stat(p.RequiredDir); err == nil && info.IsDir() {
		return nil
	}
	return fault.New(fault.FileMissing, "there is no directory %s: %s", p.RequiredDir, p.Reason).
		With("path", p.RequiredDir).
		Hint("make the directory, or write by hand what --dry-run --json has in data.entry")
}

// Remove returns the change that takes the entry out. An entry of another program goes only if the caller says so.
func (p Place) Remove(replace bool) (Change, error) {
	file, data, err := p.read()
	change := Change{File: file, Before: data, After: data, Unchanged: true}
	if err != nil || data == nil {
		return change, err
	}
	old, found, err := p.entry(file, data)
	if err != nil || !found {
		return change, err
	}
	if change.Previous = starts(old); p.Form == Whole {
		change.Previous = file
	}
	if p.foreign(old, data) && !replace {
		return change, p.taken(file, change.Previous)
	}
	change.Unchanged, change.RemovesFile = false, p.Form == Whole
	change.After, err = p.without(data)
	return change, unfit(file, err)
}

// entry returns the entry at the place.
func (p Place) entry(file string, data []byte) (v literal.Value, found bool, err error) {
	switch {
	case data == nil, len(bytes.TrimSpace(data)) == 0:
		return v, false, nil
	case p.Form == Whole:
		return v, true, nil
	case p.Form == TOML:
		v, err = literal.ParseTOML(data)
	default:
		v, err = literal.ParseJSON5(data)
	}
	if err != nil {
		return v, false, unfit(file, err)
	}
	v, found = v.Lookup(p.Path...)
	return v, found, nil
}

// foreign reports whether the entry at the place is not ours.
func (p Place) foreign(old literal.Value, data []byte) bool {
	if p.Form == Whole {
		first := func(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }
		return first(string(data)) != first(p.Text)
	}
	return program(starts(old)) != program(p.Entry.starts())
}

func (p Place) without(data []byte) (out []byte, err error) {
	switch p.Form {
	case Whole:
		return nil, nil
	case TOML:
		out, _, err = literal.CutTOML(data, p.Path)
	default:
		out, _, err = literal.UnsetJSON(data, p.Path)
	}
	return out, err
}

// members sets each member by itself, so that others stay.
func (p Place) members(data []byte) (out []byte, err error) {
	out = data
	for _, m := range p.Entry {
		path := append(slices.Clone(p.Path), m.Key)
		if p.Form == TOML {
			out, err = literal.SetTOML(out, path, m.Value)
		} else {
			out, err = literal.SetJSON(out, path, m.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p Place) taken(file, was string) error {
	name := filepath.Base(file)
	if p.Form != Whole {
		name = strings.Join(p.Path, ".")
	}
	f := fault.New(fault.Conflicting, "%s has an entry %s of another program", file, name).With("path", file)
	if was != "" && p.Form != Whole {
		f.With("starts", was)
	}
	return f.Hint("look at it; --replace puts ours in its place, or removes it")
}

// unfit returns the error for a file that cannot be edited, with the place.
func unfit(file string, err error) error {
	if err == nil {
		return nil
	}
	if f := fault.Of(err); f.Code != fault.Internal {
		return f
	}
	return fault.New(fault.ConfigInvalid, "%s cannot be edited: %v", file, err).With("path", file).
		Hint("mend the file; nothing was written")
}

// Write makes the change, if the file is still as it was read.
func (c Change) Write() error {
	if c.Unchanged {
		return nil
	}
	now, err := workspace.ReadFile(c.File, most)
	if err != nil && (c.Before != nil || fault.Of(err).Code != fault.FileMissing) {
		return err
	}
	if !bytes.Equal(now, c.Before) {
		return fault.New(fault.ConcurrentModification, "%s was changed by another program in between", c.File).
			With("path", c.File).Hint("try again")
	}
	if c.RemovesFile {
		return os.Remove(c.File)
	}
	if err := workspace.MkdirAll(filepath.Dir(c.File)); err != nil {
		return err
	}
	return workspace.WriteFile(c.File, c.After, 0o600)
}
