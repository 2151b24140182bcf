package agentsdir

import "omniagent/internal/literal"

// Name is a name with the place where it is written.
type Name struct {
	Text string
	Pos  literal.Pos
}

// Target is an agent that the file describes. Whether it may replace another, and whether what it inherits from exists,
// is for the caller to decide.
type Target struct {
	ID          string
	Pos         literal.Pos // of the id
	DisplayName string
	Aliases     []Name
	Inherits    Name // Text is empty when it inherits from nothing
	Override    bool
	OverridePos literal.Pos
	CLI         *CLI // nil when the file says nothing about its command line
}

// CLI says how the agent is called.
type CLI struct {
	Pos                  literal.Pos
	Interactive, OneShot Call
	Prompt               Prompt
	Approval             Flag // of the values prompt, auto-edit, yolo
	Sandbox              Flag // workspace-write, off
	Output               Flag // text, json, stream-json
	Model                Model
	Web                  Web
	Passthrough          string // where arguments behind -- go: PassAfter or PassBeforePrompt
}

// Call is a program with the arguments that a mode always has.
type Call struct {
	Command    string
	CommandPos literal.Pos
	Args       []string
}

// The modes of a call, as the file writes them.
const (
	Interactive = "interactive"
	OneShot     = "oneShot"
)

// The ways in which an agent takes its prompt.
const (
	PromptFlag       = "flag"
	PromptPositional = "positional"
	PromptStdin      = "stdin"
)

// Where a prompt or arguments go.
const (
	First            = "first"
	Last             = "last"
	PassAfter        = "after"
	PassBeforePrompt = "before-prompt"
)

// Prompt says how the prompt reaches the agent.
type Prompt struct {
	Type     string   // PromptFlag, PromptPositional or PromptStdin
	Flag     []string // with PromptFlag: what stands before the prompt
	Position string   // with PromptPositional: First or Last
}

// Flag says what each value of a shared flag becomes. A list is what is added, and may be empty; nil, written as null,
// and a value that is not in the map are not supported.
type Flag struct {
	Values map[string][]string
	ByMode map[string]map[string][]string // by Interactive and OneShot
}

// Args returns what a value becomes in a mode; false when it is not supported. What is said for the mode comes before
// what is said for all, null included.
func (f Flag) Args(mode, value string) ([]string, bool) {
	if args, ok := f.ByMode[mode][value]; ok {
		return args, args != nil
	}
	args := f.Values[value]
	return args, args != nil
}

// Model says how a model is chosen: Flag and then its name. Without a Flag it cannot be.
type Model struct {
	Flag  []string
	Modes []string // empty for every mode
}

// Web says what turns the web on and off; nil where that is not supported.
type Web struct {
	On, Off []string
	Modes   []string // empty for every mode
}
