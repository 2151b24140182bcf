package acp

import "encoding/json"

// Offered lists what a client does for an agent of version 1. Version 2 has no such requests.
type Offered struct{ Files, Terminals bool }

// The requests of an agent to its client.
const (
	ReadFile        = "fs/read_text_file"
	WriteFile       = "fs/write_text_file"
	CreateTerminal  = "terminal/create"
	ReadTerminal    = "terminal/output"
	WaitForTerminal = "terminal/wait_for_exit"
	KillTerminal    = "terminal/kill"
	ReleaseTerminal = "terminal/release"
)

// Has reports whether a request is for something offered.
func (o Offered) Has(method string) bool {
	switch method {
	case ReadFile, WriteFile:
		return o.Files
	case CreateTerminal, ReadTerminal, WaitForTerminal, KillTerminal, ReleaseTerminal:
		return o.Terminals
	}
	return false
}

// Chore holds the parameters of such a request. Which fields are set depends on the method.
type Chore struct {
	Path, Content string
	Line, Limit   int // lines to read: the first one, counted from 1, and how many; 0 for all

	Command string
	Args    []string
	Env     []struct{ Name, Value string }
	Cwd     string
	Bytes   int `json:"outputByteLimit"` // limit of the output; 0 for no limit

	Terminal string `json:"terminalId"`
}

// ReadChore reads the parameters of a request.
func ReadChore(params json.RawMessage) (c Chore, ok bool) {
	err := json.Unmarshal(params, &c)
	return c, err == nil
}

// FileText answers ReadFile.
func FileText(text string) any { return object{"content": text} }

// Begun answers CreateTerminal.
func Begun(terminal string) any { return object{"terminalId": terminal} }

// Exited answers WaitForTerminal. Exactly one of the arguments is set.
func Exited(code *int, signal string) any {
	o := object{"exitCode": code, "signal": nil}
	if signal != "" {
		o["signal"] = signal
	}
	return o
}

// Printed answers ReadTerminal. exited is nil while the command runs.
func Printed(output string, truncated bool, exited any) any {
	o := object{"output": output, "truncated": truncated}
	if exited != nil {
		o["exitStatus"] = exited
	}
	return o
}

// Carried answers all other requests.
func Carried() any { return object{} }
