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

func (g *stdoutGuard) collect() string {
	os.Stdout = g.real
	_ = g.pipe.Close()
	return string(<-g.text)
}
