package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

const (
	modeReplace = "replace"
	modeInsert  = "insert"
	modeDelete  = "delete"
)

// NotebookEdit returns a tool that changes one cell of a notebook.
func NotebookEdit(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "NotebookEdit", Kind: event.Write, Rule: event.RulePath, Changes: true})
	return s.plan(func(in *input) (Action, error) {
		e := readCellEdit(in)
		var err error
		if e.subject, err = newSubject(env, e.shown); err != nil {
			return Action{}, err
		}
		e.env = env
		return Action{
			Paths: e.paths,
			Title: fmt.Sprintf("Edit a cell of %s (%s)", e.shown, e.mode),
			Asked: e.note,
			Run: func(ctx context.Context) Result {
				if err := e.still(); err != nil {
					return failed(err)
				}
				return e.run(ctx)
			},
		}, nil
	})
}

// cellEdit is one change of one cell.
type cellEdit struct {
	*subject
	env    *Env
	cell   string // id or number; may be empty
	source string
	kind   string // of the cell; empty to keep it
	mode   string
}

func readCellEdit(in *input) cellEdit {
	e := cellEdit{
		subject: &subject{shown: in.text("notebook_path", true)}, kind: in.text("cell_type", false),
		mode: in.text("edit_mode", false),
	}
	e.mode = cmp.Or(e.mode, modeReplace)
	if id := in.raw("cell_id"); id != nil && json.Unmarshal(id, &e.cell) != nil {
		if _, err := strconv.ParseUint(string(id), 10, 31); err != nil {
			in.wrong("cell_id", "the id or the number of a cell", id)
		}
		e.cell = string(id)
	}
	e.source = in.text("new_source", e.mode != modeDelete)
	switch {
	case !slices.Contains([]string{modeReplace, modeInsert, modeDelete}, e.mode):
		in.problem("%q must be replace, insert or delete, but came %q", "edit_mode", clip(e.mode))
	case !slices.Contains([]string{"", "code", "markdown", "raw"}, e.kind):
		in.problem("%q must be code, markdown or raw, but came %q", "cell_type", clip(e.kind))
	case e.mode == modeInsert && e.kind == "":
		in.problem("%q is missing: a cell that is inserted needs it, code or markdown", "cell_type")
	case e.mode != modeInsert && e.cell == "":
		in.problem("%q is missing: which cell to %s", "cell_id", e.mode)
	case e.shown != "" && !strings.EqualFold(path.Ext(e.shown), ".ipynb"):
		in.problem("%q must be a notebook, a file that ends in .ipynb; use Edit for others", "notebook_path")
	}
	return e
}

func (e cellEdit) run(ctx context.Context) Result {
	data, print, err := e.env.Files.Load(e.name, largestFile)
	if err != nil {
		return failed(reader{env: e.env, name: e.name, shown: e.shown}.explain(err))
	}
	if err := e.env.Seen.check(e.name, e.shown, print); err != nil {
		return failed(err)
	}
	d := decode(data)
	book, err := parseNotebook(d.text)
	if err != nil {
		return failed(fault.New(fault.InvalidJSON, "%s is not a notebook", e.shown).
			Because(err).Hint("Look at it with Bash."))
	}
	text, did, err := e.apply(book)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return failed(err)
	}
	out := d.encode(text)
	if err := e.env.Files.Replace(e.name, out, workspace.ReplaceOptions{Expect: &print, Target: e.target}); err != nil {
		return failed(writeFailed(e.shown, err))
	}
	e.env.Seen.Record(e.name, workspace.FingerprintOf(out))
	return Result{Text: fmt.Sprintf("The file %s has been updated: %s", e.shown, did)}
}

// apply returns the new text of the notebook, and what was done.
func (e cellEdit) apply(book *notebook) (text []byte, did string, err error) {
	at := -1
	if e.cell != "" {
		if at = book.find(e.cell); at < 0 {
			return nil, "", fault.New(fault.NotFoundCode, "%s has no cell %q", e.shown, clip(e.cell)).Hint("%s",
				book.choices())
		}
	}
	switch e.mode {
	case modeInsert:
		cell := book.render(book.newCell(e.kind, e.source))
		return book.insert(at+1, cell), fmt.Sprintf("cell %d was inserted", at+1), nil
	case modeDelete:
		return book.remove(at), fmt.Sprintf("cell %d was deleted", at), nil
	}
	members, err := book.changed(at, e.kind, e.source)
	if err != nil {
		return nil, "", err
	}
	return book.replace(at, book.render(members)), fmt.Sprintf("cell %d was replaced", at), nil
}
