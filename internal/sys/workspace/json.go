package workspace

import (
	"encoding/json"
	"os"

	"omniagent/internal/kit/fault"
)

// ReadJSON is ReadFile for a file with a JSON value, which it decodes.
func ReadJSON(path string, max int64, to any) error {
	data, err := ReadFile(path, max)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	return err
}

// WriteJSON writes a value as JSON with a function of this package, such as Replace, readable only by us. It fails if
// the value cannot be encoded, or as write does.
func WriteJSON(path string, from any, write func(string, []byte, os.FileMode) error) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fault.New(fault.Internal, "%s cannot be written: %v", path, err)
	}
	return write(path, data, 0o600)
}
