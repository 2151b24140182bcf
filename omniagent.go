// Package omniagent carries what is written beside the code and told by the program: its history.
package omniagent

import _ "embed"

// Changelog is CHANGELOG.md.
//
//go:embed CHANGELOG.md
var Changelog string
