package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/toolspec"
)

// Todo is one thing to do.
type Todo struct {
	ID         string `json:"id,omitempty"`
	Content    string `json:"content"`
	Status     string `json:"status"` // pending, in_progress or completed
	ActiveForm string `json:"activeForm"`
}

// Todos is the list of a conversation. It may be used from several goroutines; the zero value is the empty list.
type Todos struct {
	mu   sync.Mutex
	list []Todo
}

// Get is a copy of the list.
func (t *Todos) Get() []Todo {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

// Set replaces the list.
func (t *Todos) Set(list []Todo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.Clone(list)
}

const (
	todoPending = "pending"
	todoActive  = "in_progress"
	todoDone    = "completed"
)

const todoExample = `{"todos": [{"content": "Fix the parser", "status": "in_progress", "activeForm": "Fixing the parser"}]}`

// TodoWrite keeps the list of what is to be done.
func TodoWrite(env *Env) Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: "TodoWrite", Kind: event.Other,
			Description: "Replaces the list of what is to be done in this conversation; always give the whole list. " +
				"Use it for work of " +
				"three steps or more: one step at a time is in_progress, and it is completed as soon as it is done.",
			Input: json.RawMessage(
				`{"type":"object","properties":{"todos":{"type":"array","description":"The whole list",` +
					`"items":{"type":"object","properties":{` +
					`"content":{"type":"string","description":"What to do, such as Fix the parser"},` +
					`"status":{"type":"string","enum":["pending","in_progress","completed"]},` +
					`"activeForm":{"type":"string","description":"The same while it is done, such as Fixing the parser"}},` +
					`"required":["content","status","activeForm"]}}},"required":["todos"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			in := readInput("TodoWrite", raw, todoExample, []string{"todos"}, map[string]string{"items": "todos"})
			list := readTodos(in)
			if err := in.err(); err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Other, Title: fmt.Sprintf("Note %d things to do", len(list)), Input: in.json(),
				Run: func(context.Context, func(string)) Result {
					if env.Todos == nil {
						return failed(fault.New(fault.Unsafe, "this conversation keeps no list"))
					}
					env.Todos.Set(list)
					return Result{Text: summary(list)}
				},
			}, nil
		},
	}
}

func readTodos(in *input) []Todo {
	list, ids, active := []Todo{}, map[string]bool{}, 0
	for i, raw := range in.list("todos", true) {
		item := readInput(in.tool, raw, in.example, []string{"id", "content", "status", "activeForm"}, nil)
		todo := Todo{
			Content: item.text("content", true), Status: item.text("status", true),
			ActiveForm: item.text("activeForm", false),
		}
		if value := item.raw("id"); value != nil && json.Unmarshal(value, &todo.ID) != nil {
			todo.ID = string(value) // numbers are usual
		}
		switch {
		case len(item.problems) > 0:
		case strings.TrimSpace(todo.Content) == "":
			item.problem("%q is empty", "content")
		case !slices.Contains([]string{todoPending, todoActive, todoDone}, todo.Status):
			item.problem("%q must be pending, in_progress or completed, but came %q", "status", clip(todo.Status))
		case todo.ID != "" && ids[todo.ID]:
			item.problem("the id %q is there twice", clip(todo.ID))
		}
		ids[todo.ID] = true
		if todo.Status == todoActive {
			active++
		}
		if todo.ActiveForm == "" {
			todo.ActiveForm = todo.Content
		}
		for _, p := range item.problems {
			in.problem("todos[%d]: %s", i, p)
		}
		list = append(list, todo)
	}
	if active > 1 {
		in.problem("%d todos are in_progress, but only one may be", active)
	}
	return list
}

func summary(list []Todo) string {
	count := map[string]int{}
	for _, todo := range list {
		count[todo.Status]++
	}
	return fmt.Sprintf("The list is kept: %d completed, %d in progress, %d pending.", count[todoDone],
		count[todoActive], count[todoPending])
}
