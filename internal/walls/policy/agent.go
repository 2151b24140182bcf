package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
	"omniagent/internal/walls/sandbox"
)

// AgentWanted describes a sandbox around the processes of a foreign agent. The network, the memory limit and the tier
// of Wanted do not apply: an agent has the network of the machine.
type AgentWanted struct {
	Wanted
	Env []string // of the agent, as far as it is known before its start
	// Keeps returns the paths that belong to the agent; nil: none
	Keeps       func(env []string) (dirs, files []string)
	Files       string            // a directory of ours with files for the agent; it need not exist; empty: none
	Own         []string          // further directories that the agent may change, absolute or with ~/
	Caches      []string          // names in /tmp that stay for its next conversations in the workspace
	Programs    []string          // files of the agent's program, absolute
	Parts       []string          // further files of the agent, absolute; their directories are shown too
	Veiled      []string          // names of a repository's configuration that the agent must not find
	OwnSettings []string          // names below those that the agent itself creates
	Reviewed    map[string]string // those of them that a person has reviewed: see sandbox.AgentPolicy
}

// AgentWalls are the walls around the processes of an agent.
type AgentWalls struct {
	walls  *sandbox.AgentWalls
	wanted AgentWanted
	homes  []string
}

// OpenAgent builds a sandbox around an agent, and tries it. A fault with code UNAVAILABLE means that this machine
// supports none.
func OpenAgent(w AgentWanted) (*AgentWalls, error) {
	policy, files, err := w.policy()
	if err != nil {
		return nil, err
	}
	walls, err := sandbox.OpenAgent(policy, files, sandbox.Options{State: w.State, Watcher: w.Watcher})
	if err != nil {
		return nil, err
	}
	return &AgentWalls{walls, w, policy.Homes}, nil
}

// policy returns what the agent may do. files are single files in a home directory that belong to it.
func (w AgentWanted) policy() (policy sandbox.AgentPolicy, files []string, err error) {
	w.Network = "on"
	p, err := w.Policy()
	if err == nil {
		err = checkHomes(p, accountHome(), w.Home)
	}
	if err != nil {
		return policy, nil, err
	}
	if err := w.checkOwn(accountHome()); err != nil {
		return policy, nil, err
	}
	own, files := w.belongings(w.Env)
	p.Hidden = slices.DeleteFunc(p.Hidden, func(secret string) bool {
		return slices.ContainsFunc(append(own, files...), func(path string) bool {
			return pathname.Within(path, secret) || pathname.Within(secret, path)
		})
	})
	for _, name := range w.Caches {
		p.Places = append(p.Places, sandbox.Place{
			Path: filepath.Join("/tmp", name), Visibility: sandbox.Owned, Why: "what the agent has compiled",
		})
	}
	policy = sandbox.AgentPolicy{Policy: p, Veiled: w.Veiled, OwnSettings: w.OwnSettings, Reviewed: w.Reviewed}
	return policy, files, nil
}

// checkOwn refuses settings that would give an agent more than they name.
func (w AgentWanted) checkOwn(account string) error {
	s := w.sight(account)
	if len(s.homes) == 0 {
		return nil
	}
	for _, entry := range w.Own {
		path, err := s.added("agents.own", entry, "agents need, such as ~/.config/other")
		if err == nil && !s.inside(path) {
			err = fault.New(fault.ConfigInvalid, "agents.own cannot have %q: it does not lie in the home directory",
				entry).With("key", "agents.own").Hint("Name directories such as ~/.config/other.")
		}
		if err != nil {
			return err
		}
	}
	if w.Keeps == nil {
		return nil
	}
	dirs, _ := w.Keeps(w.Env)
	for _, dir := range dirs {
		holds := func(home string) bool { return pathname.Within(s.named(dir), home) }
		if i := slices.IndexFunc(s.homes, holds); i >= 0 {
			return fault.New(fault.Unsafe, "the agent's own directory is said to be %s, and with it all of the home "+
				"directory %s", dir, s.homes[i]).With("path", dir).
				Hint("Change the variable that names it, such as CODEX_HOME or CLAUDE_CONFIG_DIR.")
		}
	}
	return nil
}

// Explain returns what an agent may do with a path, and the places in home directories that it shares with commands.
// program is the agent's program.
func (w AgentWanted) Explain(path, program string) ([]sandbox.Effect, []sandbox.Place, error) {
	policy, files, err := w.policy()
	if err != nil {
		return nil, nil, err
	}
	n := w.needs(program, w.Env)
	n.Own = append(n.Own, files...)
	return policy.Explain(path, n), policy.Places, nil
}

