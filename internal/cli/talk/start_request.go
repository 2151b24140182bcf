package talk

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/native"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/guard"
	"omniagent/internal/wire/claude"
)

// openRequest is what a call of start or chat asks for.
type openRequest struct {
	launch.Request
	host  stream.HostSettings
	notes []string
	tools guard.Known
}

// agentOf returns the agent of a conversation. For start the default is native, whatever the user has configured, so
// that programs get the same agent on every machine.
func (p commands) agentOf(c *contract.Call) string {
	if c.Command.Path != "chat" || p.Eidolon {
		return cmp.Or(c.String("agent"), native.Name)
	}
	return cmp.Or(c.String("agent"), c.Config.String("agent"), native.Name)
}

// requestOf returns the request that the flags describe. stays reports whether the host can send more than one message.
func (p commands) requestOf(c *contract.Call, stays bool) (r openRequest, err error) {
	mode, chosen, err := flags.ApprovalOf(c)
	switch {
	case err != nil:
		return r, err
	case chosen != "":
	case c.String("dialect") == claudeDialect: // without a person, Claude Code allows nothing
		mode = setting.Prompt
	default:
		mode = setting.Default
	}
	turn, connect := flags.Clocks(c)
	r.Request = launch.Request{
		Agent: p.agentOf(c), Provider: c.String("provider"), Base: c.String("api-base"),
		History: c.Path("history-file"), ToolProtocol: c.String("tool-protocol"),
		Forget: c.Bool("no-session-persistence"), Mode: chosen != "",
		Services: agent.Services{Timeout: turn, Connect: connect},
		Rejoin:   c.String("dialect") != claudeDialect, // Claude Code refuses an id that is taken
	}
	if slices.Contains(p.Providing(), r.Provider) && r.Agent == native.Name && c.Command.Path == "start" &&
		!c.Given("agent") {
		if r.Base != "" {
			return r, fault.New(fault.ArgError, "--api-base does not go with --provider %s, which is a program",
				r.Provider).
				Hint("--provider openai asks any server that speaks Chat Completions")
		}
		r.Agent, r.Provider = r.Provider, ""
	}
	for _, name := range []string{"resume", "session-id"} {
		if c.Given(name) && c.String(name) == "" && c.Command.Path == "start" { // chat shows a list
			return r, fault.New(fault.ArgError, "--%s is empty", name).Hint("Leave it out to begin a new conversation.")
		}
	}
	r.tools = p.Tools.Specs()
	r.host = stream.HostSettings{Unasked: c.String("permission-mode") == flags.DontAsk}
	r.Spec = agent.Spec{
		Dir: c.Dir(), Fresh: c.String("session-id"), Resume: c.String("resume"),
		Shared: setting.Shared{
			Model:   parts.FromFlag(c.String("model")),
			Sandbox: parts.FromFlag(setting.Sandbox(c.String("sandbox"))),
			Web:     parts.FromFlag(c.String("web") == "on"),
		},
	}
	if r.Spec.Terms, err = termsOf(c, mode); err != nil {
		return r, err
	}
	if text := c.String("json-schema"); text != "" {
		if r.Spec.Schema, err = stream.Compact("--json-schema", text); err != nil {
			return r, err
		}
		r.Spec.Retries = c.Int("json-schema-retries")
	}
	deltas, err := deltasOf(c)
	if err != nil {
		return r, err
	}
	if r, err = r.withDeltas(deltas); err != nil {
		return r, err
	}
	asks := stays || mode == setting.AskAll
	switch c.String("questions") {
	case "host":
		asks = true
	case "none":
		asks = false
	}
	if c.String("dialect") != claudeDialect { // in Claude Code's dialect, the host may change the mode to one that asks
		asks = asks && !r.host.Unasked
	}
	r.Services.CanAsk = asks
	return r.checkIDs()
}

// withDeltas returns the request with the changes that Claude Code's flags and files make.
func (r openRequest) withDeltas(deltas []claude.Delta) (openRequest, error) {
	notes := slices.Clone(r.notes)
	for _, d := range deltas {
		notes = append(notes, d.Notes()...)
	}
	var err error
	if r.Request, r.host, err = stream.With(r.Request, r.host, deltas...); err == nil && r.Agent == native.Name {
		var more []string
		r.Request, more = stream.Native(r.Request, r.tools)
		notes = append(notes, more...)
	}
	r.notes = notes
	return r, err
}

