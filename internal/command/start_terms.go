package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/native"
	"omniagent/internal/contract"
	"omniagent/internal/fault"
	"omniagent/internal/guard"
	"omniagent/internal/opening"
	"omniagent/internal/proto/claude"
	"omniagent/internal/setting"
	"omniagent/internal/stream"
	"omniagent/internal/workspace"
)

// choose fills in with what the conversation begins.
func (p *plan) choose(c *contract.Call, log, detail func(string, ...any)) error {
	mode, flag, err := approvalOf(c)
	if err != nil {
		return err
	}
	if p.chosen = flag != ""; !p.chosen {
		mode = setting.Default
		if c.String("dialect") == nested { // where nobody can be asked, Claude Code lets nothing run
			mode = setting.Prompt
		}
	}
	p.opener = opener{call: c, log: log, detail: detail, drivers: drivers(), provider: c.String("provider"), base: c.String("api-base")}
	p.agent = firstOf(c.String("agent"), native.Name)
	p.spec = agent.Spec{
		Dir: c.Dir(), Fresh: c.String("session-id"), Resume: c.String("resume"),
		Shared: setting.Shared{
			Model:   typed(c.String("model")),
			Sandbox: typed(setting.Sandbox(c.String("sandbox"))),
			Web:     typed(c.String("web") == "on"),
		},
		Terms: agent.Terms{
			Mode: mode, MaxTurns: int(c.Int("max-turns")), Network: c.String("network"), Continue: c.Bool("continue"), Fork: c.Bool("fork-session"),
			OnlyThese: c.Bool("strict-mcp-config"),
		},
	}
	p.unasked, p.bypass = c.String("permission-mode") == dontAsk, c.Bool("allow-bypass") || p.spec.Terms.Mode == setting.Yolo
	asks := p.stays || p.spec.Terms.Mode == setting.AskAll
	switch c.String("questions") {
	case "host":
		asks = true
	case "none":
		asks = false
	}
	p.services = agent.Services{CanAsk: asks && !p.unasked}
	if c.String("dialect") == nested { // the mode may change, and with it whether somebody is asked
		p.services.CanAsk = asks
	}
	if c.Given("history-file") {
		p.opener.history = c.Path("history-file")
	}
	if err := p.terms(c); err != nil {
		return err
	}
	return p.named()
}

// named sees that the names of sessions go together.
func (p *plan) named() error {
	s := &p.spec
	if s.Resume != "" && s.Fresh == s.Resume { // a host may name the session both ways
		s.Fresh = ""
	}
	if s.Fresh == "" || s.Resume == "" || p.opener.history != "" || s.Terms.Fork {
		return nil
	}
	return fault.New(fault.ArgError, "--resume %s goes on with a session, --session-id %s begins one", s.Resume, s.Fresh).
		Hint("omniagent session fork makes a session of another")
}

// terms are what the flags ask for beyond what all agents share.
func (p *plan) terms(c *contract.Call) error {
	t := &p.spec.Terms
	if text := c.String("max-budget-usd"); text != "" {
		t.MaxUSD, _ = strconv.ParseFloat(text, 64) // its form was checked
	}
	if c.Given("tools") {
		t.Tools = slices.DeleteFunc(c.Strings("tools"), func(name string) bool { return name == "" })
	}
	t.Allow, t.Deny = list(c, "allowed-tools"), list(c, "disallowed-tools")
	for _, dir := range c.Strings("add-dir") {
		t.Dirs = append(t.Dirs, c.Abs(dir))
	}
	var err error
	if t.System, err = textOr(c, "system-prompt"); err != nil {
		return err
	}
	if t.Append, err = textOr(c, "append-system-prompt"); err != nil {
		return err
	}
	if text := c.String("json-schema"); text != "" {
		if p.spec.Schema, err = compactObject("--json-schema", []byte(text)); err != nil {
			return err
		}
	}
	for _, value := range c.Strings("mcp-config") {
		data, err := jsonOrFile(c, "--mcp-config", value)
		if err != nil {
			return err
		}
		var file map[string]json.RawMessage
		if err := json.Unmarshal(data, &file); err != nil || file["mcpServers"] == nil {
			return fault.New(fault.ArgError, "--mcp-config is no JSON object with mcpServers")
		}
		if err := p.servers(file["mcpServers"]); err != nil {
			return err
		}
	}
	if text := c.String("agents"); text != "" {
		data, err := jsonOrFile(c, "--agents", text)
		if err != nil {
			return err
		}
		if t.Helpers, err = claude.ReadHelpers(data); err != nil {
			return fault.New(fault.ArgError, "--%v", err)
		}
	}
	if text := c.String("settings"); text != "" {
		data, err := jsonOrFile(c, "--settings", text)
		if err != nil {
			return err
		}
		if err := p.settings(c, "--settings", data, false); err != nil {
			return err
		}
	}
	if err := p.sources(c); err != nil {
		return err
	}
	return p.rules()
}

