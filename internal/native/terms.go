package native

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/native/xnlcall"
	"omniagent/internal/walls/guard"
	"omniagent/internal/wire/claude"
	"omniagent/internal/wire/mcp"
)

// fromHost is the source of a host's rules.
const fromHost = "the host of this conversation"

// terms are a host's terms, read and checked.
type terms struct {
	form  *engine.Form
	away  []string // tools that the model does not get, named as in Terms.Deny
	hosts []mcp.Server
	known guard.Known
}

// readTerms reads the terms, and refuses unsupported ones.
func (o *Options) readTerms() (terms, error) {
	if o.Tools == nil {
		o.Tools = tool.Ours()
	}
	t := terms{known: o.Tools.Specs()}
	asked := o.Terms
	if o.Schema != nil {
		var err error
		if t.form, err = engine.NewForm(o.Schema, o.Retries); err != nil {
			return t, err
		}
	}
	o.Limits.Turns, o.Limits.CostUSD = cmp.Or(asked.MaxTurns, o.Limits.Turns), cmp.Or(asked.MaxUSD, o.Limits.CostUSD)
	switch {
	case asked.MaxTurns < 0 || asked.MaxUSD < 0:
		return t, fault.New(fault.ArgError, "--max-turns and --max-budget-usd must be 0 or more")
	case o.Limits.CostUSD > 0 && o.Choice.Known.Prices == nil:
		return t, engine.Unpriced(o.Choice.Model)
	case asked.Transport == agent.ByACP:
		return t, fault.New(fault.Unsupported,
			"the native agent is part of this program, and needs no protocol")
	case asked.Continue && o.Resume != "":
		return t, fault.New(fault.ArgError, "--resume %s and --continue cannot be combined", o.Resume)
	case asked.Fork && !asked.Continue && o.Resume == "":
		return t, fault.New(fault.ArgError, "there is nothing to fork: no session is resumed")
	}
	if err := errors.Join(o.directories(), o.toolsExist()); err != nil {
		return t, err
	}
	if err := o.rules(&t); err != nil {
		return t, err
	}
	if err := o.helpers(); err != nil {
		return t, err
	}
	var err error
	t.hosts, err = o.hosted()
	return t, err
}

// directories checks the directories in addition to the workspace.
func (o *Options) directories() error {
	o.Terms.Dirs = slices.Clone(o.Terms.Dirs)
	for i, dir := range o.Terms.Dirs {
		if !filepath.IsAbs(dir) {
			return fault.New(fault.ArgError, "%q has to be an absolute path", dir)
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return fault.New(fault.FileMissing, "%s is not a directory to work in", dir).Because(err)
		}
		if real, err := filepath.EvalSymlinks(dir); err != nil || filepath.Dir(real) == real {
			return fault.New(fault.Unsafe, "%s cannot be a directory to work in: it is a root", dir).Because(err)
		}
		o.Terms.Dirs[i] = filepath.Clean(dir)
	}
	return nil
}

// rules adds the host's allow and deny rules. A denied name without brackets removes the tool. A rule about a tool that
// does not exist here is ignored.
func (o *Options) rules(t *terms) error {
	o.Rules = slices.Clone(o.Rules)
	for _, list := range []struct {
		word  guard.Decision
		rules []string
	}{{guard.Allow, o.Terms.Allow}, {guard.Deny, o.Terms.Deny}} {
		for _, written := range list.rules {
			written = renamed(strings.TrimSpace(written))
			name, _, brackets := strings.Cut(written, "(")
			if o.foreign(name) {
				o.Log("there is no tool %s here, so the rule about it is ignored", name)
				continue
			}
			rule, err := t.known.Rule(list.word, written, fromHost)
			switch {
			case err != nil:
				return err
			case list.word == guard.Deny && !brackets:
				t.away = append(t.away, written)
			default:
				o.Rules = append(o.Rules, rule)
			}
		}
	}
	return nil
}

// toolsExist returns an error if no tool has a name in Terms.Tools, because a misspelt name would remove the tool. It
// ignores names of Claude Code's tools that do not exist here.
func (o Options) toolsExist() error {
	all := o.Tools.Specs()
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	for _, written := range o.Terms.Tools {
		is := func(t event.ToolSpec) bool { return o.named([]string{written}, t) }
		if slices.ContainsFunc(all, is) || strings.HasPrefix(written, "mcp__") || o.foreign(written) {
			continue
		}
		f := fault.New(fault.ArgError, "--tools: there is no tool %q", written)
		if near := text.Nearest(written, names); near != "" {
			return f.Hint("Did you mean %s?", near)
		}
		return f.Hint("There are %s.", strings.Join(names, ", "))
	}
	return nil
}

// foreign reports whether a tool is one of Claude Code that does not exist here.
func (o Options) foreign(name string) bool {
	return slices.Contains(claude.Foreign(), name) &&
		!slices.ContainsFunc(o.Tools.Specs(), func(t event.ToolSpec) bool { return t.Name == name })
}

