package tool

import (
	_ "embed" // the types of files
	"slices"
	"strings"
)

// types has a line for each type of file: its name in ripgrep, its names in other tools, and patterns of file names.
//
//go:embed types.txt
var types string

// grepType returns the patterns of file names for a type.
func grepType(name string) []string {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "."))
	for line := range strings.Lines(types) {
		if called, names, _ := strings.Cut(line, ":"); slices.Contains(strings.Fields(called), name) {
			return strings.Fields(names)
		}
	}
	return nil
}

func grepTypeNames() string {
	var names []string
	for line := range strings.Lines(types) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, strings.TrimSuffix(name, ":"))
	}
	return strings.Join(names, " ")
}
