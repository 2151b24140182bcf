package fault

import (
	"errors"
	"io/fs"
	"testing"
)

func TestOfSaysItOnce(t *testing.T) {
	t.Parallel()
	foreign := &fs.PathError{Op: "open", Path: "disk", Err: errors.New("on fire")}
	f := Of(foreign)
	if f.Code != Internal || f.Error() != "open disk: on fire" || f.Message != f.Error() || !errors.Is(f, foreign) {
		t.Errorf("%v: %+v", f, f)
	}
	own := New(TimedOut, "too late").Because(foreign)
	if own.Error() != "too late: open disk: on fire" || Of(own) != own || Of(nil) != nil {
		t.Errorf("%v", own)
	}
}
