// Package native implements our own agent: the engine with a model, tools in a directory, and a session on disk. It
// also has a driver like those of the other agents, which runs this program as a process.
//
//	Keep: a new session, an old one, or a copy ─► Open: a Mind ─► Close: the Mind, then the session
//
// If Open fails, it leaves nothing open. Close leaves neither processes nor temporary files. The caller chooses the
// model, the credential and the mode.
package native

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/native/webpage"
	"omniagent/internal/native/xnlcall"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/shell"
)

// Settings are a person's settings that count in every conversation with this agent, unless a host asks for something
// else.
type Settings struct {
	Rules   guard.Rules
	Tools   tool.List   // nil for tool.Ours
	Others  tool.Agents // the agents that the model can delegate to; may be nil
	Sandbox string      // workspace-write, or off
	// Walls are those around commands; Open adds what depends on the conversation. Home, Agents and Lookup count
	// without walls too.
	Walls  policy.Wanted
	HandOn []string // further variables that the user passes on to commands and servers

	ToolProtocol string // how the model calls tools: xnlcall.XNL, or else as in its API
}

// Options describe a conversation.
type Options struct {
	Settings

	Rehearsed bool // a script answers in place of a model

	Choice  provider.Choice
	Dir     string           // its working directory, absolute
	Kept    *session.Session // the session that Keep opened
	Store   session.Store
	Forget  bool   // do not keep a new session on disk
	ID      string // of a new session; empty for a random one
	Resume  string // the session to continue; empty for a new one
	History string // a file with an earlier conversation, or empty
	Mode    setting.Approval
	CanAsk  bool
	Web     bool // allows fetching pages, and the API's own search
	Limits  engine.Limits
	Env     []string // the environment; package shell decides what commands and servers get
	Temp    string   // for temporary directories; empty for the system's
	Servers string   // the user's own file of MCP servers, or empty
	Config  string   // the user's own configuration directory; empty if unknown
	Version string   // of this program
	Trusted func(path string, content []byte) bool
	Log     func(format string, args ...any) // reports what a person should know

	Terms    agent.Terms
	Services agent.Services
	Schema   []byte // of the answer; may be nil
	Retries  int    // how often to ask again for an answer that fits it

	known *redact.Values // secrets to remove from all texts
}

// Mind is the engine and everything that it uses.
type Mind struct {
	*engine.Mind
	facts   event.Facts   // facts in addition to the engine's
	written bool          // the model writes its calls as text
	walls   *policy.Walls // may be nil
	untold  atomic.Bool   // no event has said yet that planned walls stand
	refused refusals      // refusals that the model has not seen
	left    leftovers
	closers []func()
	once    sync.Once // around closers
}

var (
	_ agent.Mind       = (*Mind)(nil)
	_ agent.Instructed = (*Mind)(nil)
)

