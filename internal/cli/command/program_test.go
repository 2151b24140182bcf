package command

import (
	"testing"

	"omniagent/internal/cli/contract"
)

// TestDeclarationsHold checks all declarations together, which the program does not do when it starts.
func TestDeclarationsHold(t *testing.T) {
	if _, err := contract.New(Ours().app()); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkCheck(b *testing.B) {
	for b.Loop() {
		if err := Program().Check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		Program()
	}
}
