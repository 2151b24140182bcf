package main

import (
	"os"
	"strings"
	"testing"
)

// TestTheTableIsOfThisTree: every mutation finds its lines, once, and changes them.
func TestTheTableIsOfThisTree(t *testing.T) {
	t.Chdir("../..")
	all, err := parse(table)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d mutations: %v", len(all), err)
	}
	for _, m := range all {
		texts, err := m.mutated()
		before, _ := os.ReadFile(m.file)
		if err != nil || string(texts[m.file]) == string(before) || len(m.tests) == 0 {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// TestLimits: the limits of a room are found and changed.
func TestLimits(t *testing.T) {
	t.Chdir("../..")
	all, err := limits("host/mcp")
	if err != nil || len(all) < 4 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, m := range all {
		if !strings.Contains(string(m.texts[m.file]), "1000 * (") {
			t.Errorf("%s is as it was", m.name)
		}
	}
	if _, err := limits("nowhere"); err == nil {
		t.Error("a room that is not there has limits")
	}
}
