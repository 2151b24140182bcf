package screen_test

import (
	"bytes"
	"testing"

	"omniagent/internal/lineedit"
	"omniagent/internal/screen"
)

func TestBytes(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(screen.Options{Out: &out, Size: func() (int, int) { return 40, 10 }})
	e := lineedit.New(lineedit.Options{Prompt: "> "})
	set := func(tail ...string) {
		s.Set(screen.Live{Tail: tail, Above: []string{"busy"}, Input: e.View(s.Width())})
		s.Flush()
		t.Logf("%q", out.String())
		out.Reset()
	}
	set()
	e.Set("a")
	set()
	e.Set("ab")
	set()
	set("some text")
	set("some text more")
	s.Print("some text more that is finished and longer than a row")
	set("next")
	set()
	s.Close()
	t.Logf("%q", out.String())
}
