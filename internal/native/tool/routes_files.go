package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/fsapi"
)

// routeFile returns the names of a route's file. It refuses the same paths as the route.
func routeFile(env *Env, fs fsapi.FS, written string) (s *subject, err error) {
	if _, err := fs.Resolve(written); err != nil {
		return s, err
	}
	return newSubject(env, written)
}

func readRoute(env *Env, fs fsapi.FS) Tool {
	s := routeOf("read_file", event.ToolSpec{Kind: event.Read, Rule: event.RulePath})
	return s.plan(func(in *input) (Action, error) {
		path := in.text("path", false)
		w := fsapi.Window{
			Start: in.number("startLine"), End: in.number("endLine"), MaxBytes: max(in.number("maxBytes"), 0),
		}
		file, err := routeFile(env, fs, path)
		if err != nil {
			return Action{}, err
		}
		return Action{
			Paths: []string{file.name}, Title: "Read " + file.shown,
			Run: func(context.Context) Result {
				read, err := fs.ReadFile(path, w)
				if err != nil {
					return routeFailed(err)
				}
				return Result{Text: bounded(read)}
			},
		}, nil
	})
}

// bounded cuts a text to the longest result.
func bounded(read string) string {
	if len(read) <= largestPage {
		return read
	}
	cut := text.Cut(read, largestPage)
	return fmt.Sprintf("%s\n[The first %d of %d bytes. Read on with startLine, or use maxBytes.]", cut, len(cut),
		len(read))
}

func writeRoute(env *Env, fs fsapi.FS) Tool {
	s := routeOf("write_file", event.ToolSpec{Kind: event.Write, Rule: event.RulePath, Changes: true})
	return s.plan(func(in *input) (Action, error) {
		path, content, mode := in.text("path", false), in.text("content", true), fsapi.Mode(in.text("mode", false))
		mode = cmp.Or(mode, fsapi.Overwrite)
		if mode != fsapi.Overwrite && mode != fsapi.Append {
			in.problem("%q must be overwrite or append, but came %q", "mode", clip(string(mode)))
		}
		file, err := routeFile(env, fs, path)
		if err != nil {
			return Action{}, err
		}
		a := Action{
			Paths: file.paths, Title: "Write " + file.shown,
			Run: func(context.Context) Result {
				if err := file.still(); err != nil {
					return routeFailed(err)
				}
				change, err := fs.WriteFile(path, content, mode)
				if err != nil {
					return routeFailed(err)
				}
				return done(fmt.Sprintf("wrote %d bytes (%s)", len(content), mode), change)
			},
		}
		if mode == fsapi.Overwrite {
			a.Asked = file.note
		}
		return a, nil
	})
}

func editRoute(env *Env, fs fsapi.FS) Tool {
	s := routeOf("edit_text", event.ToolSpec{Kind: event.Write, Rule: event.RulePath, Changes: true})
	return s.plan(func(in *input) (Action, error) {
		path, e := in.text("path", false), readEdit(in)
		file, err := routeFile(env, fs, path)
		if err != nil {
			return Action{}, err
		}
		a := Action{
			Paths: file.paths, Title: "Edit " + file.shown,
			Run: func(context.Context) Result {
				if err := file.still(); err != nil {
					return routeFailed(err)
				}
				change, err := fs.EditText(path, e)
				switch {
				case err != nil:
					return routeFailed(err)
				case change.Hits == 0:
					return routeFailed(errors.New("the text to find is not in " + file.shown + ": nothing was changed"))
				}
				return done(e.Action, change)
			},
		}
		if e.Action != fsapi.Replace { // insert and delete_range name lines by their numbers
			a.Asked = file.note
		}
		return a, nil
	})
}

func readEdit(in *input) fsapi.Edit {
	e := fsapi.Edit{Action: in.text("action", true)}
	switch e.Action {
	case fsapi.Insert:
		in.need("insertAfter", "a number")
		e.After, e.NewText = in.number("insertAfter"), in.text("newText", true)
	case fsapi.Replace:
		e.Find, e.Replace = in.text("find", true), in.text("replace", true)
	case fsapi.DeleteRange:
		lines := in.list("range", true)
		var start, end int
		if len(lines) != 2 || json.Unmarshal(lines[0], &start) != nil || json.Unmarshal(lines[1], &end) != nil {
			in.problem("%q must be two numbers: the first line, and the first that stays", "range")
		}
		e.Start, e.End = start, end
	case "":
	default:
		in.problem("%q must be insert, replace or delete_range, but came %q", "action", clip(e.Action))
	}
	return e
}

// number returns an integer of any sign; the default is 0.
func (in *input) number(name string) int { return in.whole(name, 0, math.MinInt32) }

func todoRoute(env *Env, _ fsapi.FS) Tool {
	s := routeOf("todo_write", event.ToolSpec{Kind: event.Other})
	return s.plan(func(in *input) (Action, error) {
		list, err := replacedTodos(in.list("items", true))
		if err != nil {
			return Action{}, err
		}
		return Action{
			Title: fmt.Sprintf("Note %d things to do", len(list)),
			Run: func(context.Context) Result {
				env.Todos.Set(list)
				var stats TodoStats
				for _, t := range list {
					stats.Add(t.Status)
				}
				shown, err := text.JSON(stats)
				if err != nil {
					return routeFailed(err)
				}
				return Result{Text: string(shown), Listed: true}
			},
		}, nil
	})
}
