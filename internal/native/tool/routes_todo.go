package tool

import (
	"encoding/json"
	"fmt"
	"strings"
)

// TodoStats counts the items of a list by their status.
type TodoStats struct {
	Total      int `json:"total"`
	Completed  int `json:"completed"`
	InProgress int `json:"inProgress"`
}

// Add counts an item.
func (s *TodoStats) Add(status string) {
	s.Total++
	switch status {
	case todoDone:
		s.Completed++
	case todoActive:
		s.InProgress++
	}
}

// refusal is an error in the words of seed 2.
type refusal string

func (r refusal) Error() string { return string(r) }

// replacedTodos reads a new list by the rules of seed 2: the default id of an item is its position, and at most one
// item is in progress.
func replacedTodos(items []json.RawMessage) ([]Todo, error) {
	list, ids, active := []Todo{}, map[string]bool{}, 0
	for i, raw := range items {
		t, in := readTodo(raw, false)
		if in.raw("id") == nil {
			t.ID = fmt.Sprint(i + 1)
		}
		t.Content, t.ActiveForm = strings.TrimSpace(t.Content), strings.TrimSpace(t.ActiveForm)
		switch {
		case len(in.problems) > 0:
			return nil, fmt.Errorf("items[%d]: %s", i, in.problems[0])
		case t.Content == "":
			return nil, fmt.Errorf("items[%d] has no content", i)
		case ids[t.ID]:
			return nil, refusal("Duplicate todo id: " + clip(t.ID))
		case !t.known():
			return nil, refusal(fmt.Sprintf("Invalid todo status: items[%d] has %q", i, clip(t.Status)))
		case t.ActiveForm == "":
			return nil, fmt.Errorf("items[%d] has no activeForm", i)
		}
		ids[t.ID] = true
		if t.Status == todoActive {
			active++
		}
		list = append(list, t)
	}
	if active > 1 {
		return nil, refusal("Only one todo can be in_progress")
	}
	return list, nil
}
