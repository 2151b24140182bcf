package contract

import (
	"cmp"
	"context"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
)

// Class is the kind of standard output.
type Class string

const (
	Envelope Class = "envelope" // one JSON object, or its plain form; everything in this package applies
	Listing  Class = "listing"  // an envelope; with --stream the rows of its list, as they are made
	Events   Class = "events"   // an envelope; with --stream after lines of Call.Emit
	Script   Class = "script"   // a text that another program reads; an envelope only with --output, or for a failure
	Stream   Class = "stream"   // only the command's own protocol
	Printout Class = "printout" // lines or text without a protocol, so a failure is an envelope
	Terminal Class = "terminal" // a conversation with a person
)

// enveloped reports whether the result is, or can be, an envelope.
func (c Class) enveloped() bool { return c.wire() == string(Envelope) }

// streams reports whether the command has --stream.
func (c Class) streams() bool { return c == Listing || c == Events }

// wire returns the class as --schema names it, or "" for one that does not exist.
func (c Class) wire() string {
	switch c {
	case Envelope, Listing, Events, Script:
		return string(Envelope)
	case Stream, Printout:
		return string(Stream)
	case Terminal:
		return string(Terminal)
	}
	return ""
}

// Danger says what a command may change.
type Danger string

const (
	Safe        Danger = "safe"        // reads only
	Mutating    Danger = "mutating"    // creates or changes
	Destructive Danger = "destructive" // destroys something for ever
)

// Effect says what a command that is not safe did. Every result of such a command must have one.
type Effect string

const (
	Created Effect = "created"
	Updated Effect = "updated"
	Deleted Effect = "deleted"
	Noop    Effect = "noop"
)

// would returns the effect that a dry run reports.
func (e Effect) would() Effect {
	verb := map[Effect]Effect{Created: "create", Updated: "update", Deleted: "delete", Noop: "noop"}[e]
	verb = cmp.Or(verb, e)
	return "would_" + verb
}

// Command declares one subcommand. A field that does not apply stays zero, except that Exits and Scopes must not be nil
// even if they are empty.
type Command struct {
	Path     string // its words, such as "config set"
	Summary  string // one line, no period
	Detail   string // further paragraphs of the help
	Class    Class
	Danger   Danger
	Params   []Param
	Rules    []Rule // dependencies between parameters
	Exits    []Exit
	Output   reflect.Type // of Result.Data; TypeOf gives it
	Version  string       // of the shape of the output, such as "1.0.0"
	Volatile []string     // fields of the data that differ between calls, dotted
	Examples []Example

	Timeout     time.Duration             // zero: 30 s
	Clock       func(*Call) time.Duration // a limit that Run enforces itself; nil: the framework enforces Timeout
	LongRunning bool                      // may take longer than 5 s; has heartbeats
	NoConfig    bool                      // reads no configuration, so it works even if that is invalid
	LooseConfig bool                      // runs with an invalid configuration, on the layers that can be read
	Here        bool                      // works in the directory of the call, which has to exist
	Quiet       bool                      // writes no audit entry and no state

	List     *List        // the result is a page of rows
	Batch    bool         // handles several items and reports each
	Steps    []string     // in order, if the work can stop between them and go on with --resume-from
	Stdin    *Stdin       // reads standard input
	Network  *Network     // talks to other machines
	Children []Subprocess // starts programs

	Background *Background // leaves a process behind
	Job        *Job        // returns before the work is done

	Auth        *Auth             // logs in
	Scopes      []string          // rights that the credentials must have; never nil
	Interactive bool              // may ask a person, and wait for the answer
	Recursive   bool              // walks directory trees
	Dispatches  bool              // carries out other commands: each has its own clock, confirmation and key
	DryRun      bool              // Run checks Call.DryRun before it changes anything
	SafeDefault bool              // without --live, only shows what it would do
	Reversible  bool              // its effect can be undone
	ConfigScope string            // scope of the configuration it writes: local, global, session
	Files       []FileEffect      // files that it leaves on disk
	Tools       map[string]string // programs it needs, with the minimum version

	Validate func(*Call) []fault.Problem // must have no effects; returns all problems
	Run      func(context.Context, *Call) (Result, error)

	// Again returns the state of a job that Run began in an earlier call with the same idempotency key: see Call.Begun.
	Again func(ctx context.Context, c *Call, job string) (Result, error)

	// Instead may have another process carry out a valid call and answer on the streams of this one. Then done is true,
	// and status is the exit status of that process. Otherwise the call continues here.
	Instead func(context.Context, *Call, <-chan os.Signal) (status int, done bool, err error)

	// Serve replaces Run in the classes Stream and Terminal: the command itself reads and writes its protocol and
	// returns the exit status. An error means that the call cannot begin; Refuse reports one in the protocol.
	Serve  Serve
	Refuse func(*Call, *fault.Fault)
}

