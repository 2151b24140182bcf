package snapshot

import (
	"os"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

func TestMain(m *testing.M) {
	hermetic.InMemory()
	os.Exit(m.Run())
}