// renamed returns a rule with our name for the tool, because Claude Code's may differ.
func renamed(rule string) string {
	if rest, agent := strings.CutPrefix(rule, "Agent"); agent && (rest == "" || rest[0] == '(') {
		return tool.TaskName
	}
	return rule
}

// offered returns the tools that the host leaves to the model. As in Claude Code, Terms.Tools does not apply to tools
// of servers.
func (o Options) offered(all []tool.Tool, away []string) []tool.Tool {
	return slices.DeleteFunc(all, func(t tool.Tool) bool {
		server := strings.HasPrefix(t.Name, "mcp__")
		if !server && o.Terms.Tools != nil && !o.named(o.Terms.Tools, t.ToolSpec) {
			return true
		}
		return o.named(away, t.ToolSpec)
	})
}

// named reports whether a list has a tool.
func (o Options) named(list []string, t event.ToolSpec) bool {
	return slices.ContainsFunc(list, func(written string) bool {
		return tool.Named(renamed(written), t.Name) || t.With != "" && written == t.With
	})
}

// searches reports whether the API may search the web itself, which counts as a tool.
func (o Options) searches(away []string) bool {
	search := event.ToolSpec{Name: tool.SearchName}
	return o.Web && (o.Terms.Tools == nil || o.named(o.Terms.Tools, search)) && !o.named(away, search)
}

// helpers checks the sub-agents that a host defines.
func (o *Options) helpers() error {
	o.Terms.Helpers = slices.Clone(o.Terms.Helpers)
	seen := map[string]bool{tool.GeneralHelper: true}
	for i, h := range o.Terms.Helpers {
		if h.Name == "" || seen[h.Name] || strings.TrimSpace(h.Prompt) == "" {
			return fault.New(fault.ArgError, "the sub-agent %q has an invalid name, or no instructions", h.Name)
		}
		seen[h.Name] = true
		h.Tools = slices.Clone(h.Tools)
		for j, name := range h.Tools {
			if strings.ContainsAny(name, "()") {
				return fault.New(fault.Unsupported, "the sub-agent %s cannot have part of a tool: %s", h.Name, name).
					Hint("name the tool, and deny what it may not do")
			}
			if strings.TrimSpace(name) == "*" {
				h.Tools = nil
				break
			}
			if h.Tools[j] = renamed(strings.TrimSpace(name)); o.ToolProtocol == xnlcall.XNL {
				h.Tools[j] = tool.RouteOf(h.Tools[j])
			}
		}
		h.Model = o.modelOf(h)
		if h.Model != "" {
			other, err := o.Choice.With(h.Model)
			if err != nil {
				return err
			}
			if o.Limits.CostUSD > 0 && other.Known.Prices == nil {
				return engine.Unpriced(h.Model)
			}
		}
		o.Terms.Helpers[i] = h
	}
	return nil
}

// modelOf returns the model of a helper. It ignores short names that belong to another API.
func (o Options) modelOf(h agent.Helper) string {
	switch {
	case h.Model == "inherit":
		return ""
	case o.Choice.ForeignShortName(h.Model):
		o.Log("the sub-agent %s has the model of the conversation: %s is not one of %s", h.Name, h.Model,
			o.Choice.Provider)
		return ""
	}
	return h.Model
}

// kinds returns the helpers for the description of the Task tool.
func (o Options) kinds() (all []tool.Helper) {
	for _, h := range o.Terms.Helpers {
		all = append(all, tool.Helper{Name: h.Name, Description: cmp.Or(h.Description, h.Name)})
	}
	return all
}

// hosted returns the servers that the host names. It returns an error if one is invalid, because the host relies on it.
func (o Options) hosted() ([]mcp.Server, error) {
	if len(o.Terms.Servers) == 0 || string(o.Terms.Servers) == "null" {
		return nil, nil
	}
	servers, problems, err := mcp.ParseHosted(o.Terms.Servers, o.inEntries)
	if err != nil {
		return nil, fault.New(fault.ArgError, "invalid MCP servers from the host").Because(err).
			Hint(`they look like {"NAME": {"command": "…", "args": []}}`)
	}
	if len(problems) > 0 {
		return nil, problems[0]
	}
	for _, s := range servers {
		if s.Hosted && o.Services.Serve == nil {
			return nil, fault.New(fault.Unsupported,
				"the MCP server %s lives in the host, which cannot reach it", s.Name)
		}
	}
	return servers, nil
}

// other returns another model of the same provider.
func (o Options) other(name string) (engine.Model, error) {
	choice, err := o.Choice.With(name)
	if err != nil {
		return engine.Model{}, err
	}
	return engine.Model{Client: o.client(choice), Retry: choice.Patience()}, nil
}

// client returns the client for a model, which calls tools by the protocol of the conversation.
func (o Options) client(choice provider.Choice) model.Client {
	switch {
	case o.ToolProtocol != xnlcall.XNL:
		return choice.Client()
	case o.Rehearsed:
		return xnlcall.ScriptClient(choice.Client())
	}
	return xnlcall.Wrap(choice.Client())
}
