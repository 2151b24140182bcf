// Package policy configures the sandbox for the commands of a conversation.
//
// It knows which files of a workspace decide what runs later, which hold credentials, and how a list of hosts is
// enforced, so that the native agent and a sandboxed command of a person follow the same rules. It never falls back: if
// the requested sandbox cannot be built, that is an error, and the caller decides whether to continue without one.
package policy

import (
	"cmp"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
	"omniagent/internal/walls/autorun"
	"omniagent/internal/walls/egressproxy"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/sandbox"
	"omniagent/internal/walls/shell"
)

// Wanted describes the walls to build.
type Wanted struct {
	Root        string                 // the workspace, absolute
	Roots       []string               // further workspaces, absolute
	Home        string                 // the user's home directory
	Agents      guard.Agents           // whose settings and logins are kept from commands
	Network     string                 // off, on, or hosts separated by commas; empty: off
	Temp        string                 // a private directory, accessible only by the user
	State       string                 // where sandbox records what to clean up if this process is killed
	Hide        []string               // further unreadable paths, absolute
	DeniedPaths guard.DeniedPaths      // what nobody may read or change in the workspaces; Landlock cannot hide it
	Read        []string               // further readable paths in the home directory, absolute or with ~/
	Memory      int64                  // bytes of data per process; 0: no limit
	Only        string                 // the name of the tier; empty: the best that works
	Via         netip.AddrPort         // the gate through which hosts are reached; not valid: directly
	Refused     func(host, why string) // called for each refusal of the gate; nil: not called

	// RefusedName is called with paths that a command could not write, see sandbox.Options; nil: not called
	RefusedName func(path string)

	Watcher sandbox.Watcher // gets what is written behind the walls; it may be nil
	Later   bool            // walls that have held here are built before the first command, see sandbox.Options

	// Lookup reads a variable of the environment that may move the places of tools; nil: they are in their usual
	// places.
	Lookup func(name string) (value string, set bool)
}

// Policy returns what commands may do. It fails if a workspace does not exist or cannot be protected.
func (w Wanted) Policy() (sandbox.Policy, error) {
	root, err := filepath.EvalSymlinks(w.Root)
	if err != nil {
		return sandbox.Policy{}, fault.New(fault.FileMissing, "the workspace %s is not there", w.Root).Because(err)
	}
	p := sandbox.Policy{
		Root: root, Write: sandbox.GitDirs(root), Protected: w.Agents.Protected(),
		Hidden: Credentials(w.Agents, w.Home), Temp: w.Temp,
		GitConfig:   sandbox.UserGit{Files: GitConfig(w.Home, w.Lookup), Settings: gitSettings(w.Lookup)},
		Obeyed:      w.Agents.Protected(),
		HiddenNames: w.DeniedPaths.UnreadNames, KeptNames: w.DeniedPaths.UnchangedNames,
		Limits: sandbox.Limits{Memory: w.Memory},
	}
	for _, dir := range w.Roots {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return p, fault.New(fault.FileMissing, "the directory %s is not there", dir).Because(err)
		}
		p.Roots, p.Write = append(p.Roots, real), append(append(p.Write, real), sandbox.GitDirs(real)...)
	}
	for _, path := range w.DeniedPaths.Unchanged {
		for _, dir := range append([]string{w.Root}, w.Roots...) {
			if name, within := pathname.In(dir, path); within && name != "." {
				p.Protected = append(slices.Clip(p.Protected), name)
			}
		}
	}
	started := startedOf(w.Home, w.Lookup)
	for _, dir := range append([]string{root}, p.Roots...) {
		if place := started.Holds(dir); place != "" {
			return p, startsThere(dir, place)
		}
		p.Started = append(p.Started, started.PathsInto(dir)...)
		p.Fresh = append(p.Fresh, autorun.For(dir, nil, excludes(w.Home, w.Lookup)))
		trees, whole := sandbox.Repositories(dir)
		p.Repositories, p.MoreRepositories = append(p.Repositories, trees...), p.MoreRepositories || !whole
	}
	if err := w.furnish(&p, accountHome()); err != nil {
		return p, err
	}
	p.Hidden = slices.Concat(p.Hidden, w.Hide, w.DeniedPaths.Unread)
	p.Network, err = w.Through()
	return p, err
}

