// Package agent defines the two interfaces of a coding agent.
//
// A Driver knows one agent: its names, where it is installed, what its version can do, the command line for what a
// person wants, and how a run ended. It starts nothing and answers from files and data alone, so it is fast and safe in
// any directory. A Mind answers the messages of a conversation, one after the other. Only a Turn of a Mind starts the
// agent.
package agent

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/hookup"
	"omniagent/internal/setting"
)

// Driver is what we know of one agent: data, and functions that start no process.
type Driver interface {
	// Name returns the word that selects the agent on a command line.
	Name() string
	// Describe returns what does not depend on this machine.
	Describe() About
	// Locate finds the installed program. If there is none, the error is a fault of code NOT_INSTALLED with the command
	// that installs it.
	Locate(Env) (Install, error)
	// Matrix returns what a version can do. An unknown version ("") is taken for the newest that was measured.
	Matrix(version string) Matrix
	// Command translates a request into the agent's own flags. Warnings report what could not be translated.
	Command(Spec) (Launch, []Warning, error)
	// Observe is called before the start. The Observer reads the agent's own records after the end.
	Observe(Launch) Observer
	// Decode reads the agent's output in that form. It returns nil if the form is plain text.
	Decode(setting.Output) Decoder
	// Classify returns why a run failed, by its end and its events, or nil if it succeeded.
	Classify(Exit, []event.Event) *fault.Fault
	// Mind prepares a conversation. It refuses terms that the agent cannot keep, and starts nothing before the first
	// Turn.
	Mind(context.Context, Spec, Services) (Mind, error)
}

// About describes an agent independently of this machine.
type About struct {
	Title   string // its name for people
	Binary  string // the program's name, without extension
	Package string // its name in the npm registry; empty: it is not there
	// installs the version that this program was measured with; can be typed unchanged, and repeated without harm
	InstallCommand string
	Login          string   // how a person logs in, as a command or a sentence
	Aliases        []string // other words that select it
	Custom         bool     // defined by the user's configuration
	BuiltIn        bool     // it is part of this program
	// a conversation is one process, which takes images and further directories and can ask questions
	Lasting  bool
	Provides bool // its models have no API of their own, so --provider may name the agent
	// names in a workspace from which it reads programs or settings: only a person may change them
	Settings []string
	// names beneath those that it makes itself while it works
	Makes []string
	// places in the home directory with logins and conversations, which no tool may read
	Private []string
	// Keeps returns what belongs to the agent itself, for a user with that environment. nil: nothing is known
	Keeps func(env []string) Keeps
	Parts []string // files of the agent that its command line names, absolute
	// Obeys returns what the agent does in a conversation with a repository's file of trusted content; empty: nothing.
	// nil: it obeys no file
	Obeys func(file string) string
	// Brings are the names in a repository, of files and of directories, beneath which Obeys finds something
	Brings []string
	// Traps returns files, by their names in a repository, that start programs, allow more, or give instructions: a
	// rehearsal observes whether they do. Each program leaves a mark in the directory that Marks stands for. None of
	// them makes an agent download anything. nil: none are known.
	Traps func() map[string]string
	// Archive returns the conversations that the agent keeps by itself, for a user with that environment. nil: none can
	// be found
	Archive func(env []string) Archive
	// Servers returns where a user with that environment keeps the MCP servers of the agent: the entry of that name,
	// for a server that these words start. nil: no file of the agent has them
	Servers func(env []string, name string, argv []string) hookup.Place
	// environment variables that it reads: logins, addresses, settings. X_* stands for all that begin with X_
	Variables []string
}

// Keeps is where an agent keeps its logins, settings, conversations and caches, by absolute paths.
type Keeps struct {
	Dirs  []string
	Files []string // single files in a home directory, which it may replace
}

// Marks stands in a file of About.Traps for a directory.
const Marks = "$MARKS"

// Beneath reports whether a file lies in a directory of that name, at any depth.
func Beneath(file, directory string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(filepath.Dir(file)), "/"), directory)
}

