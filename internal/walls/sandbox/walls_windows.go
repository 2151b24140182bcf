package sandbox

import (
	"context"
	"os"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

type wallsOf struct{}

func private(os.FileInfo) bool { return true }

func (w *Walls) open(Report, Options) error {
	return fault.New(fault.ServiceDown, "no wall is known for Windows").
		Hint("Run it under WSL 2, which has the walls of Linux.")
}

func (w *Walls) plan(process.Plan, Network) (process.Plan, error) {
	return process.Plan{}, fault.New(fault.ServiceDown, "no wall is known for Windows")
}

func (w *Walls) release() error { return nil }

// stand does nothing: here walls are built by Open.
func (w *Walls) stand(context.Context) error { return nil }
