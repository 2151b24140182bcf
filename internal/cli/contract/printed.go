package contract

import (
	"io"

	"omniagent/internal/kit/fault"
)

// Printed is standard output for a command that only prints: what cannot be written is told as such.
func Printed(out io.Writer) io.Writer { return printer{out} }

type printer struct{ out io.Writer }

// Write writes, and returns a fault where that fails.
func (p printer) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	if err != nil {
		return n, fault.New(fault.OutputFailed, "standard output cannot be written").Because(err)
	}
	return n, nil
}
