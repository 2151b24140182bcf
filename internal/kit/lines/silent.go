package lines

import (
	"fmt"
	"io"
	"time"
)

// silentFor is how long an open standard input may say nothing before a person is told that it is waited for.
const silentFor = 2 * time.Second

// EndsWait says how to end the wait for a standard input.
const EndsWait = "</dev/null ends the wait"

// Awaited reads from r. If nothing has come within silentFor, it tells once what is read, and the way to do without.
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
