package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/sys/config"
)

// TestTablesOfKeys: every line of the tables of keys is read, and every word of it is known.
func TestTablesOfKeys(t *testing.T) {
	known := []string{"max", "personal", "sum", "default", "values", "env", "flag", "also"}
	for _, file := range []string{"../../cli/contract/keys.txt", "../../cli/command/keys.txt"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(string(text)) {
			if line[0] == '#' {
				continue
			}
			lines++
			declared, help, _ := strings.Cut(strings.TrimSpace(line), ": ")
			words := strings.Fields(declared)
			keys := config.ReadKeys(line)
			if len(words) < 2 || len(keys) != 1 || help == "" || keys[0].Type.String() != words[1] {
				t.Errorf("%s: %q is not a key", file, line)
				continue
			}
			for _, word := range words[2:] {
				if name, _, _ := strings.Cut(word, "="); !slices.Contains(known, name) {
					t.Errorf("%s: %s: there is no word %q", file, words[0], word)
				}
			}
		}
		if keys := config.ReadKeys(string(text)); len(keys) != lines {
			t.Errorf("%s: %d keys in %d lines", file, len(keys), lines)
		}
	}
}
