package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"omniagent/internal/event"
	"omniagent/internal/toolspec"
)

const multiEditExample = `{"file_path": "src/main.go", "edits": [{"old_string": "x := 1", "new_string": "x := 2"}]}`

// MultiEdit makes several replacements in one file, all or none.
func MultiEdit(env *Env) Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: "MultiEdit", Kind: event.Write, Rule: toolspec.Path, Changes: true,
			Description: "Makes several replacements in one file, in order; each works on what those before it have " +
				"made. If one of them " +
				"cannot be made, none is. The rules for each are those of Edit.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"file_path":{"type":"string","description":"Path of the file, relative to the workspace or absolute"},` +
				`"edits":{"type":"array","minItems":1,"items":{"type":"object","properties":{` +
				`"old_string":{"type":"string","description":"The text to replace"},` +
				`"new_string":{"type":"string","description":"What to put in its place; must differ"},` +
				`"replace_all":{"type":"boolean","description":"Replace every occurrence; false if left out"}},` +
				`"required":["old_string","new_string"]}}},"required":["file_path","edits"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			in := readInput("MultiEdit", raw, multiEditExample, []string{"file_path", "edits"}, pathNames())
			written := in.text("file_path", true)
			e := editor{env: env}
			for i, item := range in.list("edits", true) {
				one := readInput(in.tool, item, in.example, changeNames(), changeAliases())
				e.changes = append(e.changes, readChange(one))
				for _, p := range one.problems {
					in.problem("edits[%d]: %s", i, p)
				}
			}
			if len(e.changes) == 0 && len(in.problems) == 0 {
				in.problem("%q is empty", "edits")
			}
			if err := in.err(); err != nil {
				return Action{}, err
			}
			var err error
			if e.subject, err = newSubject(env, written); err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Write, Changes: true, Paths: e.paths, Input: in.json(),
				Title: fmt.Sprintf("Edit %s in %d places", e.shown, len(e.changes)),
				Run: func(ctx context.Context, _ func(string)) Result {
					run := e // a plan may run more than once
					if _, _, err := run.run(ctx); err != nil {
						return failed(err)
					}
					return Result{
						Text:   fmt.Sprintf("Applied %d edits to %s", len(run.changes), run.shown),
						Change: run.change,
					}
				},
			}, nil
		},
	}
}
