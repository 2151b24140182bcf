package tool

import (
	"bytes"
	"embed"
	"encoding/json"
	"strings"
	"sync"

	"omniagent/internal/core/event"
)

//go:embed specs
var specs embed.FS

// spec is the description of a tool for the model and for reading its input. It comes from specs/NAME.txt, where empty
// lines separate the parts: the description; a correct input; the known members, each with the names that models use
// instead; the schema.
type spec struct {
	event.ToolSpec
	example string
	names   []string
	others  map[string]string // from other names to the known one, such as path to file_path
}

// specOf completes a tool with the content of its file.
func specOf(t event.ToolSpec) *spec {
	s := readSpecs()[t.Name]
	t.Description, t.Input = s.Description, s.Input
	s.ToolSpec = t
	return &s
}

// plan returns the tool. read returns the action for an input; it is only used if the input has no problems.
func (s *spec) plan(read func(in *input) (Action, error)) Tool {
	return Tool{ToolSpec: s.ToolSpec, Plan: func(raw json.RawMessage) (Action, error) {
		in := s.input(raw)
		a, err := read(in)
		if problems := in.err(); problems != nil {
			err = problems
		}
		if err != nil {
			return Action{}, err
		}
		a.Kind, a.Changes, a.Input = s.Kind, s.Changes, in.json()
		return a, nil
	}}
}

// readSpecs reads all files once.
var readSpecs = sync.OnceValue(func() map[string]spec {
	all := map[string]spec{}
	files, _ := specs.ReadDir("specs")
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".txt")
		all[name] = readSpec(name)
	}
	return all
})

func readSpec(name string) spec {
	text, _ := specs.ReadFile("specs/" + name + ".txt")
	parts := strings.SplitN(string(text), "\n\n", 4)
	s := spec{example: parts[1], others: map[string]string{}}
	for line := range strings.Lines(parts[2]) {
		known, others, _ := strings.Cut(strings.TrimSpace(line), ":")
		s.names = append(s.names, known)
		for other := range strings.FieldsSeq(others) {
			s.others[other] = known
		}
	}
	var schema bytes.Buffer
	_ = json.Compact(&schema, []byte(parts[3]))
	s.Description, s.Input = strings.Join(strings.Fields(parts[0]), " "), schema.Bytes()
	return s
}