// Through returns the network for commands.
func (w Wanted) Through() (n sandbox.Network, err error) {
	if err := CheckNetwork(w.Network); err != nil {
		return n, err
	}
	switch w.Network {
	case "", "off":
		return n, nil
	case "on":
		return sandbox.Network{Open: true}, nil
	}
	hosts, err := w.hosts()
	if err != nil {
		return n, err
	}
	o := egressproxy.Options{Hosts: hosts, Advice: w.advice, Via: w.Via}
	o.Log = func(r egressproxy.Request) {
		if w.Refused != nil && r.Refusal != "" {
			w.Refused(r.Host, r.Refusal)
		}
	}
	through, err := egressproxy.New(o)
	if err != nil {
		return n, err
	}
	n.Serve = through.Serve
	return n, nil
}

// OncePerHost returns a function that calls tell for the first refusal of each host: programs try again.
func OncePerHost(tell func(host, why string)) func(host, why string) {
	var told sync.Map
	return func(host, why string) {
		if _, again := told.LoadOrStore(host, true); !again {
			tell(host, why)
		}
	}
}

// advice returns how to allow a host.
func (w Wanted) advice(host string) string {
	return "--network " + w.Network + "," + host + " lets it through"
}

// Hosts splits a list at its commas.
func Hosts(list string) []string {
	var hosts []string
	for host := range strings.SplitSeq(list, ",") {
		if host = strings.TrimSpace(host); host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// CheckNetwork returns what is wrong with a network setting. A list that contains a word for everything or nothing is a
// mistake, because its meaning would be a guess.
func CheckNetwork(network string) error {
	if network == "" || network == "off" || network == "on" {
		return nil
	}
	const forms = "Give off, on, packages, or hosts separated by commas: example.com,*.example.org"
	hosts := Hosts(network)
	if len(hosts) == 0 {
		return fault.New(fault.ArgError, "the network %q names no host", network).Hint(forms)
	}
	for _, host := range hosts {
		if strings.EqualFold(host, "on") || strings.EqualFold(host, "off") {
			return fault.New(fault.ArgError, "the network %q is neither %s nor a list of hosts", network,
				strings.ToLower(host)).Hint(forms)
		}
		if host != packagesWord && text.Nearest(host, []string{packagesWord}) != "" {
			return fault.New(fault.ArgError, "the network %q names %s; the word is %s", network, host,
				packagesWord).
				Hint(forms)
		}
	}
	return nil
}

// Walls are the walls around commands, as they were built.
type Walls struct {
	*sandbox.Walls
	network string
	weaker  error
	roots   []string
	trees   []string
}

// Repositories returns the git work trees in which walls protect git's files, without links.
func (w *Walls) Repositories() []string {
	if w == nil {
		return nil
	}
	return w.trees
}

// Weaker returns why this sandbox is not the strongest for this system, or nil if it is, or was requested by name.
func (w *Walls) Weaker() error {
	if w == nil {
		return nil
	}
	return w.weaker
}

// Open builds the best sandbox that this machine supports, and tries it. Only the machine decides which: if a tier
// works elsewhere on the machine but not for this workspace, or if that cannot be found out, Open fails instead of
// choosing a weaker one. A fault with code UNAVAILABLE means that the machine supports none; it is about the strongest
// tier.
func Open(w Wanted) (*Walls, error) {
	p, err := w.Policy()
	if err == nil {
		err = checkHomes(p, accountHome(), w.Home)
	}
	if err != nil {
		return nil, err
	}
	var first error
	for _, tier := range tiers() {
		if w.Only != "" && tier.String() != w.Only {
			continue
		}
		if tier != sandbox.Namespaces && p.Network.Serve != nil {
			break // only a network namespace can enforce a list of hosts
		}
		if tier == sandbox.Landlock && w.hidesWritable(p) {
			break // a path that the user named must not be readable
		}
		walls, lacks, err := w.build(tier, p)
		if err != nil {
			return nil, err
		}
		if walls != nil {
			return &Walls{walls, w.network(), first, w.Roots, p.Repositories}, nil
		}
		if first == nil {
			first = lacks
		}
	}
	if first == nil && w.Only != "" {
		first = fault.New(fault.ServiceDown, "there are no walls %s on %s that could hold this", w.Only, runtime.GOOS).
			Hint("Run: omniagent doctor")
	}
	if first == nil {
		first = fault.New(fault.ServiceDown, "no walls can be built around commands on %s", runtime.GOOS).
			Hint("Run: omniagent doctor")
	}
	return nil, first
}

// build builds the sandbox of a tier. lacks says why this machine does not support it. A failure for this workspace
// alone is retried once: an editor or git may have moved a protected file meanwhile.
func (w Wanted) build(tier sandbox.Tier, p sandbox.Policy) (walls *sandbox.Walls, lacks, err error) {
	report := sandbox.Report{OS: runtime.GOOS, Tier: tier, Privileged: os.Geteuid() == 0}
	for range 2 {
		o := sandbox.Options{State: w.State, Refused: w.RefusedName, Watcher: w.Watcher, Later: w.Later}
		if walls, err = sandbox.Open(p, report, o); err == nil {
			return walls, nil, nil
		}
		switch why := sandbox.Stands(tier, p); {
		case errors.Is(why, fault.ServiceDown):
			return nil, why, nil
		case why != nil:
			return nil, nil, why
		}
	}
	return nil, nil, around(p.Root, tier, err)
}

// around returns why a sandbox cannot be built around a workspace, on a machine that supports it.
func around(root string, tier sandbox.Tier, failed error) error {
	was := fault.Of(failed)
	code, hint := was.Code, was.Suggestion
	if code == fault.ServiceDown {
		code, hint = fault.Unsafe, "Remove what the message names, or put it right."
	}
	f := fault.New(code, "the walls %s cannot be built around %s: %s", tier, root, was.Message).Because(was.Cause)
	f.Detail = was.Detail
	return f.Hint("%s", hint)
}

// hidesWritable reports whether a path to hide is inside a writable directory, or contains one.
func (w Wanted) hidesWritable(p sandbox.Policy) bool {
	return slices.ContainsFunc(w.Hide, func(path string) bool {
		path = pathname.Real(path)
		return slices.ContainsFunc(append([]string{p.Root}, p.Write...), func(dir string) bool {
			return pathname.Within(dir, path) || pathname.Within(path, dir)
		})
	})
}

// tiers returns the tiers that may work here, the strongest first.
func tiers() []sandbox.Tier {
	switch runtime.GOOS {
	case "linux":
		return []sandbox.Tier{sandbox.Namespaces, sandbox.Landlock}
	case "darwin":
		return []sandbox.Tier{sandbox.Seatbelt}
	}
	return nil
}

func (w Wanted) network() string { return cmp.Or(w.Network, "off") }

// Whole reports whether no command can change anything outside of the workspace, so that no question about that is
// needed.
func (w *Walls) Whole() bool { return w != nil && w.Tier() != sandbox.Landlock }

// Enforced returns what the walls enforce, for records and streams. Nil walls enforce nothing.
func (w *Walls) Enforced() *event.Walls {
	if w == nil {
		return &event.Walls{
			Name: sandbox.None.String(), Network: "on", Holes: []string{"everything: commands do what the user can do"},
		}
	}
	told := w.Walls.Enforced()
	told.Network = w.network
	return &told
}

// Sentence returns what a model should know about what its commands can do.
func (w *Walls) Sentence() string {
	if w == nil {
		return "Nothing holds commands back but the rights of the user."
	}
	network := "They have no network, not even to this machine. A person opens it to hosts with --network HOST,HOST, " +
		"and to where the package managers here take packages from with --network packages."
	switch w.network {
	case "off":
	case "on":
		network = "They have the network."
	default:
		network = "Of the network they reach only " + strings.ReplaceAll(w.network, ",", ", ") +
			", through the proxy in their environment; the word packages stands for where the package managers here " +
			"take packages from. A person opens another host with --network " + w.network + ",HOST."
	}
	where := "the working directory"
	if len(w.roots) > 0 {
		where += ", beneath " + strings.Join(w.roots, ", ")
	}
	return "Commands run behind walls: they can write beneath " + where +
		" and to temporary files, but not to what decides what runs later " +
		"(.git/hooks, .git/config, settings of editors and agents). Of the home directory they see only toolchains, " +
		"caches and what the user named; they cannot read credentials. " +
		network +
		" What is refused there stays refused: do not look for ways around it, say what you would need."
}

// Starter starts lines in the sandbox. It returns nil if w is nil.
func (w *Walls) Starter() shell.Starter {
	if w == nil {
		return nil
	}
	return through(w.Plan)
}

// Opened is Starter with the whole network, for a command for which a person has opened it.
func (w *Walls) Opened() shell.Starter {
	if w == nil {
		return nil
	}
	return through(w.PlanOpen)
}

func through(walls func(process.Plan) (process.Plan, error)) shell.Starter {
	return func(line, dir string, env []string) (process.Plan, error) {
		plan, err := shell.Plain(line, dir, env)
		if err != nil {
			return plan, err
		}
		return walls(plan)
	}
}