// Env is what a Driver may know of the environment.
type Env struct {
	Lookup func(name string) (string, bool) // a variable of the environment
	// where the agent will work; it is not trusted, so no program is searched for there
	Dir string
	// the version that a program printed when it was asked, by its real path; nil: none was asked
	Printed func(program string) string
}

// Where the version of an Install was read.
const (
	FromPackageJSON = "package.json"
	FromProgram     = "program" // it printed its version when it was asked
)

// Install is one installed agent.
type Install struct {
	Path        string // as found in PATH; this is what is started
	RealPath    string // Path without symbolic links
	Version     string // empty: unknown
	VersionFrom string // FromPackageJSON, FromProgram, or empty
	// Program is the executable that the script at RealPath would start, if that is certain: conversations start it
	// directly. Empty: they start Path.
	Program string
}

// Spec is a request to an agent.
type Spec struct {
	Install     Install
	Mode        setting.Mode
	Shared      setting.Shared
	Passthrough []string // a person's arguments in the agent's own words; they come last
	Dir         string   // where the agent works, absolute
	Env         []string // its environment, before the driver changes it
	Machine     Machine
	Fresh       string     // a new UUID that the driver may use as the session's id
	Resume      string     // the agent's own id of the session to resume
	Newest      bool       // a process for one call resumes the newest session of the directory
	Provider    string     // the model API that a person chose; empty: the agent's choice
	Base        string     // the address that a person chose for it
	Schema      []byte     // JSON schema of the answer, compact; nil: none
	Temp        string     // a private directory for Launch.Files, created if there are any
	Rehearsal   *Rehearsal // not nil: use a scripted model, without login or network
	Terms       Terms
	// Trusted reports whether a person has reviewed exactly that content of a file. In a conversation, the agent gets
	// none of a repository's instructions that were not reviewed. nil: nothing was reviewed.
	Trusted func(path string, content []byte) bool
	// Copy returns our copy of the trusted content of a file. nil: there are no copies.
	Copy   func(path string) ([]byte, bool)
	Walled bool // walls of ours stand around it, in which its own sandbox has to work
	// ReadOnly: walls of ours keep the agent from changing the workspace, whatever the mode says.
	ReadOnly bool
}

// Terms are a host's requests for a conversation beyond the shared flags. A driver keeps each or refuses it in Mind,
// with a fault of code UNSUPPORTED that names it. It ignores none.
type Terms struct {
	Mode     setting.Approval // empty: as Shared.Approval says
	Continue bool             // resume the newest session of the directory
	Fork     bool             // continue a copy of the session, and leave the session unchanged
	Allow    []string         // calls that need no question, in the words of docs/rules.md
	Deny     []string         // calls that never run; a bare name takes the tool away
	Tools    []string         // the available tools of the agent itself, without those of servers; nil: all
	Network  string           // what commands reach: off, on, packages, or hosts; empty: the agent's default
	Dirs     []string         // further directories in which files may be worked on, absolute
	System   string           // replaces the agent's own instructions
	Append   string           // is appended to them
	MaxTurns int              // answers of the model in a turn; 0: no limit
	MaxUSD   float64          // cost of the conversation from its opening on; 0: no limit
	// MCP servers, as the JSON object mcpServers; Services.Serve reaches those of type sdk
	Servers   []byte
	OnlyThese bool     // no other servers
	Helpers   []Helper // sub-agents in addition to the agent's own
	Transport string   // one of the constants below; empty: as ByStream
	// Once: one message comes, and nothing is asked about it. An agent that has a mode of its own for that may work in
	// it, unless Transport is ByStream.
	Once bool
}

// The transports of Terms.
const (
	ByChoice = "auto"   // what suits an agent that a person answers: ByACP, where that is as safe as ByStream
	ByACP    = "acp"    // the Agent Client Protocol, with a process for the whole conversation
	ByStream = "stream" // the agent's own protocol, two-way where it has one
)

