package contract

import (
	"context"
	"os"
	"reflect"
	"strings"
	"time"

	"omniagent/internal/fault"
)

// Class says what standard output carries.
type Class string

const (
	Envelope Class = "envelope" // one JSON object, or its plain rendering; everything in this package applies
	Stream   Class = "stream"   // only the command's own protocol
	Terminal Class = "terminal" // a conversation with a person
)

// Danger says what a command may do to the world.
type Danger string

const (
	Safe        Danger = "safe"        // reads only
	Mutating    Danger = "mutating"    // creates or changes
	Destructive Danger = "destructive" // loses something for ever
)

// Effect says what a command that is not safe did. Results of such commands must carry one.
type Effect string

const (
	Created Effect = "created"
	Updated Effect = "updated"
	Deleted Effect = "deleted"
	Noop    Effect = "noop"
)

// would is the effect of a dry run.
func (e Effect) would() Effect {
	verb := map[Effect]Effect{Created: "create", Updated: "update", Deleted: "delete", Noop: "noop"}[e]
	if verb == "" {
		verb = e
	}
	return "would_" + verb
}

// Command declares one subcommand. A field that does not apply stays zero; what must be said even when it is empty
// (Exits, Scopes) is refused when nil.
type Command struct {
	Path     string // its words, "config set"
	Summary  string // one line, no period
	Detail   string // further paragraphs of the help
	Class    Class
	Danger   Danger
	Params   []Param
	Rules    []Rule // dependencies between parameters
	Exits    []Exit
	Output   reflect.Type // of Result.Data; TypeOf gives it
	Version  string       // of the output's shape, "1.0.0"
	Volatile []string     // fields of the data that differ from call to call, dotted
	Examples []Example

	Timeout     time.Duration // zero: 30 s
	LongRunning bool          // may take longer than 5 s: heartbeats
	NoConfig    bool          // does its work even where the configuration is torn, and reads none of it
	LooseConfig bool          // goes on with the layers that can be read
	Quiet       bool          // leaves no trace: no audit entry, no state

	List      *List        // the result is a page of rows
	Batch     bool         // handles several things and reports each
	Steps     []string     // in order, when the work can stop in the middle
	Resumable bool         // --resume-from
	Stdin     *Stdin       // reads standard input
	Network   *Network     // talks to other machines
	Children  []Subprocess // starts programs

	Background *Background // leaves a process behind
	Job        *Job        // returns before the work is done

	Auth        *Auth             // logs in
	Scopes      []string          // rights that the credentials must have; never nil
	Interactive bool              // may ask
	NeedsPerson bool              // is a conversation: never without a terminal
	Recursive   bool              // walks directory trees
	Streaming   bool              // can print rows as they come
	StreamsRows bool              // does so by default
	DryRun      bool              // Run looks at Call.DryRun before it changes anything
	SafeDefault bool              // only shows what it would do until --live
	Reversible  bool              // what it did can be undone
	ConfigScope string            // where it writes configuration: local, global, session
	Files       []FileEffect      // what it leaves on disk
	Tools       map[string]string // programs it needs, with the least version

	Validate func(*Call) []fault.Problem                  // no effects; everything that is wrong
	Run      func(context.Context, *Call) (Result, error) //

	// Serve takes the place of Run in the classes Stream and Terminal: the command reads and writes its protocol itself
	// and returns the exit status. An error is a call that cannot begin. Refuse tells one in the protocol.
	Serve  func(context.Context, *Call, <-chan os.Signal) (int, error)
	Refuse func(*Call, *fault.Fault)
}

// Result is what a run returns. With an error beside it, Data is what can still be told.
type Result struct {
	Data   any
	Effect Effect         // of commands that are not safe
	Target map[string]any // of a dry run: what would be touched
	Exit   Code           // a declared code other than success, when there is no fault to speak of
	Failed int            // of a batch: how many of it failed
	Meta   map[string]any // further members of the answer's meta
	Lines  bool           // the run wrote its own lines; there is no answer beside them
}

// PlainTexter is data whose plain form is a text that some program reads: a script, a page.
type PlainTexter interface{ PlainText() string }

// Example is one invocation that works as it stands.
type Example struct {
	Description string `json:"description"`
	Command     string `json:"command"`
}

// List declares that the data holds rows under Key, in a stated order.
type List struct {
	Key   string // member of the data
	ID    string // the member of a row that identifies it: --output id
	Order string // the member that rows are sorted by, or "given" where their order means something
	Limit int    // rows of a page unless told otherwise; zero: 20

	Columns []string // what a person sees of a row unless --fields says otherwise; empty: everything
}

// Stdin declares what standard input is read for.
type Stdin struct {
	Format   string // "text", "jsonl"
	Required bool   // without it there is nothing to do
}

// Network declares what every connection is bound by.
type Network struct {
	Timeout, Connect time.Duration
}

// Subprocess declares a program that is started, and which of its arguments come from the caller.
type Subprocess struct {
	Binary         string
	FixedArgs      []string
	CallerArgs     []string // names of parameters
	PreserveLocale bool
}

// Background declares a process that outlives the call.
type Background struct {
	CleanupCommand string
	MaxLifetime    time.Duration
}

// Job declares that the result is a descriptor of work that goes on.
type Job struct {
	Descriptor reflect.Type
}

// Auth declares how a login works where nobody can type.
type Auth struct {
	HeadlessSupported bool
	TokenEnv          []string
}

// FileEffect declares something that is left on disk.
type FileEffect struct {
	Path          string `json:"path"`
	Type          string `json:"type"` // cache, log, temp, credential, config, state
	TTLSeconds    int    `json:"ttl_seconds,omitempty"`
	ClearableWith string `json:"clearable_with,omitempty"`
}

// Rule is a dependency between parameters: if If is given (with value Is, unless empty), then all of Then are required,
// none of Not may be given, and Default names values for those that are absent.
type Rule struct {
	If      string            `json:"if_flag"`
	Is      string            `json:"if_value,omitempty"`
	Then    []string          `json:"then_required,omitempty"`
	Not     []string          `json:"prohibited,omitempty"`
	Default map[string]string `json:"default,omitempty"`
}

// TypeOf is the type of a command's data.
func TypeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// Key is the command's name in the manifest.
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
	var list []Param
	for n := 1; ; n++ {
		found := false
		for _, p := range c.Params {
			if p.Position == n {
				list, found = append(list, p), true
			}
		}
		if !found {
			return list
		}
	}
}

// usage is the command's line in the help: positional arguments in their places.
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
