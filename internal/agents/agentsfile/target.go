package agentsfile

import "omniagent/internal/kit/literal"

// Name is a name and its place.
type Name struct {
	Text string
	Pos  literal.Pos
}

// Target is an agent that the file defines. The caller checks whether it may replace another, and whether the agent
// that it inherits from exists.
type Target struct {
	ID          string
	Pos         literal.Pos // of the id
	DisplayName string
	Aliases     []Name
	Inherits    Name // Text is empty if it inherits from none
	CLI         *CLI // nil when the file says nothing about its command line
}

// CLI is the command line of the agent.
type CLI struct {
	Interactive, OneShot Call
	ACP                  Call // Command is empty: it does not speak the Agent Client Protocol
	Prompt               Prompt
	Approval             Flag // of the values prompt, auto-edit, yolo
	Sandbox              Flag // workspace-write, off
	Output               Flag // text, json, stream-json
	Model                Model
	Web                  Web
	Passthrough          string // where arguments after -- go: PassAfter or PassBeforePrompt
}

// Call is a program with the fixed arguments of a mode.
type Call struct {
	Command    string
	CommandPos literal.Pos
	Args       []string
	Offer      []string // of the mode acp: what we carry out for the agent, of OfferFiles and OfferTerminals
}

// What may be offered to an agent over ACP.
const (
	OfferFiles     = "files"
	OfferTerminals = "terminals"
)

// The modes of a call, as the file writes them.
const (
	Interactive = "interactive"
	OneShot     = "oneShot"
	ACP         = "acp"
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

// Prompt defines how the agent gets the prompt.
type Prompt struct {
	Type     string   // PromptFlag, PromptPositional or PromptStdin
	Flag     []string // with PromptFlag: the arguments before the prompt
	Position string   // with PromptPositional: First or Last
}

// Flag maps each value of a shared flag to the arguments it adds, which may be empty. nil, written as null, and a
// missing value mean that the value is not supported.
type Flag struct {
	Values map[string][]string
	ByMode map[string]map[string][]string // by Interactive and OneShot
}

// Args returns the arguments for a value in a mode. It reports false if the value is not supported. An entry for the
// mode, even null, has precedence.
func (f Flag) Args(mode, value string) ([]string, bool) {
	if args, ok := f.ByMode[mode][value]; ok {
		return args, args != nil
	}
	args := f.Values[value]
	return args, args != nil
}

// Model defines the arguments that choose a model: Flag and then its name. Without a Flag, no model can be chosen.
type Model struct {
	Flag  []string
	Modes []string // empty for every mode
}

// Web has the arguments that turn the web on and off; nil: not supported.
type Web struct {
	On, Off []string
	Modes   []string // empty for every mode
}
