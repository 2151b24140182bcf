package event_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniagent/internal/event"
)

// TestQueue has several tell and several hear: each event is heard once, and those of one teller in their order.
func TestQueue(t *testing.T) {
	const tellers, each = 4, 500
	for _, most := range []int{0, 1, 7} {
		q := event.NewQueue(most)
		var telling, hearing sync.WaitGroup
		for n := range tellers {
			telling.Go(func() {
				for i := range each {
					q.Put(event.Event{Session: fmt.Sprint(n), Text: fmt.Sprint(i)})
				}
			})
		}
		var mu sync.Mutex
		heard := map[string]int{}
		for h := range 3 {
			hearing.Go(func() {
				last := map[string]int{}
				for {
					e, err := q.Next(t.Context())
					if errors.Is(err, io.EOF) {
						return
					}
					i := -1
					if _, scan := fmt.Sscan(e.Text, &i); err != nil || scan != nil {
						t.Errorf("%d: %v, %v", h, err, scan)
						return
					}
					if before, known := last[e.Session]; known && i <= before {
						t.Errorf("%d: %d after %d", h, i, before)
					}
					last[e.Session] = i
					mu.Lock()
					heard[e.Session+" "+e.Text]++
					mu.Unlock()
				}
			})
		}
		telling.Wait()
		q.Close()
		hearing.Wait()
		if len(heard) != tellers*each {
			t.Errorf("%d of %d events were heard", len(heard), tellers*each)
		}
		for e, n := range heard {
			if n != 1 {
				t.Errorf("%s was heard %d times", e, n)
			}
		}
	}
}

// TestQueueHasRoom: who tells waits for who hears, until nobody may.
func TestQueueHasRoom(t *testing.T) {
	for name, end := range map[string]func(*event.Queue){"free": (*event.Queue).Free, "close": (*event.Queue).Close} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, put := event.NewQueue(2), 0
				go func() {
					for i := range 6 {
						q.Put(event.Event{Text: fmt.Sprint(i)})
						put++
					}
				}()
				want := func(n int) {
					t.Helper()
					if synctest.Wait(); put != n {
						t.Errorf("%d were put, want %d", put, n)
					}
				}
				want(2)
				if e, err := q.Next(t.Context()); err != nil || e.Text != "0" {
					t.Errorf("%+v, %v", e, err)
				}
				want(3)
				end(q)
				want(6)
				q.Close()
				var rest string
				for {
					e, err := q.Next(t.Context())
					if err != nil {
						if !errors.Is(err, io.EOF) {
							t.Error(err)
						}
						break
					}
					rest += e.Text
				}
				if want := map[string]string{"free": "12345", "close": "12"}[name]; rest != want {
					t.Errorf("heard %s, want %s", rest, want)
				}
			})
		})
	}
}

// TestQueuePutNow: what must not wait does not, and is heard in its place.
func TestQueuePutNow(t *testing.T) {
	q := event.NewQueue(1)
	q.Put(event.Event{Text: "a"})
	q.PutNow(event.Event{Text: "b"})
	q.PutNow(event.Event{Text: "c"})
	heard := ""
	for range 3 {
		e, err := q.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		heard += e.Text
	}
	q.Put(event.Event{Text: "d"}) // there is room again
	q.Close()
	q.PutNow(event.Event{Text: "e"})
	e, _ := q.Next(t.Context())
	if _, err := q.Next(t.Context()); heard != "abc" || e.Text != "d" || !errors.Is(err, io.EOF) {
		t.Errorf("heard %s, %s, %v", heard, e.Text, err)
	}
}

// TestQueueIsWaitedFor: an event or the end of a context wakes who waits.
func TestQueueIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := event.NewQueue(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.AfterFunc(time.Minute, func() { q.Put(event.Event{Text: "x"}) })
		if e, err := q.Next(t.Context()); err != nil || e.Text != "x" {
			t.Errorf("%+v, %v", e, err)
		}
		time.AfterFunc(time.Minute, q.Close)
		if _, err := q.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}
