package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
)

// Initialize is the request that a host sends before the conversation begins.
type Initialize struct {
	Delta
	Hooks    []Hook
	Settings []byte // an object, or a string with the path of a file; may be nil
	Refused  error  // not nil if the request is unsupported; then everything else is empty
}

// Hook is a hook of the host.
type Hook struct {
	Moment  agent.MomentName
	Matcher Matcher
	IDs     []string      // one for each of the host's functions
	Timeout time.Duration // 0 if not set
	Block   bool          // if the hook fails, block its subject
}

// ReadInitialize reads the request. The error names the unsupported member.
func ReadInitialize(body []byte) (*Initialize, error) {
	init := Initialize{Delta: Delta{From: "initialize"}}
	if err := members("initialize", body, effective(init.member)); err != nil {
		return nil, err
	}
	return &init, nil
}

// members calls each for the members of an object, sorted by name.
func members(what string, object []byte, each func(name string, raw json.RawMessage) error) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return fmt.Errorf("%s must be an object: %w", what, fault.InJSON(err))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := each(name, all[name]); err != nil {
			return err
		}
	}
	return nil
}

// effective wraps each so that it skips members without an effect.
func effective(each func(name string, raw json.RawMessage) error) func(string, json.RawMessage) error {
	return func(name string, raw json.RawMessage) error {
		if empty(raw) {
			return nil
		}
		return each(name, raw)
	}
}

// read decodes a member. The error names it.
func read(what string, raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s is invalid: %w", what, err)
	}
	return nil
}

// unknown refuses an unknown member.
func unknown(what string) error {
	return fmt.Errorf("%s is unknown here, and may be a limit", what)
}

// empty reports whether a member has no effect.
func empty(raw json.RawMessage) bool {
	return slices.Contains([]string{"null", "false", `""`, "[]", "{}"}, string(bytes.TrimSpace(raw)))
}

func (i *Initialize) member(name string, raw json.RawMessage) (err error) {
	read := func(into any) error { return read("initialize: "+name, raw, into) }
	switch name {
	case "subtype":
		return nil
	case "hooks":
		i.Hooks, i.Ignored, err = readHooks(raw, i.Ignored)
		return err
	case "sdkMcpServers":
		var names []string
		if err := read(&names); err != nil {
			return err
		}
		inside := map[string]map[string]string{}
		for _, name := range names {
			inside[name] = map[string]string{"type": "sdk", "name": name}
		}
		i.Servers = append(i.Servers, encode(inside))
		return nil
	case "mcpServers":
		i.Servers = append(i.Servers, raw)
		return nil
	case "jsonSchema":
		i.Schema = compact(raw)
		return nil
	case "systemPrompt":
		var parts []string
		if json.Unmarshal(raw, &i.System) == nil {
			return nil
		}
		if err := read(&parts); err != nil {
			return err
		}
		i.System = strings.TrimSpace(strings.Join(parts, "\n")) // hosts send [""] to leave it unchanged
		return nil
	case "appendSystemPrompt":
		return read(&i.Append)
	case "agents":
		i.Helpers, err = ReadHelpers(raw)
		return err
	case "disallowedTools":
		return read(&i.Deny)
	case "settings":
		i.Settings = raw
		return nil
	case "sdkMcpServerConfigs":
		return limitsOfServers(raw)
	case "sdkMcpServerManifests", "sdkMcpServerManifestsOrigin", "systemPromptSnapshot", "planModeInstructions",
		"excludeDynamicSections", "title", "promptSuggestions",
		"agentProgressSummaries", "forwardSubagentText", "supportedDialogKinds", "perTaskStopAffordance", "skills":
		i.Ignored = append(i.Ignored, name)
		return nil
	}
	return unknown("initialize: " + clipped(name))
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// limitsOfServers refuses tool policies for a host's servers.
func limitsOfServers(raw json.RawMessage) error {
	var configs map[string]struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := read("initialize: sdkMcpServerConfigs", raw, &configs); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if len(configs[name].Tools) > 0 {
			return fmt.Errorf(
				"initialize: sdkMcpServerConfigs limits tools of %s, which is not kept here; disallowedTools takes "+
					"them away", clipped(name))
		}
	}
	return nil
}

// ReadHelpers reads sub-agents in the format of --agents: an object by name.
func ReadHelpers(raw []byte) ([]agent.Helper, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("agents must be an object of agents by name: %w", fault.InJSON(err))
	}
	var list []agent.Helper
	for _, name := range slices.Sorted(maps.Keys(all)) {
		h := agent.Helper{Name: name}
		known := map[string]any{
			"description": &h.Description, "prompt": &h.Prompt, "tools": &h.Tools,
			"model": &h.Model,
		}
		err := members("agents: "+clipped(name), all[name], func(member string, value json.RawMessage) error {
			switch {
			case empty(value) && member != "tools":
				return nil
			case known[member] != nil:
				return read("agents: "+member+" of "+clipped(name), value, known[member])
			case slices.Contains([]string{
				"color", "skills", "effort", "memory", "background", "initialPrompt",
				"criticalSystemReminder_EXPERIMENTAL", "autoCompactWindow",
			}, member):
				return nil
			}
			return unknown("agents: " + clipped(member) + " of " + clipped(name))
		})
		if err != nil {
			return nil, err
		}
		if h.Model == "inherit" {
			h.Model = ""
		}
		if h.Prompt == "" || h.Description == "" {
			return nil, fmt.Errorf("agents: %s needs a description and a prompt", clipped(name))
		}
		list = append(list, h)
	}
	return list, nil
}

// Welcome returns the answer to initialize.
func (e *Encoder) Welcome(models []string, hooks bool) any {
	type helper struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	type model struct {
		Value       string `json:"value"`
		Display     string `json:"displayName"`
		Description string `json:"description"`
	}
	type welcome struct {
		Commands []string          `json:"commands"`
		Helpers  []helper          `json:"agents"`
		Style    string            `json:"output_style"`
		Styles   []string          `json:"available_output_styles"`
		Models   []model           `json:"models"`
		Account  map[string]string `json:"account"`
		Mode     string            `json:"current_permission_mode"`
		Failures bool              `json:"hook_on_failure_supported"`
		Hooks    bool              `json:"hooks_applied,omitempty"`
		Version  string            `json:"claude_code_version"`
	}
	w := welcome{
		Commands: []string{}, Helpers: []helper{}, Style: "default", Styles: []string{"default"}, Models: []model{},
		Account: map[string]string{}, Mode: Word(e.facts.Mode, e.Unasked), Failures: true, Hooks: hooks,
		Version: e.Version,
	}
	for _, h := range e.facts.Helpers {
		w.Helpers = append(w.Helpers, helper{Name: h})
	}
	for _, m := range models {
		w.Models = append(w.Models, model{Value: m, Display: m})
	}
	return w
}

// Servers returns the MCP servers for the host.
func (e *Encoder) Servers() any {
	list := []Server{}
	for _, s := range e.facts.Servers {
		list = append(list, Server(s))
	}
	return map[string][]Server{"mcpServers": list}
}
