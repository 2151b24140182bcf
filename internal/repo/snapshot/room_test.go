package snapshot

import (
	"runtime/debug"
	"sync"
	"testing"
)

func TestWithRoom(t *testing.T) { // not parallel: the setting is the process's
	before := debug.SetGCPercent(70)
	defer debug.SetGCPercent(before)
	var begun, over sync.WaitGroup
	begun.Add(2)
	for range 2 {
		over.Go(func() {
			WithRoom(func() {
				begun.Done()
				begun.Wait()
			})
		})
	}
	over.Wait()
	if is := debug.SetGCPercent(70); is != 70 {
		t.Errorf("it stays at %d", is)
	}
	for _, usual := range []int{70, -1, 9000} {
		debug.SetGCPercent(usual)
		want := usual
		if usual == 70 {
			want = roomPercent
		}
		WithRoom(func() {
			if is := debug.SetGCPercent(want); is != want {
				t.Errorf("%d becomes %d", usual, is)
			}
		})
	}
}
