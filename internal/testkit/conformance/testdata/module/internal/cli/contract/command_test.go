package contract

import "testing"

func TestPlain(t *testing.T) {}

func TestLiterals(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		t.Run("deep inside", func(t *testing.T) {})
	})
}

func TestTable(t *testing.T) {
	table := []struct{ name string }{{"two"}, {"three"}}
	for _, tc := range table {
		t.Run(tc.name, func(t *testing.T) {})
	}
}

func TestMade(t *testing.T) {
	for _, name := range names() {
		t.Run(name, func(t *testing.T) {})
	}
}

func names() []string { return nil }
