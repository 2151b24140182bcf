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

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/foreignconfig"
)

// Driver is what we know of one agent: data, and functions that start no process.
type Driver interface {
	// Name returns the word that selects the agent on a command line.
	Name() string
	// Describe returns the facts that do not depend on this machine.
	Describe() About
	// Locate finds the installed program. If it is not installed, the error is a NOT_INSTALLED fault with the command
	// that installs it.
	Locate(Env) (Install, error)
	// Matrix returns what a version can do. An empty version is treated as the newest one measured.
	Matrix(version string) Matrix
	// Command translates a request into the agent's own flags. Warnings report what could not be translated.
	Command(Spec) (Launch, []Warning, error)
	// Observe is called before the agent starts. The Observer reads the agent's own records after it ends.
	Observe(Launch) Observer
	// Decode returns a decoder for an output format, or nil if the format is plain text.
	Decode(setting.Output) Decoder
	// Classify returns why a run failed, judging by its exit and its events, or nil if it succeeded.
	Classify(Exit, []event.Event) *fault.Fault
	// Mind prepares a conversation. It refuses terms that the agent cannot keep, and starts nothing before the first
	// Turn.
	Mind(context.Context, Spec, Services) (Mind, error)
}

// About describes an agent independently of this machine.
type About struct {
	Title   string // its name for people
	Binary  string // the program's name, without extension
	Package string // its name in the npm registry; empty if it is not there
	// installs the version that was measured; it can be typed as is, and is safe to repeat
	InstallCommand string
	Login          string   // how a person logs in, as a command or a sentence
	LoginFiles     []string // files in the home directory of which one is there once a login is stored
	LoginKeys      []string // variables that are a login
	Aliases        []string // other words that select it
	Custom         bool     // defined by the user's configuration
	BuiltIn        bool     // it is part of this program
	// a conversation is one process, which takes images and further directories and can ask questions
	Lasting  bool
	Provides bool // its models have no API of their own, so --provider may name the agent
	// names in a workspace from which it reads programs or settings; only a person may change them
	Settings []string
	// names below those that the agent itself creates while it works
	OwnSettings []string
	// further names in a workspace that it obeys and that commands may change. Our hosts hide them, and Settings and
	// RepoFiles, from every agent until a person has trusted the content
	Obeys []string
	// places in the home directory with logins and conversations, which no tool may read
	Private []string
	// Keeps returns the places of the agent's own data, given the user's environment; nil if they are unknown
	Keeps  func(env []string) Keeps
	Caches []string // names in the temporary directory under which it stores what it has compiled
	// patterns of names in the temporary directory for what only the agent itself reads again, while it runs
	Scratch []string
	// empty directories and files that its sandbox creates in each directory where commands may write, and that stay
	// there, if only because it is killed
	Placeholders []string
	Parts        []string // files of the agent that its command line names, absolute
	// RepoEffect describes what the agent does in a conversation with a trusted file of a repository, or returns ""
	// if it ignores the file; nil if it ignores all files
	RepoEffect func(file string) string
	// RepoFiles lists the files and directories of a repository that RepoEffect describes
	RepoFiles []string
	// Traps returns repository files, by name, that try to start programs, widen permissions or give instructions. A
	// rehearsal observes whether the agent obeys them. Each program leaves a mark in the directory that Marks stands
	// for. No trap makes an agent download anything. nil if none are known
	Traps func() map[string]string
	// Archive returns the conversations that the agent stores, given the user's environment; nil if they cannot be
	// found
	Archive func(env []string) Archive
	// Servers returns where the agent's configuration holds an MCP server of that name, and the entry for a server
	// started by argv; nil if the agent has no such file
	Servers func(env []string, name string, argv []string) foreignconfig.Place
	// environment variables that it reads: logins, addresses, settings; X_* matches every name that begins with X_
	Variables []string
	// further variables that it reads only with a certain cloud, by the variable that chooses the cloud
	Clouds map[string][]string
}

// Find returns the agent that a word selects, a name or an alias in any case.
func Find[D Driver](all []D, word string) (found D, ok bool) {
	selects := func(name string) bool { return strings.EqualFold(name, word) }
	i := slices.IndexFunc(all, func(d D) bool {
		return selects(d.Name()) || slices.ContainsFunc(d.Describe().Aliases, selects)
	})
	if i >= 0 {
		found = all[i]
	}
	return found, i >= 0
}

// Keeps holds the absolute paths of an agent's logins, settings, conversations and caches.
type Keeps struct {
	Dirs  []string
	Files []string // single files in a home directory, which it may replace
}

