package provider

import (
	"os"
	"syscall"
	"testing"

	"omniagent/internal/sys/process"
)

// TestMain lets the test binary be the guard of gcloud.
func TestMain(m *testing.M) {
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	os.Exit(m.Run())
}
