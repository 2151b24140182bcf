package tool

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
)

func TestTodoWrite(t *testing.T) {
	d := newDesk(t)
	d.says(TodoWrite, `{"todos": [{"content": "a", "status": "completed", "activeForm": "doing a", "id": 1},
		{"content": "b", "status": "in_progress", "activeForm": "doing b", "id": "2"}, {"content": "c", "status": "pending"}]}`,
		"The list is kept: 1 completed, 1 in progress, 1 pending.")
	want := []Todo{{"1", "a", "completed", "doing a"}, {"2", "b", "in_progress", "doing b"}, {"", "c", "pending", "c"}}
	if got := d.env.Todos.Get(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	for input, part := range map[string]string{
		`{"todos": [{"content": "a", "status": "done", "activeForm": "a"}]}`:                                              `todos[0]: "status" must be pending, in_progress or completed, but came "done"`,
		`{"todos": [{"content": "a", "status": "pending", "id": "1"}, {"content": "b", "status": "pending", "id": "1"}]}`: `todos[1]: the id "1" is there twice`,
		`{"todos": [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}]}`:               "2 todos are in_progress",
		`{"todos": [{"content": " ", "status": "pending"}]}`:                                                              `todos[0]: "content" is empty`,
		`{"todos": [{"status": "pending"}]}`:                                                                              `todos[0]: "content" is missing`,
		`{"todos": ["a"]}`:                                                                                                `todos[0]: the input must be a JSON object, but came the string "a"`,
		`{"todos": "a"}`:                                                                                                  `"todos" must be a list, but came the string "a"`,
		`{}`:                                                                                                              `"todos" is missing: it must be a list`,
	} {
		d.fails(TodoWrite, input, part, example("TodoWrite"))
	}
	if got := d.env.Todos.Get(); !reflect.DeepEqual(got, want) {
		t.Errorf("a call that failed left %v", got)
	}
	d.says(TodoWrite, `{"todos": []}`, "0 pending")
	if got := d.env.Todos.Get(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestTodosAndSeenAreSafeTogether(t *testing.T) {
	d := newDesk(t)
	d.put("a", "x")
	var group sync.WaitGroup
	for i := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 50 {
				d.env.Todos.Set([]Todo{{Content: fmt.Sprint(i)}})
				if list := d.env.Todos.Get(); len(list) == 1 {
					list[0].Content = "mine" // a copy
				}
				_ = d.call(Read, object{"file_path": "a"})
				_, _ = d.env.Seen.Lookup("a")
			}
		}()
	}
	group.Wait()
	if d.env.Todos.Get()[0].Content == "mine" {
		t.Error("a copy is not one")
	}
	var none *Seen
	if _, ok := none.Lookup("a"); ok {
		t.Error("nothing knows something")
	}
}
