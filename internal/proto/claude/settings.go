package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"omniagent/internal/agent"
)

// Delta is what one settings source of a Claude Code host changes in a conversation. Zero members change nothing.
type Delta struct {
	From             string // the source, as errors name it
	Allow, Deny, Ask []string
	Dirs             []string
	Mode             *Mode
	NoBypass         bool     // the mode bypassPermissions is forbidden
	Walls            bool     // commands must run in a sandbox
	Hosts            []string // the only hosts that commands may reach; nil: not set
	Model            string   // the default model
	System, Append   string
	Helpers          []agent.Helper
	Servers          []json.RawMessage // MCP servers, as objects mcpServers
	Schema           []byte
	Ignored          []string // members that change nothing here
}

// Notes returns messages for people about it.
func (d Delta) Notes() (all []string) {
	for _, name := range d.Ignored {
		all = append(all, fmt.Sprintf("%s: %s is ignored: it changes nothing here", d.From, name))
	}
	return all
}

// ReadSettings reads Claude Code's settings. The error names a limit that would not be enforced.
func ReadSettings(from string, data []byte) (Delta, error) {
	var all map[string]json.RawMessage
	d := Delta{From: from}
	if err := json.Unmarshal(data, &all); err != nil {
		return d, fmt.Errorf("settings are no JSON object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if empty(all[name]) {
			continue
		}
		if err := d.setting(name, all[name]); err != nil {
			return d, err
		}
	}
	return d, nil
}

// cosmetic returns the members that only change how things look or are logged, or how another agent behaves.
func cosmetic() []string {
	return []string{
		"$schema", "alwaysThinkingEnabled", "apiKeyHelper", "attribution", "autoUpdatesChannel", "cleanupPeriodDays",
		"companyAnnouncements", "effortLevel", "enabledPlugins", "env",
		"extraKnownMarketplaces", "fastMode", "feedbackSurveyRate", "fileSuggestion", "forceLoginMethod",
		"forceLoginOrgUUID", "includeCoAuthoredBy", "language", "otelHeadersHelper", "outputStyle",
		"plansDirectory", "preferredNotifChannel", "promptSuggestionEnabled", "respectGitignore", "showTurnDuration",
		"spinnerTipsEnabled", "spinnerVerbs", "statusLine", "terminalProgressBarEnabled",
		"theme", "verbose", "disableAllHooks", "enableAllProjectMcpServers", "enabledMcpjsonServers",
		"skipDangerousModePermissionPrompt",
	}
}

func (d *Delta) setting(name string, raw json.RawMessage) error {
	switch {
	case name == "permissions":
		return d.permissions(raw)
	case name == "sandbox":
		return d.sandbox(raw)
	case name == "model":
		if json.Unmarshal(raw, &d.Model) != nil {
			return fmt.Errorf("settings: model must be a string")
		}
		return nil
	case name == "hooks":
		return d.hooks(raw)
	case slices.Contains(cosmetic(), name):
		d.Ignored = append(d.Ignored, name)
		return nil
	}
	return fmt.Errorf("settings: %s means nothing here, and may be a limit", clipped(name))
}

func (d *Delta) permissions(raw json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("settings: permissions must be an object: %w", err)
	}
	var mode string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		into := map[string]any{
			"allow": &d.Allow, "ask": &d.Ask, "deny": &d.Deny, "additionalDirectories": &d.Dirs,
			"defaultMode": &mode,
		}[name]
		var word string
		switch {
		case empty(all[name]):
		case into != nil:
			if err := json.Unmarshal(all[name], into); err != nil {
				return fmt.Errorf("settings: permissions.%s is not what it should be: %w", name, err)
			}
		case name == "disableBypassPermissionsMode" && json.Unmarshal(all[name], &word) == nil && word == "disable":
			d.NoBypass = true
		case name == "disableAutoMode": // it does not exist here
		default:
			return fmt.Errorf("settings: permissions.%s means nothing here, and may be a limit", clipped(name))
		}
	}
	switch mode {
	case "":
	case "auto": // a default that does not exist here
		d.Ignored = append(d.Ignored, "permissions.defaultMode")
	default:
		m, why := ModeOf(mode)
		if why != "" {
			return fmt.Errorf("settings: permissions.defaultMode %s: %s", clipped(mode), why)
		}
		d.Mode = &m
	}
	return nil
}