// list are the values of a flag that holds something; nil: none.
func list(c *contract.Call, name string) (values []string) {
	for _, v := range c.Strings(name) {
		if strings.TrimSpace(v) != "" {
			values = append(values, v)
		}
	}
	return values
}

// textOr is a text, as it stands or in a file.
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
		return "", fault.New(fault.ArgError, "--%s-file cannot be read", name).Because(err)
	}
	return string(data), nil
}

// jsonOrFile is a value that is JSON, or names a file with it.
func jsonOrFile(c *contract.Call, flag, value string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		return []byte(value), nil
	}
	data, err := workspace.ReadFile(c.Abs(value), 4<<20)
	if err != nil {
		return nil, fault.New(fault.ArgError, "%s is neither a JSON object nor a file that can be read", flag).Because(err)
	}
	return data, nil
}

// compactObject is a JSON object without white space.
func compactObject(flag string, data []byte) ([]byte, error) {
	var object map[string]json.RawMessage
	var b bytes.Buffer
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, fault.New(fault.ArgError, "%s is no JSON object", flag)
	}
	if err := json.Compact(&b, data); err != nil {
		return nil, fault.New(fault.ArgError, "%s is no JSON object", flag).Because(err)
	}
	return b.Bytes(), nil
}

// servers adds MCP servers to those of the conversation.
func (p *plan) servers(more []byte) error {
	all := map[string]json.RawMessage{}
	if p.spec.Terms.Servers != nil {
		if err := json.Unmarshal(p.spec.Terms.Servers, &all); err != nil {
			return fault.New(fault.Internal, "the MCP servers cannot be put together").Because(err)
		}
	}
	var added map[string]json.RawMessage
	if err := json.Unmarshal(more, &added); err != nil {
		return fault.New(fault.ArgError, "mcpServers is no object of servers by name")
	}
	maps.Copy(all, added)
	if len(all) == 0 {
		return nil
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fault.New(fault.Internal, "the MCP servers cannot be put together").Because(err)
	}
	p.spec.Terms.Servers = data
	return nil
}

// settings takes what Claude Code's settings say. Of those that nobody handed over only what they forbid counts.
func (p *plan) settings(c *contract.Call, from string, data []byte, strict bool) error {
	s, err := claude.ReadSettings(data)
	if err != nil {
		return fault.New(fault.Unsupported, "%s: %v", from, err)
	}
	for _, name := range s.Ignored {
		p.opener.detail("%s: %s is ignored: it changes nothing here", from, name)
	}
	if strict {
		s = s.Stricter()
	}
	t := &p.spec.Terms
	t.Allow, t.Deny, t.Dirs = append(t.Allow, s.Allow...), append(t.Deny, s.Deny...), append(t.Dirs, s.Dirs...)
	for i, dir := range t.Dirs {
		t.Dirs[i] = c.Abs(dir)
	}
	p.opener.ask = append(p.opener.ask, s.Ask...)
	if s.Mode != "" && !p.chosen {
		m, _ := claude.ModeOf(s.Mode)
		t.Mode, p.unasked, p.bypass = m.Mode, m.Unasked, p.bypass || m.Mode == setting.Yolo
	}
	if s.NoBypass {
		if t.Mode == setting.Yolo {
			return fault.New(fault.Unsupported, "%s forbids the permission mode bypassPermissions, which was chosen", from)
		}
		p.bypass, p.noBypass = false, true
	}
	p.bypass = p.bypass && !p.noBypass
	if s.Walls {
		p.spec.Shared.Sandbox = typed(setting.WorkspaceWrite)
	}
	if s.HostsGiven && t.Network != "off" { // what was closed by a flag stays closed
		if t.Network = strings.Join(s.Hosts, ","); len(s.Hosts) == 0 {
			t.Network = "off"
		}
	}
	if s.Model != "" && p.spec.Shared.Model.Value == "" {
		p.spec.Shared.Model = typed(s.Model)
	}
	return nil
}

// sources reads the settings that were named by their place.
func (p *plan) sources(c *contract.Call) error {
	home, _ := c.Host.Lookup("HOME")
	config, _ := c.Host.Lookup("CLAUDE_CONFIG_DIR")
	if config == "" {
		config = filepath.Join(home, ".claude")
	}
	for _, source := range c.Strings("setting-sources") {
		path := map[string]string{
			"user": filepath.Join(config, "settings.json"), "project": filepath.Join(c.Dir(), ".claude", "settings.json"),
			"local": filepath.Join(c.Dir(), ".claude", "settings.local.json"),
		}[source]
		data, err := workspace.ReadFile(path, 4<<20)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fault.New(fault.Unsupported, "--setting-sources %s: %s cannot be read, and may forbid something", source, path).Because(err)
		}
		if err := p.settings(c, "--setting-sources "+source, data, true); err != nil {
			return err
		}
	}
	return nil
}

