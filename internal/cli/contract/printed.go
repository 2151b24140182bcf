package contract

import (
	"io"

	"omniagent/internal/kit/fault"
)

// Printed returns a writer to out for a command that only prints. A failed write is the fault OUTPUT_FAILED.
func Printed(out io.Writer) io.Writer { return printer{out} }

type printer struct{ out io.Writer }

// Write writes b to standard output.
func (p printer) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	if err != nil {
		return n, fault.New(fault.OutputFailed, "standard output cannot be written").Because(err)
	}
	return n, nil
}
