package lines

import (
	"fmt"
	"io"
	"time"
)

// silentFor is how long an open standard input may send nothing before the user is told that the program waits for it.
const silentFor = 2 * time.Second

// EndsWait says how to end the wait for a standard input.
const EndsWait = "</dev/null ends the wait"

// Awaited returns a reader of r. If nothing has come after silentFor, it calls tell once, with what is read and how to
// avoid the wait.
func Awaited(r io.Reader, what, way string, tell func(words string)) io.Reader {
	words := fmt.Sprintf("reading %s from standard input, which is open and silent; %s", what, way)
	return &awaited{r, time.AfterFunc(silentFor, func() { tell(words) })}
}

type awaited struct {
	from   io.Reader
	silent *time.Timer
}

func (a *awaited) Read(into []byte) (int, error) {
	n, err := a.from.Read(into)
	a.silent.Stop()
	return n, err
}
