// Package toolspec is what a tool is to a model: a name, a description and the form of its input.
//
// It promises that one description serves every model API and every host. It refuses to know what a tool does.
package toolspec

import "encoding/json"

// Tool is what a model is told of a tool.
type Tool struct {
	Name        string
	Description string
	Input       json.RawMessage // JSON schema of an object
}