// Marks is the placeholder in About.Traps for the directory of the marks.
const Marks = "$MARKS"

// Beneath reports whether a file lies in a directory of that name, at any depth.
func Beneath(file, directory string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(filepath.Dir(file)), "/"), directory)
}

// Env is the part of the environment that a Driver may use.
type Env struct {
	Lookup func(name string) (string, bool) // a variable of the environment
	// where the agent will work; it is not trusted, so programs are not looked up there
	Dir string
	// returns the version that a program, by its real path, printed; nil if no program was asked
	Printed func(program string) string
}

// Install is one installed agent.
type Install struct {
	Path     string // as found in PATH; this is what is started
	RealPath string // Path without symbolic links
	Version  string // empty: unknown
	// Program is the executable that the script at RealPath would start. Conversations start it directly. If it is not
	// certain, Program is empty, and they start Path.
	Program string
}

// Spec is a request to an agent.
type Spec struct {
	Install     Install
	Mode        setting.Mode
	Shared      setting.Shared
	Passthrough []string // a person's own arguments for the agent; they come last
	Dir         string   // where the agent works, absolute
	Env         []string // its environment, before the driver changes it
	Machine     Machine
	Fresh       string     // a new UUID that the driver may use as the session's id
	Resume      string     // the agent's own id of the session to resume
	Newest      bool       // resume the newest session of the directory; for a process that serves one call
	Provider    string     // the model API that a person chose; empty for the agent's choice
	Base        string     // the address that a person chose for it
	Schema      []byte     // compact JSON schema of the answer, or nil
	Retries     int        // how often the native agent asks again for an answer that fits it
	Temp        string     // a private directory for Launch.Files, created if needed
	Rehearsal   *Rehearsal // if not nil, use a scripted model, without login or network
	Terms       Terms
	// Trusted reports whether a person has reviewed exactly this content of a file. In a conversation, the agent gets
	// only the files of a repository that were reviewed. nil trusts nothing.
	Trusted func(path string, content []byte) bool
	// Copy returns our copy of a file's trusted content. It may be nil.
	Copy func(path string) ([]byte, bool)
	// Plain leaves the settings of a repository as they are, whether they were reviewed or not.
	Plain  bool
	Walled bool // it runs inside our walls, in which its own sandbox has to work
	// ReadOnly is set if our walls keep the agent from changing the workspace in any mode.
	ReadOnly bool
}

// Terms are a host's requests for a conversation beyond the shared flags. A driver keeps each of them, or refuses it in
// Mind with an UNSUPPORTED fault that names it. It ignores none.
type Terms struct {
	Mode     setting.Approval // empty for that of Shared.Approval
	Bypass   bool             // it may become yolo later, though it begins as another
	Continue bool             // resume the newest session of the directory
	Fork     bool             // continue a copy of the session, and leave the session unchanged
	Allow    []string         // calls that need no question, as rules: see docs/rules.md
	Deny     []string         // calls that never run; a bare name removes the tool
	Tools    []string         // the agent's own tools that are available, not counting those of servers; nil for all
	Network  string           // what commands can reach: off, on, packages, or hosts; empty for the agent's default
	Dirs     []string         // further directories whose files may be changed, absolute
	System   string           // replaces the agent's own instructions
	Append   string           // appended to them
	MaxTurns int              // model answers in a turn; 0 for no limit
	MaxUSD   float64          // cost of the conversation since it was opened; 0 for no limit
	// MCP servers, as the JSON object mcpServers; Services.Serve reaches those of type sdk
	Servers   []byte
	OnlyThese bool     // no other servers
	Helpers   []Helper // sub-agents in addition to the agent's own
	Transport string   // one of the constants below; empty means ByStream
	// Once promises that there is one message, and that no questions are answered. The agent may use its own mode for
	// that, unless Transport is ByStream.
	Once bool
}

// The transports of Terms.
const (
	ByChoice = "auto"   // for agents that a person talks to: ByACP where that is as safe as ByStream
	ByACP    = "acp"    // the Agent Client Protocol, with a process for the whole conversation
	ByStream = "stream" // the agent's own protocol, two-way if it has one
)

// Helper is a sub-agent that a host defines.
type Helper struct {
	Name, Description, Prompt string
	Tools                     []string // nil for those of the agent
	Model                     string   // empty for that of the agent
}

// Machine holds the facts about the machine that a driver needs.
type Machine struct {
	Root bool                      // this process runs as the superuser
	OS   string                    // as runtime.GOOS
	Has  func(program string) bool // whether PATH has a program
}