// hooks reads programs of the user. Those that only observe are not called here; one that may forbid something is
// refused.
func (d *Delta) hooks(raw json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("settings: hooks must be an object: %w", err)
	}
	looks := append(onlookers(), "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd", "Stop",
		"SubagentStart", "SubagentStop", "PreCompact")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !empty(all[name]) && !slices.Contains(looks, name) {
			return fmt.Errorf("settings: hooks.%s may forbid something, and is not called here", clipped(name))
		}
		d.Ignored = append(d.Ignored, "hooks."+clipped(name))
	}
	return nil
}

// sandbox accepts limits that the sandbox enforces anyway.
func (d *Delta) sandbox(raw json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("settings: sandbox must be an object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := strings.TrimSpace(string(all[name]))
		switch {
		case name == "enabled":
			d.Walls = d.Walls || value == "true"
		case name == "network":
			var network map[string]json.RawMessage
			if json.Unmarshal(all[name], &network) != nil {
				return fmt.Errorf("settings: sandbox.network must be an object")
			}
			for _, member := range slices.Sorted(maps.Keys(network)) {
				switch {
				case member == "allowedDomains" && json.Unmarshal(network[member], &d.Hosts) == nil:
					d.Hosts = nonNil(d.Hosts)
				case member == "allowLocalBinding" || empty(network[member]): // what it allows remains forbidden
				default:
					return fmt.Errorf("settings: sandbox.network.%s means nothing here, and may be a limit",
						clipped(member))
				}
			}
		case name == "failIfUnavailable" && value == "true":
			return fmt.Errorf(
				"settings: sandbox.failIfUnavailable would not be kept: where no walls can be built, commands are " +
					"asked about")
		case slices.Contains([]string{
			"autoAllowBashIfSandboxed", "allowUnsandboxedCommands", "excludedCommands",
			"enableWeakerNestedSandbox", "ignoreViolations", "failIfUnavailable",
		}, name):
			d.Ignored = append(d.Ignored, "sandbox."+name) // what it allows remains forbidden
		case empty(all[name]):
		default:
			return fmt.Errorf("settings: sandbox.%s means nothing here, and may be a limit", clipped(name))
		}
	}
	if d.Hosts != nil && !d.Walls {
		return fmt.Errorf("settings: sandbox.network limits nothing where sandbox.enabled is not true")
	}
	return nil
}

// Stricter keeps only what forbids something, as for a file that comes with a workspace.
func (d Delta) Stricter() Delta {
	return Delta{From: d.From, Ignored: d.Ignored, Ask: d.Ask, Deny: d.Deny, NoBypass: d.NoBypass, Walls: d.Walls}
}

// foreign returns Claude Code's tools that we do not have.
func foreign() []string {
	return []string{
		"Artifact", "AskUserQuestion", "ClaudeDesign", "CronCreate", "CronDelete", "CronList", "EndConversation",
		"EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "ListAgents",
		"ListMcpResourcesTool", "LSP", "Monitor", "OfferChromeSetup", "PowerShell", "Projects", "propose_skills",
		"PushNotification", "ReadMcpResourceDirTool", "ReadMcpResourceTool", "ReadNotifications",
		"RemoteTrigger", "ReportFindings", "ScheduleWakeup", "SendFeedback", "SendMessage", "SendUserFile",
		"SendUserMessage", "SetGoal", "ShareOnboardingGuide", "ShowOnboardingRolePicker", "Skill",
		"SlashCommand", "StructuredOutput", "SubagentHandback", "TaskCreate", "TaskGet", "TaskList", "TaskOutput",
		"TaskStop", "TaskUpdate", "ToolSearch", "WaitForMcpServers", "Workflow",
	}
}

// OurRules converts rules to our words: the tool that starts a sub-agent has one name. without has the rules for tools
// that only Claude Code has; known reports which are supported here all the same.
func OurRules(rules []string, known func(rule string) bool) (ours, without []string) {
	for _, r := range rules {
		name, rest, brackets := strings.Cut(r, "(")
		switch {
		case slices.Contains(foreign(), name) && !known(r):
			without = append(without, r)
		case name == "Agent" && brackets:
			ours = append(ours, "Task("+rest)
		case name == "Agent":
			ours = append(ours, "Task")
		default:
			ours = append(ours, r)
		}
	}
	return ours, without
}
