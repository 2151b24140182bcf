// Package enclosure is where the commands of a conversation run: the walls of sandbox around them, as this product
// wants them.
//
// It promises that nobody has to know which files of a workspace decide what runs later, which hold credentials and how
// a list of hosts is let through: it is the same for the native agent and for a command that a person puts between
// walls by hand. It refuses to fall back: where the walls that were asked for cannot be built there is an error, and
// the caller says whether to go on without.
package enclosure

import (
	"cmp"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/gate"
	"omniagent/internal/guard"
	"omniagent/internal/process"
	"omniagent/internal/sandbox"
	"omniagent/internal/shell"
)

// Wanted is what an enclosure is to be.
type Wanted struct {
	Root    string                 // the workspace, absolute
	Roots   []string               // further workspaces, absolute
	Home    string                 // the user's home directory
	Agents  guard.Agents           // whose settings and logins are kept from commands
	Network string                 // off, on, or hosts separated by commas; empty: off
	Temp    string                 // a directory of its own, open to the user alone
	State   string                 // where it is on record what has to be tidied should this process be killed
	Write   []string               // further directories that can be written, absolute
	Hide    []string               // what cannot be read either, absolute
	Memory  int64                  // bytes that each process may have for data; 0: any
	Only    string                 // the name of the walls that are wanted; empty: the best that work
	Refused func(host, why string) // told what the gate refused; nil: nobody
}

// Policy is what commands may touch.
func (w Wanted) Policy() (sandbox.Policy, error) {
	root, err := filepath.EvalSymlinks(w.Root)
	if err != nil {
		return sandbox.Policy{}, fault.New(fault.FileMissing, "the workspace %s is not there", w.Root).Because(err)
	}
	p := sandbox.Policy{
		Root: root, Write: sandbox.GitDirs(root), Protected: w.Agents.Protected(),
		Hidden: Credentials(w.Agents, w.Home),
		Temp:   w.Temp,
		Limits: sandbox.Limits{Memory: w.Memory},
	}
	for _, dir := range w.Write {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return p, fault.New(fault.FileMissing, "%s, which is to be written, is not there", dir).Because(err)
		}
		p.Write = append(p.Write, real)
	}
	for _, dir := range w.Roots {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return p, fault.New(fault.FileMissing, "the directory %s is not there", dir).Because(err)
		}
		p.Roots, p.Write = append(p.Roots, real), append(append(p.Write, real), sandbox.GitDirs(real)...)
	}
	p.Hidden = append(p.Hidden, w.Hide...)
	if err := CheckNetwork(w.Network); err != nil {
		return p, err
	}
	switch w.Network {
	case "", "off":
	case "on":
		p.Network.Open = true
	default:
		through, err := gate.New(gate.Options{Hosts: Hosts(w.Network), Advice: w.advice, Log: func(r gate.Request) {
			if w.Refused != nil && r.Refusal != "" {
				w.Refused(r.Host, r.Refusal)
			}
		}})
		if err != nil {
			return p, err
		}
		p.Network.Serve = func(l net.Listener) (stop func()) { return through.Serve(l) }
	}
	return p, nil
}

// advice is how a host would be let through.
func (w Wanted) advice(host string) string {
	return "--network " + w.Network + "," + host + " lets it through"
}