// Open creates a Mind for the session that Keep opened.
func Open(ctx context.Context, o Options) (*Mind, error) {
	m := &Mind{}
	if err := m.open(ctx, o); err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

func (m *Mind) open(ctx context.Context, o Options) error {
	if o.Kept == nil {
		return fault.New(fault.Internal, "a conversation with the native agent needs an open session")
	}
	servers, problems := o.readServers()
	log := o.Log
	if log == nil {
		log = func(string, ...any) {}
	}
	o.Log = func(format string, args ...any) { log("%s", o.known.String(fmt.Sprintf(format, args...))) }
	t, err := o.readTerms()
	if err != nil {
		return err
	}
	servers = withHosts(servers, t.hosts)
	o.known = o.secrets(servers)
	o.Kept.Mask(o.known.Bytes)
	for _, problem := range problems {
		o.Log("%v", problem)
	}
	env, err := m.tools(&o)
	if err != nil {
		return err
	}
	if err := m.keepWalls(o); err != nil {
		return err
	}
	more, states := m.servers(ctx, o, servers)
	m.Mind = engine.New(m.engine(o, t, env, more))
	m.facts = event.Facts{
		Agent: Name, Version: o.Version, Model: o.Choice.Model, Provider: o.Choice.Provider,
		Vendor: o.Choice.Vendor, Dir: o.Dir, Servers: states,
	}
	m.written = o.ToolProtocol == xnlcall.XNL
	return nil
}

// engine returns the options of the engine.
func (m *Mind) engine(o Options, t terms, env *tool.Env, more []tool.Tool) engine.Options {
	s := engine.Setting{
		Dir: o.Dir, Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Now().Format(time.DateOnly),
		Mode: o.Mode, CanAsk: o.CanAsk, Walls: m.walls.Sentence(), Held: m.walls.Whole(), Own: o.Terms.System,
		Extra: o.Terms.Append, Dirs: env.Files.AddedDirs(),
	}
	if o.ToolProtocol == xnlcall.XNL {
		s.Own = cmp.Or(s.Own, xnlcall.SystemPrompt())
	}
	root, repository := config.ProjectRoot(o.Dir)
	s.Repository = repository
	s.File, s.Project = o.instructions(root)
	roots := append([]string{env.Files.Path()}, env.Files.AddedDirs()...)
	place := PlaceOf(roots, o.Walls.Home, o.Walls.Agents, o.Walls.Lookup)
	services := o.Services
	services.CanAsk, services.Tell = o.CanAsk, m.tells(m.left.tells(services.Tell), o.Kept.ID())
	return engine.Options{
		ID: o.Kept.ID(), Services: services, Client: o.client(o.Choice), Retry: o.Choice.Patience(), Mode: o.Mode,
		Limits: o.Limits, Search: o.searches(t.away), Journal: o.Kept, Todos: env.Todos, System: engine.System(s),
		Secrets: o.known, Walls: Strength(m.walls, o.Sandbox != string(setting.Off)),
		Containment: m.ground(place, o.Services.Cover),
		Rules:       guard.Judge{Rules: o.Rules, Place: place, Known: t.known},
		Tools: func(task tool.Task) []tool.Tool {
			env.Task = task
			offered := o.offered(append(o.Tools.In(env), more...), t.away)
			if o.ToolProtocol == xnlcall.XNL {
				return tool.Routes(env, offered)
			}
			return offered
		},
		Other: o.other, Form: t.form, Helpers: o.Terms.Helpers,
	}
}

// tools opens the environment of the tools: files, commands, pages.
func (m *Mind) tools(o *Options) (*tool.Env, error) {
	id := ident.Hex(12)
	private := filepath.Join(cmp.Or(o.Temp, os.TempDir()), "omniagent-output-"+id)
	if err := workspace.MakeTemp(private, id); err != nil {
		return nil, fault.New(fault.PermissionDenied, "cannot create a temporary directory").Because(err)
	}
	m.closers = append(m.closers, func() { _ = os.RemoveAll(private) })
	files, err := workspace.OpenDir(o.Dir, private)
	if err != nil {
		return nil, err
	}
	m.closers = append(m.closers, func() { _ = files.Close() })
	if err := o.addDirectories(files); err != nil {
		return nil, err
	}
	if o.Services.Touched != nil {
		files.Watch(o.Services.Touched.Put)
	}
	env := &tool.Env{
		Files: files, Helpers: o.kinds(), Person: o.CanAsk, Seen: &tool.Seen{}, Todos: &tool.Todos{},
		Excludes: tool.ExcludesFile(o.variable), Agents: o.Others, Skills: o.skills(),
	}
	var todos []tool.Todo
	for _, t := range o.Kept.State().Todos {
		todos = append(todos, tool.Todo{Content: t.Content, Status: t.Status, ActiveForm: t.Active})
	}
	env.Todos.Set(todos)
	starter, err := m.enclose(o, private)
	if err != nil {
		return nil, err
	}
	commands, err := shell.New(shell.Options{
		Root: o.Dir, Env: o.inheritance().Commands(o.Env), Private: private, Secrets: o.known, Starter: starter,
		Opened: m.left.follow(m.walls.Opened()), Ready: m.ready(*o), Kept: m.refused.take,
	})
	if err != nil {
		o.Log("the model can run no commands: %v", err)
	} else {
		m.closers = append(m.closers, commands.Close)
		env.Shell = commands
	}
	if o.Web {
		env.Web = webpage.New(webpage.Options{})
	}
	return env, nil
}

// addDirectories adds the host's directories, and withholds credentials and protected files in each.
func (o Options) addDirectories(files *workspace.Dir) error {
	roots := []*workspace.Dir{files}
	for _, dir := range o.Terms.Dirs {
		more, err := files.Add(dir)
		if err != nil {
			return err
		}
		if more != nil {
			roots = append(roots, more)
		}
	}
	for _, root := range roots {
		secret := policy.Credentials(o.Walls.Agents, o.Walls.Home)
		root.Withhold(credentialsFrom(root.Path(), secret), o.Walls.Agents.Protected())
		root.Restrict(o.unreadable(files, root, guard.Deny), o.unreadable(files, root, guard.Ask))
	}
	return nil
}

// credentialsFrom returns the places of credentials for a workspace. A rehearsal's workspace lies in the state
// directory of this program, which is then not among them.
func credentialsFrom(root string, places []string) []string {
	return slices.DeleteFunc(places, func(place string) bool {
		return filepath.Base(place) == "omniagent" &&
			pathname.Within(filepath.Join(pathname.Real(place), "rehearsal"), pathname.Real(root))
	})
}

// unreadable returns the names that rules protect from reading. A search needs them, because its call names only a
// directory.
func (o Options) unreadable(files, in *workspace.Dir, w guard.Decision) workspace.Names {
	place := guard.Place{
		Root: files.Path(), More: files.AddedDirs(), Dir: files.Path(), Home: o.Walls.Home, Agents: o.Walls.Agents,
	}
	covers := o.Rules.Reading(w, place)
	if covers == nil {
		return nil
	}
	places := slices.Compact([]string{in.Path(), pathname.Real(in.Path())}) // a rule may use either name
	return func(real string) bool {
		return slices.ContainsFunc(places, func(place string) bool {
			return covers(filepath.Join(place, filepath.FromSlash(real)))
		})
	}
}

// inheritance returns the part of the environment that commands and servers get.
func (o Options) inheritance() shell.Inheritance {
	root, _ := config.ProjectRoot(o.Dir)
	return shell.Inheritance{Roots: []string{o.Dir, root}, More: o.HandOn}
}

// instructions returns the project's instructions: the first of the usual files, if its content is trusted.
func (o Options) instructions(root string) (name, text string) {
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "claude.md"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		data, err := workspace.ReadFile(path, 1<<20)
		if err != nil {
			continue
		}
		if o.Trusted == nil || !o.Trusted(path, data) {
			o.Log("%s is not read, because its content is not trusted; review it, then run: omniagent trust %s",
				name, path)
			return "", ""
		}
		return name, string(data)
	}
	return "", ""
}

// closeTimeout limits how long Close waits for the end of a turn.
const closeTimeout = 10 * time.Second

// Close ends the turn, the commands and the servers. It does not close the session.
func (m *Mind) Close(ctx context.Context) (agent.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	outcome, err := m.Mind.Close(ctx)
	m.release()
	return outcome, err
}

// Facts returns what is known about the conversation.
func (m *Mind) Facts() event.Facts {
	facts := m.facts
	facts.Walls = m.Walls()
	facts.Merge(m.Mind.Facts())
	return facts
}

// Instructions implements agent.Instructed.
func (m *Mind) Instructions() []string {
	system, tools := m.Mind.Instructions()
	if m.written {
		for _, d := range xnlcall.Documents(tools) {
			system = append(system, d.Text)
		}
	}
	return system
}

func (m *Mind) release() {
	m.once.Do(func() {
		for _, close := range slices.Backward(m.closers) {
			close()
		}
	})
}

// variable returns a variable of the user's environment, or "".
func (o Options) variable(name string) string {
	if o.Walls.Lookup == nil {
		return ""
	}
	value, _ := o.Walls.Lookup(name)
	return value
}