// Rehearsal points an agent to a model server on this machine, so that it needs neither login nor network.
type Rehearsal struct {
	URL   string // http://127.0.0.1:PORT
	Key   string // the API key that the server accepts
	Model string // the name of a model, as for --model
	Home  string // a private home, outside the system's temporary directory, in which codex refuses to work
}

// Launch is a program ready to be started.
type Launch struct {
	Path       string
	Args       []string // without the program's name
	Translated int      // Args[:Translated] are ours; the rest is the passthrough
	Env        []string // complete
	Dir        string
	Prompt     PromptBy
	PromptAt   int    // with ByArgument: the place in Args where the prompt goes
	PromptBare bool   // with ByArgument: a prompt that begins with "-" would be a flag
	Files      []File // written before the start, and removed after the end unless Keep is set
	Session    string // the agent's own id, if we could choose it or a person named it
	Policies   []Policy
	Refusals   []Refusal
	Native     bool  // Spec.Schema is passed on to the agent itself
	UsageCodes []int // exit codes with which the agent rejects its arguments
	// the exit code with which an interactive agent asks to be restarted unchanged; 0 if there is no such code
	RestartCode int
	Spec        Spec // the request
	Interactive bool
}

// PromptBy is how the agent gets the prompt of a one-shot run.
type PromptBy uint8

// The known agents get the prompt on stdin; custom agents may get it as an argument.
const (
	ByStdin PromptBy = iota
	ByArgument
)

// File is a file that a launch needs.
type File struct {
	Path string
	Data []byte
	Keep bool // do not remove it, as in the private home of a rehearsal
}

// Policy is the wanted value of one shared flag, and how far it is enforced.
type Policy struct {
	Feature  string `json:"feature"` // approval, sandbox, web
	Wanted   string `json:"wanted"`
	Origin   string `json:"origin"` // default, derived, configured, typed
	Enforced Level  `json:"enforced" doc:"yes: the agent enforces it; nearest: something close to it; no: nothing does"`
	Note     string `json:"note,omitempty"`
}

// Refusal is a condition under which an agent is known to fail. It is only reported after a failure, because we may be
// wrong.
type Refusal struct {
	Reason  string // one sentence
	Fix     string // what to do
	Command string // a command that does it, if there is one
	Codes   []int  // the exit codes with which the agent then fails; nil means 1
	Login   bool   // it is why the agent finds no login
}

// Explains reports whether the agent may have ended for this reason: it exited by itself, with one of the exit codes.
func (r Refusal) Explains(x Exit) bool {
	switch {
	case x.Failed != nil || x.Signal != "" || x.EndedBy != "":
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
	Message string // one clause in lower case, without a full stop
}

// WarningKind says how a request was changed.
type WarningKind string

// The kinds of warnings.
const (
	Unsupported WarningKind = "unsupported" // the agent does not have the typed value, which is ignored
	Closest     WarningKind = "nearest"     // the agent does something similar to the typed value
	// the approval is above prompt without a sandbox, or PATH leads into the repository
	Unguarded WarningKind = "unguarded"
)

// Exit is how the process of an agent ended.
type Exit struct {
	Code    int    // -1 when a signal ended it
	Signal  string // that signal
	EndedBy string // if we ended it, why: a signal's name, or "timeout"
	// the agent's own id of its session, if its protocol reported it; otherwise see Launch.Session
	Session string
	Stderr  []byte // the last 64 KiB of its stderr, if we could read it
	Failed  error  // it could not be started
}

// Observer learns what happened from the agent's own records.
type Observer interface {
	After(Exit) Evidence
}

// Evidence is what is known of a run.
type Evidence struct {
	Session      string
	Denials      []event.Denial
	DenialsKnown bool         // the agent records denials, so none is missing
	Answered     Tri          // an answer of the model arrived
	Fault        *fault.Fault // what ended the run, if the records say so
	Usage        *event.Usage
	Model        string
	Records      []string             // the files that were read
	Calls        []event.FinishedCall // of tools, in order, as far as they are recorded
	Walls        *event.Walls         // the walls that its commands really ran in, if recorded
}

// Tri is yes, no or unknown.
type Tri uint8

// The three answers.
const (
	Unknown Tri = iota
	Yes
	No
)

// Decoder is the reading side of a wire, without I/O: bytes in, events out. The input may be split at any byte.
type Decoder interface {
	Feed([]byte) []event.Event
	// End returns the last events, with a synthetic Ended if the agent did not end its turn.
	End(Exit) []event.Event
}
