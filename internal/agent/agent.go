// Package agent is the hinge between the hosts and everything that can hold a conversation.
//
// It promises one interface, Driver, behind which each agent keeps all that is known of it: its names, how it is installed, where it
// is on this machine. It refuses to start anything: a Driver answers from files alone, so asking is quick and safe in any directory.
//
// This is the beginning of that seam. Driver gains methods (the command line, the observer, the reading of the end, the session)
// together with the parts that call them.
package agent

// Driver is all that we know of one agent: data, and functions that start no process.
type Driver interface {
	// Name is the word that selects the agent on a command line.
	Name() string
	// Describe tells what a person wants to know before installing it.
	Describe() About
	// Locate finds the installed program. If there is none, the error is a fault of code NOT_INSTALLED that carries the command
	// which installs it.
	Locate(Env) (Install, error)
}

// About describes an agent independently of this machine.
type About struct {
	Title          string // its name for people
	Binary         string // the program's name, without extension
	Package        string // its name in the npm registry
	InstallCommand string // installs the version that this program was measured with; runnable as it stands, harmless when repeated
}

// Env is what a Driver may know of the surroundings.
type Env struct {
	Lookup func(name string) (string, bool) // a variable of the environment
	Dir    string                           // where the agent will work; untrusted, so no program is ever looked for there
}

// Where the version of an Install was read.
const FromPackageJSON = "package.json"

// Install is one installed agent.
type Install struct {
	Path        string // as found in PATH; this is what is started
	RealPath    string // Path without symbolic links
	Version     string // empty: unknown
	VersionFrom string // FromPackageJSON, or empty
}
