package tree

import (
	"os"
	"testing"

	"omniagent/internal/hermetic"
)

func TestMain(m *testing.M) {
	hermetic.InMemory()
	os.Exit(m.Run())
}
