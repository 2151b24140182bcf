package sandbox

import (
	"context"

	"golang.org/x/sys/windows"
)

func probe(_ context.Context, _ Options, r *Report) {
	r.Privileged = windows.GetCurrentProcessToken().IsElevated()
	r.add(Fact{
		Name: FactWalls, Detail: "no wall is known for Windows",
		Fix: "run it under WSL 2, which has the walls of Linux",
	})
	r.Holes = []string{noWall}
}
