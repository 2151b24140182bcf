package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// Todo is one task.
type Todo struct {
	ID         string `json:"id,omitempty"`
	Content    string `json:"content"`
	Status     string `json:"status"` // pending, in_progress or completed
	ActiveForm string `json:"activeForm"`
}

// Todos is the list of a conversation. It is safe for concurrent use; the zero value is empty.
type Todos struct {
	mu   sync.Mutex
	list []Todo
}

// Get returns a copy of the list.
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

// TodoWrite returns a tool that keeps the list of tasks.
func TodoWrite(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "TodoWrite", Kind: event.Other})
	return s.plan(func(in *input) (Action, error) {
		list := readTodos(in)
		return Action{
			Title: fmt.Sprintf("Note %d things to do", len(list)),
			Run: func(context.Context) Result {
				if env.Todos == nil {
					return failed(fault.New(fault.Unsafe, "this conversation keeps no list"))
				}
				env.Todos.Set(list)
				return Result{Text: summary(list), Listed: true}
			},
		}, nil
	})
}

// readTodo reads an item of a list. need means that its content and its status are required.
func readTodo(raw json.RawMessage, need bool) (Todo, *input) {
	in := (&spec{names: []string{"id", "content", "status", "activeForm"}}).input(raw)
	t := Todo{
		Content: in.text("content", need), Status: in.text("status", need), ActiveForm: in.text("activeForm", false),
	}
	if id := in.raw("id"); id != nil && json.Unmarshal(id, &t.ID) != nil {
		t.ID = string(id) // models often write numbers
	}
	return t, in
}

// known reports whether the status of a task is one of the three.
func (t Todo) known() bool {
	return slices.Contains([]string{todoPending, todoActive, todoDone}, t.Status)
}

func readTodos(in *input) []Todo {
	list, ids, active := []Todo{}, map[string]bool{}, 0
	for i, raw := range in.list("todos", true) {
		todo, item := readTodo(raw, true)
		switch {
		case len(item.problems) > 0:
		case strings.TrimSpace(todo.Content) == "":
			item.problem("%q is empty", "content")
		case !todo.known():
			item.problem("%q must be pending, in_progress or completed, but came %q", "status", clip(todo.Status))
		case todo.ID != "" && ids[todo.ID]:
			item.problem("the id %q is there twice", clip(todo.ID))
		}
		ids[todo.ID] = true
		if todo.Status == todoActive {
			active++
		}
		todo.ActiveForm = cmp.Or(todo.ActiveForm, todo.Content)
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
