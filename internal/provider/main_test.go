package provider

import (
	"os"
	"testing"

	"omniagent/internal/process"
)

// TestMain lets the test binary be the guard of gcloud.
func TestMain(m *testing.M) {
	if process.IsGuard(os.Args) {
		os.Exit(process.Guard())
	}
	os.Exit(m.Run())
}