// Hosts are those of a list with commas.
func Hosts(list string) []string {
	var hosts []string
	for host := range strings.SplitSeq(list, ",") {
		if host = strings.TrimSpace(host); host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// CheckNetwork says what is wrong with a word about the network. A list in which a word stands that is no host but
// means all of it, or nothing, is a mistake that nobody should have to guess about.
func CheckNetwork(network string) error {
	if network == "" || network == "off" || network == "on" {
		return nil
	}
	const forms = "Give off, on, or hosts separated by commas: example.com,*.example.org"
	hosts := Hosts(network)
	if len(hosts) == 0 {
		return fault.New(fault.ArgError, "the network %q names no host", network).Hint(forms)
	}
	for _, host := range hosts {
		if strings.EqualFold(host, "on") || strings.EqualFold(host, "off") {
			return fault.New(fault.ArgError, "the network %q is neither %s nor a list of hosts", network,
				strings.ToLower(host)).Hint(forms)
		}
	}
	return nil
}

// Enclosure is one that stands.
type Enclosure struct {
	*sandbox.Walls
	network string
	weaker  error
	roots   []string
}

// Weaker is why these walls are not the strongest that there are for this system. nil: they are, or were asked for by
// name.
func (e *Enclosure) Weaker() error {
	if e == nil {
		return nil
	}
	return e.weaker
}

// Open builds the best walls that this machine can have, and tries them. The machine alone decides which: walls that
// stand elsewhere on it and not around this workspace are no reason for weaker ones. That is a refusal, and so is what
// could not be found out. A fault of code UNAVAILABLE says that the machine has no walls; it is about the strongest.
func Open(w Wanted) (*Enclosure, error) {
	p, err := w.Policy()
	if err != nil {
		return nil, err
	}
	var first error
	for _, tier := range tiers() {
		if w.Only != "" && tier.String() != w.Only {
			continue
		}
		if tier != sandbox.Namespaces && p.Network.Serve != nil {
			break // only a network of their own keeps commands to a list of hosts
		}
		if tier == sandbox.Landlock && w.hidesWritable(p) {
			break // what somebody has named must not be read
		}
		walls, lacks, err := w.build(tier, p)
		if err != nil {
			return nil, err
		}
		if walls != nil {
			return &Enclosure{walls, w.network(), first, w.Roots}, nil
		}
		if first == nil {
			first = lacks
		}
	}
	if first == nil && w.Only != "" {
		first = fault.New(fault.Down, "there are no walls %s on %s that could hold this", w.Only,
			runtime.GOOS).Hint("Run: omniagent doctor")
	}
	if first == nil {
		first = fault.New(fault.Down, "no walls can be built around commands on %s",
			runtime.GOOS).Hint("Run: omniagent doctor")
	}
	return nil, first
}

// build builds the walls of a tier. lacks is why this machine cannot have them. What fails around this workspace alone
// is tried once more: an editor or git may have moved meanwhile what the walls are about.
func (w Wanted) build(tier sandbox.Tier, p sandbox.Policy) (walls *sandbox.Walls, lacks, err error) {
	report := sandbox.Report{OS: runtime.GOOS, Tier: tier, Privileged: os.Geteuid() == 0}
	for range 2 {
		if walls, err = sandbox.Open(p, report, sandbox.Options{State: w.State}); err == nil {
			return walls, nil, nil
		}
		switch why := sandbox.Stands(tier, p); {
		case errors.Is(why, fault.Down):
			return nil, why, nil
		case why != nil:
			return nil, nil, why
		}
	}
	return nil, nil, around(p.Root, tier, err)
}

// around is why walls cannot be built around a workspace, on a machine that has them.
func around(root string, tier sandbox.Tier, failed error) error {
	was := fault.Of(failed)
	code, hint := was.Code, was.Suggestion
	if code == fault.Down {
		code, hint = fault.Unsafe, "Remove what the message names, or put it right."
	}
	f := fault.New(code, "the walls %s cannot be built around %s: %s", tier, root, was.Message).Because(was.Cause)
	f.Detail = was.Detail
	return f.Hint("%s", hint)
}

// hidesWritable says whether something that is to be hidden by name lies where commands may write, or around it.
func (w Wanted) hidesWritable(p sandbox.Policy) bool {
	beneath := func(dir, path string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	}
	for _, path := range w.Hide {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		for _, dir := range append([]string{p.Root}, p.Write...) {
			if beneath(dir, path) || beneath(path, dir) {
				return true
			}
		}
	}
	return false
}

// tiers are those that may work here, the strongest first.
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

// Whole says whether commands change nothing outside of the workspace, whatever they are: they need not be asked about
// for its sake.
func (e *Enclosure) Whole() bool { return e != nil && e.Claim().Tier != sandbox.Landlock }

// Told is what holds, for records and streams. Of no enclosure it is that nothing does.
func (e *Enclosure) Told() *event.Walls {
	if e == nil {
		return &event.Walls{
			Name: sandbox.None.String(), Network: "on",
			Holes: []string{"everything: commands do what the user can do"},
		}
	}
	claim := e.Claim()
	return &event.Walls{Name: claim.Name, Network: e.network, Holes: claim.Holes}
}

// Sentence tells a model what its commands can do.
func (e *Enclosure) Sentence() string {
	if e == nil {
		return "Nothing holds commands back but the rights of the user."
	}
	network := "They have no network, not even to this machine."
	switch e.network {
	case "off":
	case "on":
		network = "They have the network."
	default:
		network = "Of the network they reach only " + strings.ReplaceAll(e.network, ",", ", ") +
			", through the proxy in their environment."
	}
	where := "the working directory"
	if len(e.roots) > 0 {
		where += ", beneath " + strings.Join(e.roots, ", ")
	}
	return "Commands run behind walls: they can write beneath " + where +
		" and to temporary files, but not to what decides what runs later " +
		"(.git/hooks, .git/config, settings of editors and agents), and cannot read where credentials are kept. " +
		network +
		" What is refused there stays refused: do not look for ways around it, say what you would need."
}

// Starter starts lines behind the walls; without any it starts them as they are.
func (e *Enclosure) Starter() shell.Starter {
	if e == nil {
		return nil
	}
	return func(line, dir string, env []string) (process.Plan, error) {
		plan, err := shell.Plain(line, dir, env)
		if err != nil {
			return plan, err
		}
		return e.Plan(plan)
	}
}
