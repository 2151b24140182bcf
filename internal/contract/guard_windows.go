package contract

import (
	"io"
	"os"
)

// stdoutGuard keeps standard output for the answer. Here only prints through os.Stdout can be caught.
type stdoutGuard struct {
	real *os.File
	pipe *os.File
	text chan []byte
}

func guardStdout() *stdoutGuard {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	g := &stdoutGuard{real: os.Stdout, pipe: w, text: make(chan []byte, 1)}
	os.Stdout = w
	go func() {
		kept, _ := io.ReadAll(io.LimitReader(r, strayLimit))
		_, _ = io.Copy(io.Discard, r)
		g.text <- kept
	}()
	return g
}

// collect ends the capture and returns what was caught. What a handler that was given up on prints from here on fails: the pipe is closed.
func (g *stdoutGuard) collect() string {
	_ = g.pipe.Close()
	return string(<-g.text)
}