// belongings returns the directories and files that belong to an agent with that environment.
func (w AgentWanted) belongings(env []string) (dirs, files []string) {
	if w.Keeps != nil {
		dirs, files = w.Keeps(env)
	}
	for _, dir := range w.Own {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(w.Home, rest)
		}
		dirs = append(dirs, dir)
	}
	relative := func(path string) bool { return !filepath.IsAbs(path) }
	return slices.DeleteFunc(dirs, relative), slices.DeleteFunc(files, relative)
}

// Plan returns the plan to run a process of the agent in the sandbox.
func (a *AgentWalls) Plan(p process.Plan) (process.Plan, error) {
	env := p.Env
	if env == nil {
		env = os.Environ()
	}
	n := a.wanted.needs(p.Path, env)
	p.Standby, p.OwnPIDs = nil, false // the namespace of the walls ends with us
	return a.walls.Plan(p, n)
}

// needs returns what a process of the agent needs: path is its program.
func (w AgentWanted) needs(path string, env []string) (n sandbox.AgentNeeds) {
	n.Own, _ = w.belongings(env)
	if info, err := os.Stat(w.Files); err == nil && info.IsDir() {
		n.Own = append(n.Own, w.Files)
	}
	for _, path := range append([]string{path}, w.Programs...) {
		show, reads, shells := program(path, env)
		n.Show, n.Readers = append(n.Show, show...), append(n.Readers, reads...)
		n.Shells = append(n.Shells, shells...)
	}
	sight := w.sight(accountHome())
	for _, path := range w.Parts {
		for _, path := range []string{path, filepath.Dir(path)} {
			temporary := path == "/tmp" || path == "/var/tmp"
			if !temporary && sight.opens(path) == "" { // an argument may be the home directory, or a key
				n.Show = append(n.Show, path)
			}
		}
	}
	if own, err := os.Executable(); err == nil { // hooks and servers of ours that the agent starts
		n.Show = append(n.Show, own)
	}
	for _, name := range []string{
		"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
		"GIT_SSL_CAINFO",
	} {
		if path, _ := process.Value(env, name); filepath.IsAbs(path) {
			n.Show = append(n.Show, path)
		}
	}
	return n
}

// program returns what a program consists of: its file, the packages around it, and its interpreter. shells are
// interpreters whose scripts start the real program, as pnpm and Nix make them.
func program(path string, env []string) (show, readers, shells []string) {
	if !filepath.IsAbs(path) {
		return nil, nil, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	show, readers = append(show, path, real), append(readers, real)
	for _, path := range []string{path, real} {
		if dir := pathname.Packages(path); dir != "" {
			show, readers = append(show, dir), append(readers, dir)
		}
	}
	words, _, _ := process.Shebang(real)
	if name, byName := process.Interpreter(words); name != "" {
		if byName {
			name = process.Find(name, process.In(env))
		}
		if name != "" && name != real {
			more, reads, starts := program(name, env)
			show, readers, shells = append(show, more...), append(readers, reads...), starts
			if strings.HasSuffix(filepath.Base(name), "sh") {
				shells = append(shells, name)
			}
		}
	}
	return show, readers, shells
}

// SetWritable sets whether the agent may change the workspace from now on. SetWritable(false) fails while the agent has
// a file there open for writing.
func (a *AgentWalls) SetWritable(on bool) error { return a.walls.SetWritable(on) }

// Homes returns the home directories that are replaced by those of the agent.
func (a *AgentWalls) Homes() []string { return a.homes }

// Left returns the files that the agent has in places which are removed at the end, without its own.
func (a *AgentWalls) Left() []string {
	if a == nil {
		return nil
	}
	return a.walls.Left()
}

// Enforced returns what the walls enforce, for records and streams. Nil walls enforce nothing.
func (a *AgentWalls) Enforced() *event.Walls {
	if a == nil {
		return &event.Walls{
			Name: sandbox.None.String(), Network: "on",
			Holes: []string{"everything that the agent's own sandbox does not hold, if it has one"},
		}
	}
	told := a.walls.Enforced()
	return &told
}

// Close releases everything.
func (a *AgentWalls) Close() {
	if a != nil {
		_ = a.walls.Close()
	}
}
