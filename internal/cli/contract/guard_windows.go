package contract

import "os"

// stdoutGuard reserves standard output for the answer. Here it only catches prints through os.Stdout.
type stdoutGuard struct {
	real *os.File
	pipe *os.File
	text *strayText
}

func guardStdout() *stdoutGuard {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	g := &stdoutGuard{real: os.Stdout, pipe: w, text: &strayText{done: make(chan struct{})}}
	os.Stdout = w
	go g.text.read(r)
	return g
}

// collect ends the capture and returns what was caught. Later output of an abandoned handler fails, because the pipe is
// closed.
func (g *stdoutGuard) collect() string {
	_ = g.pipe.Close()
	return g.text.output()
}