// Helper is a sub-agent that a host defines.
type Helper struct {
	Name, Description, Prompt string
	Tools                     []string // nil: those of the agent
	Model                     string   // empty: that of the agent
}

// Machine is what a driver has to know of the machine.
type Machine struct {
	Root bool                      // this process is the superuser's
	OS   string                    // as runtime.GOOS
	Has  func(program string) bool // whether PATH has a program
}

// Rehearsal points an agent to a model server on this machine, so that it needs neither login nor network.
type Rehearsal struct {
	URL   string // http://127.0.0.1:PORT
	Key   string // what the server accepts as API key
	Model string // the name of a model, as a person would give it to --model
	Home  string // a private home, not in the system's temporary directory, where codex refuses to work
	// Patient keeps the agent's own retries after failures. Otherwise it fails fast, if it has a switch for that.
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
	PromptBare bool     // with ByArgument: a prompt that begins with "-" would be a flag
	Files      []File   // written before the start, and removed after the end unless Keep
	Session    string   // the agent's own id, if we could choose it or a person named it
	Policies   []Policy // what was wanted, and what is enforced
	Refusals   []Refusal
	Native     bool  // Spec.Schema is passed on to the agent itself
	UsageCodes []int // exit codes with which the agent rejects its arguments
	// the exit code with which the agent, in front of a person, asks to be restarted unchanged; 0: none
	Again       int
	Spec        Spec // the request
	Interactive bool
}

// PromptBy is how the agent gets the prompt of a one-shot run.
type PromptBy uint8

// The ways. The known agents get it on stdin; a user's own agents may get it as an argument.
const (
	ByStdin PromptBy = iota
	ByArgument
)

// File is a file that a launch needs.
type File struct {
	Path string
	Data []byte
	Keep bool // it is not removed, as in the private home of a rehearsal
}

// Policy is what was wanted of one shared flag, and what is enforced.
type Policy struct {
	Feature  string `json:"feature"` // approval, sandbox, web
	Wanted   string `json:"wanted"`
	Origin   string `json:"origin"` // default, derived, configured, typed
	Enforced Level  `json:"enforced" doc:"yes: the agent enforces it; nearest: something close to it; no: nothing does"`
	Note     string `json:"note,omitempty"`
}

// Refusal is a condition under which an agent is known to fail. It is reported after a failure, not before, because we
// may be wrong.
type Refusal struct {
	Reason  string // one sentence
	Fix     string // what to do
	Command string // a command that does it, if there is one
	Codes   []int  // the exit codes with which the agent then fails; nil: 1
}

// Explains reports whether the agent may have ended for this reason: by itself, with one of the exit codes.
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

// WarningKind is the sort of loss.
type WarningKind string

// The kinds of warnings.
const (
	Unsupported WarningKind = "unsupported" // a typed value that the agent does not have: it is ignored
	Closest     WarningKind = "nearest"     // a typed value, in place of which the agent does something similar
	// the approval is above prompt without a sandbox, or PATH leads into the repository
	Unguarded WarningKind = "unguarded"
)

// Exit is how the process of an agent ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // that signal
	ByUs   string // why we ended it: a signal's name, "timeout", or empty
	// the agent's own id of its session, where its protocol told it; empty: see Launch.Session
	Session string
	Stderr  []byte // the last 64 KiB of its stderr, if we could read that
	Failed  error  // it could not be started
}

// Observer reads what happened from the agent's own records.
type Observer interface {
	After(Exit) Evidence
}

// Evidence is what is known of a run.
type Evidence struct {
	Session      string
	Denials      []event.Denial
	DenialsKnown bool         // no denial can be missing: the agent records them
	Answered     Tri          // an answer of the model arrived
	Fault        *fault.Fault // what ended the run, if the records say so
	Usage        *event.Usage
	Model        string
	Records      []string     // the files that were read
	Walls        *event.Walls // what really held its commands, if that is recorded
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
	// End returns the last events, with a synthetic Ended if the agent did not end its turn.
	End(Exit) []event.Event
}