// rules puts the names of Claude Code's tools into those of the native agent. What is not here needs no denial, and nothing allows it.
func (p *plan) rules() error {
	if p.agent != native.Name {
		return nil
	}
	known := func(rule string) bool { _, err := guard.ParseRule(guard.Deny, rule, ""); return err == nil }
	t := &p.spec.Terms
	var without []string
	t.Allow, without = claude.OurRules(t.Allow, known)
	for _, r := range without {
		p.opener.detail("%s allows nothing: there is no such tool here", r)
	}
	t.Deny, _ = claude.OurRules(t.Deny, known)
	p.opener.ask, _ = claude.OurRules(p.opener.ask, known)
	if t.Tools != nil {
		t.Tools, without = claude.OurRules(t.Tools, known)
		for _, r := range without {
			p.opener.detail("there is no tool %s here", r)
		}
		if t.Tools == nil {
			t.Tools = []string{}
		}
	}
	return nil
}

// greet hears what a host of Claude Code's says before the conversation, and lets it be asked. Not open: it wants nothing at all.
func (p *plan) greet(ctx context.Context, c *contract.Call, host *stream.Host, d *stream.Claude, signals <-chan os.Signal) (open bool, err error) {
	d.Encoder.Limits = claude.Limits{Turns: p.spec.Terms.MaxTurns, USD: p.spec.Terms.MaxUSD}
	if p.spec.Fresh == "" && (p.spec.Resume == "" && !p.spec.Terms.Continue || p.spec.Terms.Fork) {
		p.spec.Fresh = opening.UUID()
	}
	if p.stays {
		type greeting struct {
			init    *claude.Initialize
			further []stream.Said
			open    bool
		}
		g, err := attended(ctx, signals, func(ctx context.Context) (g greeting, err error) {
			g.init, g.further, g.open = d.Greet(ctx, p.frames)
			return g, nil
		})
		if err != nil || !g.open {
			return false, err
		}
		host.Frames = ahead(g.further, p.frames)
		if g.init != nil {
			if err := p.initialized(c, d, *g.init); err != nil {
				d.Deny(fault.Of(err).Sentence())
				return false, err
			}
		}
	}
	d.Unasked, d.Asks, d.Bypass = p.unasked, p.services.CanAsk, p.bypass
	if m := p.spec.Shared.Model.Value; m != "" {
		d.Models = []string{m}
	}
	return true, nil
}

// initialized takes what initialize says.
func (p *plan) initialized(c *contract.Call, d *stream.Claude, i claude.Initialize) error {
	if i.Refused != nil {
		return fault.New(fault.Unsupported, "%v", i.Refused)
	}
	for _, name := range i.Ignored {
		p.opener.detail("initialize: %s is ignored: it changes nothing here", name)
	}
	t := &p.spec.Terms
	if i.System != "" {
		t.System = i.System
	}
	if i.Append != "" {
		t.Append = i.Append
	}
	t.Helpers = append(t.Helpers, i.Helpers...)
	t.Deny = append(t.Deny, i.Deny...)
	if i.Schema != nil {
		p.spec.Schema = i.Schema
	}
	if i.Others != nil {
		if err := p.servers(i.Others); err != nil {
			return err
		}
	}
	if len(i.Servers) > 0 {
		inside := map[string]map[string]string{}
		for _, name := range i.Servers {
			inside[name] = map[string]string{"type": "sdk", "name": name}
		}
		data, err := json.Marshal(inside)
		if err != nil {
			return fault.New(fault.Internal, "the host's MCP servers cannot be named").Because(err)
		}
		if err := p.servers(data); err != nil {
			return err
		}
	}
	if i.Settings != nil {
		data := []byte(i.Settings)
		var path string
		if json.Unmarshal(data, &path) == nil {
			var err error
			if data, err = jsonOrFile(c, "initialize: settings", path); err != nil {
				return err
			}
		}
		if err := p.settings(c, "initialize", data, false); err != nil {
			return err
		}
	}
	if len(i.Hooks) > 0 {
		p.services.Hook = d.Hook
	}
	p.services.Serve = d.Serve
	return p.rules()
}

// ahead are frames that were read before, and those to come.
func ahead(first []stream.Said, rest <-chan stream.Said) <-chan stream.Said {
	if len(first) == 0 {
		return rest
	}
	all := make(chan stream.Said, len(first))
	for _, s := range first {
		all <- s
	}
	go func() {
		defer close(all)
		for s := range rest {
			all <- s
		}
	}()
	return all
}
