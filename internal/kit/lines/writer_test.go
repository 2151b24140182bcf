package lines

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestAllIsWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		w := NewWriter(to)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 100 {
					if !w.Send([]byte("x\n"), nil) {
						t.Error("not taken")
					}
				}
			})
		}
		synctest.Wait()
		if waiting, written := w.State(); waiting != Full || written != 0 || w.Offer([]byte("no\n")) {
			t.Errorf("%d wait, %d are written", waiting, written)
		}
		var got strings.Builder
		go func() {
			_, _ = io.Copy(&got, from)
		}()
		all.Wait()
		w.Put([]byte("last\n"))
		w.Finish()
		<-w.Written()
		_ = to.Close()
		synctest.Wait()
		if got.String() != strings.Repeat("x\n", 1000)+"last\n" || w.Err() != nil {
			t.Errorf("%d bytes, %v", got.Len(), w.Err())
		}
	})
}

func TestSideThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		w, stop := NewWriter(to), make(chan struct{})
		for range 10 * Full {
			w.Put([]byte("x\n")) // it never waits
		}
		room, sent := w.Room(), make(chan bool)
		go func() { sent <- w.Send([]byte("y\n"), stop) }()
		synctest.Wait()
		close(stop)
		if <-sent {
			t.Error("it was taken")
		}
		go func() {
			for range 9*Full + 1 {
				_, _ = from.Read(make([]byte, 2))
			}
		}()
		<-room
		if waiting, written := w.State(); waiting != Full-1 || written != 9*Full+1 {
			t.Errorf("%d wait, %d are written", waiting, written)
		}
		_ = from.Close()
		<-w.Written()
		if !errors.Is(w.Err(), io.ErrClosedPipe) || w.Send([]byte("z\n"), nil) {
			t.Error(w.Err())
		}
	})
}
