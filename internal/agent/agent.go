// Package agent is the hinge between the hosts and everything that can hold a conversation.
//
// It promises two interfaces. Behind Driver each agent keeps all that is known of it: its names, where it is on this
// machine, what this version of it can do, the command line for what a person wants, the truth about how it ended.
// Behind Mind it answers the messages of a conversation, one after the other. A Driver refuses to start anything: it
// answers from files and data alone, so asking it is quick and safe in any directory. Only a Turn of a Mind starts the
// agent.
package agent

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

// Driver is all that we know of one agent: data, and functions that start no process.
type Driver interface {
	// Name is the word that selects the agent on a command line.
	Name() string
	// Describe tells what a person wants to know before installing it.
	Describe() About
	// Locate finds the installed program. If there is none, the error is a fault of code NOT_INSTALLED that carries the
	// command which installs it.
	Locate(Env) (Install, error)
	// Matrix is what this version can do. An unknown version ("") is taken for the newest that was measured.
	Matrix(version string) Matrix
	// Command translates what is wanted into the agent's own words. Warnings say what was lost on the way.
	Command(Spec) (Launch, []Warning, error)
	// Observe is called before the start; what it returns reads the agent's own records after the end.
	Observe(Launch) Observer
	// Decode reads the agent's output in that form. It returns nil if the form is plain text.
	Decode(setting.Output) Decoder
	// Classify tells the truth about the end of a run whose events were read. Nil: it succeeded.
	Classify(Exit, []event.Event) *fault.Fault
	// Mind prepares a conversation. Nothing is started before the first Turn. It refuses what the agent cannot keep.
	Mind(context.Context, Spec, Services) (Mind, error)
}

// About describes an agent independently of this machine.
type About struct {
	Title   string // its name for people
	Binary  string // the program's name, without extension
	Package string // its name in the npm registry; empty: not from there
	// installs the version that this program was measured with; can be typed unchanged, and repeated without harm
	InstallCommand string
	Login          string   // how a person logs in, as a command or a sentence
	Aliases        []string // other words that select it
	Custom         bool     // defined by the user's configuration
	BuiltIn        bool     // it is a part of this program, and so always here
	// its conversations are one process for many turns, which takes images and further directories and asks its
	// questions
	Lasting  bool
	Provides bool // its models are behind no API of their own, so --provider may name it too
	// the names in a workspace under which it looks for what it runs or obeys: only a person changes them
	Settings []string
	// beneath the home directory: where it keeps logins and conversations, which no tool reads
	Private []string
	// Obeys says what it makes of a file of a repository in a conversation, once a person has trusted the content;
	// empty: nothing. nil: it reads none
	Obeys func(file string) string
	// Traps are files with which a repository starts programs, widens what is allowed or gives instructions, by their
	// names in it: a rehearsal sees whether they do. Each program leaves a mark in the directory that Marks stands for.
	// Nothing is among them for which an agent would fetch something. nil: none are known.
	Traps func() map[string]string
	// of the environment that it reads: its login, addresses, settings. X_* stands for all that begin so
	Variables []string
}

// Marks stands in a file of About.Traps for a directory.
const Marks = "$MARKS"

// Beneath says whether a file lies in a directory of that name, at any depth.
func Beneath(file, directory string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(filepath.Dir(file)), "/"), directory)
}

// Env is what a Driver may know of the surroundings.
type Env struct {
	Lookup func(name string) (string, bool) // a variable of the environment
	// where the agent will work; untrusted, so no program is ever looked for there
	Dir string
	// the version that the program, by its real path, said when it was asked; nil: none was asked
	Said func(program string) string
}

// Where the version of an Install was read.
const (
	FromPackageJSON = "package.json"
	FromProgram     = "program" // it said so when it was asked
)

// Install is one installed agent.
type Install struct {
	Path        string // as found in PATH; this is what is started
	RealPath    string // Path without symbolic links
	Version     string // empty: unknown
	VersionFrom string // FromPackageJSON, FromProgram, or empty
	// Program is the executable that the script at RealPath would hand over to, where that is known for sure:
	// conversations start it in the script's place. Empty: what is started is Path.
	Program string
}

// Spec is what is wanted of an agent.
type Spec struct {
	Install     Install
	Mode        setting.Mode
	Shared      setting.Shared
	Passthrough []string   // what a person adds in the agent's own words; it follows everything else
	Dir         string     // where the agent works, absolute
	Env         []string   // the environment that it gets, before the driver adds to it
	Machine     Machine    //
	Fresh       string     // a new UUID that the driver may use as the session's id
	Resume      string     // the agent's own id of a session to go on with
	Schema      []byte     // JSON schema that the answer has to fit, compact; nil: none
	Temp        string     // a private directory for Launch.Files. It is made only when there are some
	Rehearsal   *Rehearsal // not nil: on a scripted model, without login or network
	Terms       Terms
	// Trusted reports whether a person has reviewed exactly that content of a file. In a conversation, the agent gets
	// none of a repository's instructions that were not reviewed. nil: nothing was reviewed.
	Trusted func(path string, content []byte) bool
	// Copy is what was trusted at a path, from a copy of ours. nil: there are none.
	Copy func(path string) ([]byte, bool)
}

