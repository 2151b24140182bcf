package tool

import (
	"context"
	"fmt"

	"omniagent/internal/core/event"
)

// MultiEdit returns a tool that makes several replacements in one file, all or none.
func MultiEdit(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "MultiEdit", Kind: event.Write, Rule: event.RulePath, Changes: true})
	edit := specOf(event.ToolSpec{Name: "Edit"})
	return s.plan(func(in *input) (Action, error) {
		written := in.text("file_path", true)
		e := editor{env: env}
		for i, item := range in.list("edits", true) {
			one := edit.input(item)
			e.changes = append(e.changes, readChange(one))
			for _, p := range one.problems {
				in.problem("edits[%d]: %s", i, p)
			}
		}
		if len(e.changes) == 0 && len(in.problems) == 0 {
			in.problem("%q is empty", "edits")
		}
		var err error
		if e.subject, err = newSubject(env, written); err != nil {
			return Action{}, err
		}
		return Action{
			Paths: e.paths,
			Title: fmt.Sprintf("Edit %s in %d places", e.shown, len(e.changes)),
			Run: func(ctx context.Context) Result {
				run := e // an Action may run more than once
				if _, _, err := run.run(ctx); err != nil {
					return failed(err)
				}
				return Result{
					Text:   fmt.Sprintf("Applied %d edits to %s", len(run.changes), run.shown),
					Change: run.change,
				}
			},
		}, nil
	})
}