// Serve serves a call of the classes Stream and Terminal.
type Serve func(ctx context.Context, c *Call, signals <-chan os.Signal) (status int, err error)

// Result is what Run returns. If Run also returns an error, Data has what is known despite the error.
type Result struct {
	Data   any
	Effect Effect         // of commands that are not safe
	Target map[string]any // for a dry run: what would be touched
	Exit   Code           // a declared code other than success, if there is no fault
	Failed int            // for a batch: how many items failed
	Meta   map[string]any // further members of meta
	Lines  bool           // the run wrote its own lines; there is no other answer
}

// PlainTexter is data whose plain form is a text for a program: a script, a page.
type PlainTexter interface{ PlainText() string }

// Verbatim is data whose plain form is a file for another program: a standard output that is not a terminal gets it
// byte for byte, with nothing replaced and nothing masked.
type Verbatim interface{ Verbatim() bool }

// Flowing is data whose plain form is for people alone: its lines are wrapped at the width of the screen.
type Flowing interface{ ForPeople() }

// Example is an invocation that works exactly as written.
type Example struct {
	Description string `json:"description"`
	Command     string `json:"command"`
}

// List declares that the data has rows under Key, in a stated order.
type List struct {
	Key   string // member of the data
	ID    string // the member that identifies a row: --output id
	Order string // the member that rows are sorted by, or "given" if their order is significant
	Limit int    // default rows of a page; zero: 20

	Columns []string // default columns for a person; empty: all
	None    string   // the text for a person if there are no rows; empty: that none were found
	Null    string   // what a person sees in place of null; empty: nothing
}

// Stdin declares what the command reads from standard input.
type Stdin struct {
	Format   string // "text", "jsonl"
	Required bool   // the command cannot run without it
	Empty    bool   // an empty pipe or file counts as input
	Lines    bool   // it is read line by line as it arrives, not as a whole
}

// Network declares the limits of every connection.
type Network struct {
	Timeout, Connect time.Duration

	Agents bool // the connections are those of agents, so the command has no flags for them
}

// Subprocess declares a program that the command starts, and which of its arguments come from the caller.
type Subprocess struct {
	Binary         string   `json:"binary"`
	CallerArgs     []string `json:"user_controlled_args"` // names of parameters
	FixedArgs      []string `json:"hardcoded_args"`
	PreserveLocale bool     `json:"preserve_locale"`
}

// Background declares a process that outlives the call.
type Background struct {
	CleanupCommand string
	MaxLifetime    time.Duration
}

// Job declares that the result describes work that continues.
type Job struct {
	Descriptor reflect.Type
}

// Auth declares how a login works if nobody can type.
type Auth struct {
	HeadlessSupported bool
	TokenEnv          []string
}

// FileEffect declares a file that the command leaves on disk.
type FileEffect struct {
	Path          string `json:"path"`
	Type          string `json:"type"` // cache, log, temp, credential, config, state
	TTLSeconds    int    `json:"ttl_seconds,omitempty"`
	ClearableWith string `json:"clearable_with,omitempty"`
}

// Rule is a dependency between parameters: if If is given (with value Is, unless empty), all of Then are required, none
// of Not may be given, and Default has values for those that are absent.
type Rule struct {
	If      string            `json:"if_flag"`
	Is      string            `json:"if_value,omitempty"`
	Then    []string          `json:"then_required,omitempty"`
	Not     []string          `json:"prohibited,omitempty"`
	Default map[string]string `json:"default,omitempty"`
}

// TypeOf returns the type of a command's data.
func TypeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// Key returns the command's name in the manifest.
func (c *Command) Key() string {
	return strings.ReplaceAll(c.Path, " ", ".")
}

func (c *Command) param(name string) (Param, bool) {
	for _, p := range c.Params {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

func (c *Command) positionals() []Param {
	list := slices.DeleteFunc(slices.Clone(c.Params), func(p Param) bool { return p.Position == 0 })
	slices.SortStableFunc(list, func(a, b Param) int { return a.Position - b.Position })
	return list
}

// usage returns the command's usage line, with positional arguments in their places.
func (c *Command) usage(name string) string {
	line := name + " " + c.Path
	for _, p := range c.positionals() {
		word := strings.ToUpper(p.Name)
		if p.Variadic {
			word += "..."
		}
		if !p.Required {
			word = "[" + word + "]"
		}
		line += " " + word
	}
	return line
}