// checkIDs checks that --resume and --session-id can be combined.
func (r openRequest) checkIDs() (openRequest, error) {
	s := &r.Spec
	if s.Resume != "" && s.Fresh == s.Resume { // a host may pass the id in both flags
		s.Fresh = ""
	}
	if s.Fresh == "" || s.Resume == "" || r.History != "" || s.Terms.Fork {
		return r, nil
	}
	return r, fault.New(fault.ArgError, "--resume %s continues a session, but --session-id %s begins one", s.Resume,
		s.Fresh).
		Hint("omniagent session fork makes a session of another")
}

// termsOf returns the settings of a conversation that not every agent supports.
func termsOf(c *contract.Call, mode setting.Approval) (t agent.Terms, err error) {
	t = agent.Terms{
		Mode: mode, Bypass: c.Bool("allow-bypass") || mode == setting.Yolo, MaxTurns: int(c.Int("max-turns")),
		Network: c.String("network"), Continue: c.Bool("continue"), Fork: c.Bool("fork-session"),
		OnlyThese: c.Bool("strict-mcp-config"),
		Allow:     nonBlank(c, "allowed-tools"), Deny: nonBlank(c, "disallowed-tools"),
	}
	if text := c.String("max-budget-usd"); text != "" {
		t.MaxUSD, _ = strconv.ParseFloat(text, 64) // its form was checked
	}
	if c.Given("tools") {
		t.Tools = []string{}
		for _, names := range c.Strings("tools") {
			t.Tools = append(t.Tools, strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })...)
		}
	}
	t.Dirs = flags.AddedDirs(c)
	if t.System, err = textOr(c, "system-prompt"); err != nil {
		return t, err
	}
	t.Append, err = textOr(c, "append-system-prompt")
	return t, err
}

// deltasOf reads the flags and files in Claude Code's own formats.
func deltasOf(c *contract.Call) (deltas []claude.Delta, err error) {
	type source struct {
		flag, value string
		read        func(from string, data []byte) (claude.Delta, error)
	}
	var sources []source
	for _, value := range c.Strings("mcp-config") {
		sources = append(sources, source{"--mcp-config", value, stream.Servers})
	}
	if value := c.String("agents"); value != "" {
		sources = append(sources, source{"--agents", value, stream.Helpers})
	}
	if value := c.String("settings"); value != "" {
		sources = append(sources, source{"--settings", value, stream.ReadSettings})
	}
	files := filesOf(c)
	for _, s := range sources {
		data, err := files.Object(s.flag, s.value)
		if err != nil {
			return nil, err
		}
		d, err := s.read(s.flag, data)
		if err != nil {
			return nil, err
		}
		deltas = append(deltas, d)
	}
	for _, name := range c.Strings("setting-sources") {
		d, err := stream.Source(name, files)
		if err != nil {
			return nil, err
		}
		deltas = append(deltas, d)
	}
	return deltas, nil
}

// filesOf returns where Claude Code's files are, and how to read them.
func filesOf(c *contract.Call) stream.Files {
	own, _ := c.Host.Lookup("CLAUDE_CONFIG_DIR")
	return stream.Files{
		Config: cmp.Or(own, filepath.Join(c.Host.Home(), ".claude")), Dir: c.Dir(),
		Read: func(path string) ([]byte, error) { return workspace.ReadFile(path, 4<<20) },
	}
}

// nonBlank returns the values of a flag that are not blank.
func nonBlank(c *contract.Call, name string) (values []string) {
	for _, v := range c.Strings(name) {
		if strings.TrimSpace(v) != "" {
			values = append(values, v)
		}
	}
	return values
}

// textOr returns a text that one flag gives directly, or another one as a file.
func textOr(c *contract.Call, name string) (string, error) {
	path := c.Path(name + "-file")
	switch {
	case path == "":
		return c.String(name), nil
	case c.String(name) != "":
		return "", fault.New(fault.ArgError, "--%s and --%s-file exclude each other", name, name)
	}
	data, err := workspace.ReadFile(path, 1<<20)
	if err != nil {
		return "", fault.New(fault.ArgError, "--%s-file cannot be read", name).Because(err).
			Hint("check the path; relative paths start at --cwd")
	}
	return string(data), nil
}
