package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
)

// TestAbreast: of many calls that only read, at most eight run in parallel.
func TestAbreast(t *testing.T) {
	const calls, limit = 20, 8
	synctest.Test(t, func(t *testing.T) {
		first := model.Answer{Stop: model.Calls}
		for i := range calls {
			first.Blocks = append(first.Blocks, model.Block{
				Kind: model.Call, ID: fmt.Sprint(i), Name: "Look", Input: json.RawMessage(`{}`),
			})
		}
		last := model.Answer{Stop: model.Done, Blocks: []model.Block{{Kind: model.Text, Text: "ok"}}}
		var mu sync.Mutex
		running := 0
		release := make(chan struct{})
		add := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
		}
		s := begin(t, engine.Options{Client: &parrot{answers: []model.Answer{first, last}}}, kit("Look", tool.Action{
			Kind: event.Read, Run: func(context.Context) tool.Result {
				add(1)
				defer add(-1)
				<-release
				return tool.Result{Text: "seen"}
			},
		}))
		ended := make(chan []event.Event, 1)
		go func() { ended <- turn(t, s, "go", nil) }()
		for left := calls; left > 0; left -= limit {
			synctest.Wait() // until everything waits for release
			mu.Lock()
			now := running
			mu.Unlock()
			if want := min(left, limit); now != want {
				t.Errorf("%d calls run side by side, %d are left", now, left)
			}
			for range now {
				release <- struct{}{}
			}
		}
		if all := <-ended; !all[len(all)-1].End.OK {
			t.Error(told(all))
		}
	})
}
