package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
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

func TestBare(t *testing.T) {
	_, err := os.Open("not there")
	if got := Bare(fmt.Errorf("reading: %w", err)).Error(); got != syscall.ENOENT.Error() {
		t.Errorf("Bare of a path's error: %q", got)
	}
	err = os.Rename("not there", "elsewhere")
	if got := Bare(err).Error(); got != syscall.ENOENT.Error() {
		t.Errorf("Bare of a link's error: %q", got)
	}
	if err := errors.New("other"); Bare(err) != err { //nolint:errorlint // the same one
		t.Errorf("Bare of another error: %v", Bare(err))
	}
}