// Terms are what a host asks of a conversation beyond the shared flags. A driver honours each or refuses it in Mind,
// with a fault of code UNSUPPORTED that names it: none is passed over.
type Terms struct {
	Mode     setting.Approval // empty: as Shared.Approval says
	Continue bool             // go on with the newest session of the directory
	Fork     bool             // continue a copy of the session, and leave the session unchanged
	Allow    []string         // calls that need no question, in the words of docs/rules.md
	Deny     []string         // calls that never run; a bare name takes the tool away
	Tools    []string         // the agent's own tools that there are, beside those of servers; nil: all
	Network  string           // what commands reach: off, on, or hosts separated by commas; empty: as the agent has it
	Dirs     []string         // further directories in which files may be worked on, absolute
	System   string           // in place of the agent's own instructions
	Append   string           // behind them
	MaxTurns int              // answers of the model in a turn; 0: any number
	MaxUSD   float64          // what the conversation may cost from its opening on; 0: anything
	// MCP servers, as the JSON object mcpServers; those of the type sdk are reached through Services.Serve
	Servers   []byte
	OnlyThese bool     // no other servers than those
	Helpers   []Helper // sub-agents beside the agent's own
}

// Helper is a sub-agent that a host defines.
type Helper struct {
	Name, Description, Prompt string
	Tools                     []string // nil: those of the agent
	Model                     string   // empty: that of the agent
}

// Machine is what a driver has to know of the machine beside PATH.
type Machine struct {
	Root bool                      // we are the superuser
	OS   string                    // as runtime.GOOS
	Has  func(program string) bool // is there such a program in PATH
}

// Rehearsal points an agent to a model server on this machine, so that it works without login or network.
type Rehearsal struct {
	URL   string // http://127.0.0.1:PORT
	Key   string // what the server accepts as API key
	Model string // the name of a model, as a person would give it to --model
	Home  string // a private home, not beneath the system's temporary directory, where codex refuses to work
	// Patient leaves the agent's own retries on failures as they are. Otherwise it fails fast wherever it can be told
	// to.
	Patient bool
}

// Launch is a program ready to be started.
type Launch struct {
	Path       string
	Args       []string // without the program's name
	Translated int      // Args[:Translated] are ours, the rest is the passthrough
	Env        []string // complete
	Dir        string
	Prompt     PromptBy
	PromptAt   int      // with ByArgument: the place in Args where the prompt goes
	PromptBare bool     // with ByArgument: the agent would take a prompt that begins with "-" for a flag
	Files      []File   // to be written before the start, and removed after the end unless Keep
	Session    string   // the agent's own id, where we could choose it or a person named it
	Policies   []Policy // what holds, and what was only asked for
	Refusals   []Refusal
	Native     bool  // Spec.Schema is passed on to the agent itself
	UsageCodes []int // exit codes with which the agent rejects its arguments
	// the exit code with which the agent asks to be started anew, as it is, in front of a person; 0: none
	Again       int
	Spec        Spec // what it was made from
	Interactive bool
}

// PromptBy is how the prompt of a one-shot run gets to the agent.
type PromptBy uint8

// The ways. Installed agents of ours get it on stdin; the others are for agents that a user defines.
const (
	ByStdin PromptBy = iota
	ByArgument
)

// File is a file that a launch needs.
type File struct {
	Path string
	Data []byte
	Keep bool // it stays: a part of the private home of a rehearsal
}

// Policy says of one shared flag what was wanted and what is in force.
type Policy struct {
	Feature  string `json:"feature"` // approval, sandbox, web
	Wanted   string `json:"wanted"`
	Origin   string `json:"origin"` // default, derived, configured, typed
	Enforced Level  `json:"enforced" doc:"yes: the agent enforces it; nearest: something close to it; no: nothing does"`
	Note     string `json:"note,omitempty"`
}

// Refusal is a condition under which this agent is known to fail. It is told after the failure, not before: we may be
// wrong.
type Refusal struct {
	Reason  string // one sentence
	Fix     string // what to do
	Command string // the command that does it, if one does
	Codes   []int  // the exit codes with which the agent fails for that reason; none: 1
}

// Explains says whether the agent can have ended like that for this reason: by itself, with an exit code that belongs
// to it.
func (r Refusal) Explains(x Exit) bool {
	switch {
	case x.Failed != nil || x.Signal != "" || x.ByUs != "":
		return false
	case len(r.Codes) == 0:
		return x.Code == 1
	}
	return slices.Contains(r.Codes, x.Code)
}

// Warning is something that a person should know about the translation.
type Warning struct {
	Flag    string // such as "--sandbox"
	Value   string
	Kind    WarningKind
	Message string // one clause in lower case, without a stop
}

// WarningKind says what sort of loss it is.
type WarningKind string

// The kinds of warnings.
const (
	Unsupported WarningKind = "unsupported" // typed, and the agent has nothing like it: ignored
	Closest     WarningKind = "nearest"     // typed, and the agent does something close to it
	// approval is above prompt and no sandbox holds, or PATH leads into the repository
	Unguarded WarningKind = "unguarded"
)

// Exit is how the process of an agent ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // that signal
	ByUs   string // why we ended it: a signal's name, "timeout", or empty
	Stderr []byte // the last 64 KiB of what it wrote there, where we could read along
	Failed error  // it could not be started
}

// Observer reads what happened from the agent's own records.
type Observer interface {
	After(Exit) Evidence
}

// Evidence is what is known of a run. What is not known is said to be so.
type Evidence struct {
	Session     string
	Denials     []event.Denial
	DenialsTold bool         // the agent records denials where we looked: none found means none
	Answered    Tri          // the model took a turn and its answer arrived
	Fault       *fault.Fault // what ended the run, where the records say so
	Usage       *event.Usage
	Model       string
	Records     []string     // the files that were read
	Walls       *event.Walls // what really held its commands, where that is on record
}

// Tri is yes, no or unknown.
type Tri uint8

// The three answers.
const (
	Unknown Tri = iota
	Yes
	No
)

// Decoder is the reading side of a wire, without I/O: bytes in, events out. The bytes may be cut anywhere.
type Decoder interface {
	Feed([]byte) []event.Event
	// End returns what is still open, and an Ended event of our own where the agent sent none.
	End(Exit) []event.Event
}
