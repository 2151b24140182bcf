package claude

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
)

// Delta holds the changes to a conversation by one source of Claude Code settings. Zero fields change nothing.
type Delta struct {
	From             string // the name of the source, for errors
	Allow, Deny, Ask []string
	Dirs             []string
	Mode             *Mode
	NoBypass         bool     // the mode bypassPermissions is forbidden
	Walls            bool     // commands must run in a sandbox
	Hosts            []string // the only hosts that commands may reach; nil if not set
	Model            string   // the default model
	System, Append   string
	Helpers          []agent.Helper
	Servers          []json.RawMessage // MCP servers, as mcpServers objects
	Schema           []byte
	Ignored          []string // members without an effect here
}

// Notes returns messages about the delta for people.
func (d Delta) Notes() (all []string) {
	for _, name := range d.Ignored {
		all = append(all, fmt.Sprintf("%s: %s is ignored: it changes nothing here", d.From, name))
	}
	return all
}

// ReadSettings reads Claude Code's settings. The error names a limit that cannot be enforced.
func ReadSettings(from string, data []byte) (Delta, error) {
	d := Delta{From: from}
	return d, members("settings", data, effective(d.setting))
}

// cosmetic returns the members that only affect display, logs, or another agent.
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
		return read("settings: model", raw, &d.Model)
	case name == "hooks":
		return d.hooks(raw)
	case slices.Contains(cosmetic(), name):
		d.Ignored = append(d.Ignored, name)
		return nil
	}
	return unknown("settings: " + clipped(name))
}

func (d *Delta) permissions(raw json.RawMessage) error {
	var mode string
	known := map[string]any{
		"allow": &d.Allow, "ask": &d.Ask, "deny": &d.Deny, "additionalDirectories": &d.Dirs, "defaultMode": &mode,
	}
	err := members("settings: permissions", raw, effective(func(name string, value json.RawMessage) error {
		switch {
		case known[name] != nil:
			return read("settings: permissions."+name, value, known[name])
		case name == "disableBypassPermissionsMode" && string(value) == `"disable"`:
			d.NoBypass = true
		case name != "disableAutoMode": // auto mode does not exist here
			return unknown("settings: permissions." + clipped(name))
		}
		return nil
	}))
	if err != nil {
		return err
	}
	switch mode {
	case "":
	case "auto": // auto mode does not exist here
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

// hooks reads the user's hook programs. They are not called here, so hooks that may forbid something are refused.
func (d *Delta) hooks(raw json.RawMessage) error {
	observers := append(onlookers(), "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd", "Stop",
		"SubagentStart", "SubagentStop", "PreCompact")
	return members("settings: hooks", raw, func(name string, value json.RawMessage) error {
		if !empty(value) && !slices.Contains(observers, name) {
			return fmt.Errorf("settings: hooks.%s may forbid something, but is not called here", clipped(name))
		}
		d.Ignored = append(d.Ignored, "hooks."+clipped(name))
		return nil
	})
}

// sandbox accepts limits that our sandbox enforces anyway.
func (d *Delta) sandbox(raw json.RawMessage) error {
	err := members("settings: sandbox", raw, func(name string, value json.RawMessage) error {
		on := strings.TrimSpace(string(value)) == "true"
		switch {
		case name == "enabled":
			d.Walls = d.Walls || on
		case name == "network":
			return members("settings: sandbox.network", value, d.network)
		case name == "failIfUnavailable" && on:
			return fmt.Errorf("settings: sandbox.failIfUnavailable would not be kept: where no walls can be built, " +
				"commands are asked about")
		case slices.Contains([]string{
			"autoAllowBashIfSandboxed", "allowUnsandboxedCommands", "excludedCommands",
			"enableWeakerNestedSandbox", "ignoreViolations", "failIfUnavailable",
		}, name):
			d.Ignored = append(d.Ignored, "sandbox."+name) // it only allows more, which stays forbidden
		case !empty(value):
			return unknown("settings: sandbox." + clipped(name))
		}
		return nil
	})
	if err == nil && d.Hosts != nil && !d.Walls {
		err = fmt.Errorf("settings: sandbox.network limits nothing where sandbox.enabled is not true")
	}
	return err
}

func (d *Delta) network(name string, value json.RawMessage) error {
	switch {
	case name == "allowedDomains" && json.Unmarshal(value, &d.Hosts) == nil:
		d.Hosts = nonNil(d.Hosts)
	case name != "allowLocalBinding" && !empty(value): // allowLocalBinding only allows more, which stays forbidden
		return unknown("settings: sandbox.network." + clipped(name))
	}
	return nil
}

// Stricter keeps only the restrictions, as for a file that comes with a workspace.
func (d Delta) Stricter() Delta {
	return Delta{From: d.From, Ignored: d.Ignored, Ask: d.Ask, Deny: d.Deny, NoBypass: d.NoBypass, Walls: d.Walls}
}

// Foreign returns tools of Claude Code that hosts may name. Most do not exist here, so ask the list of ours first.
func Foreign() []string {
	return []string{
		"Artifact", "AskUserQuestion", "ClaudeDesign", "CronCreate", "CronDelete", "CronList", "EndConversation",
		"EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "ListAgents",
		"ListMcpResources", "ListMcpResourcesTool", "LSP", "Monitor", "NotebookRead", "OfferChromeSetup", "PowerShell",
		"Projects", "propose_skills", "PushNotification", "ReadMcpResource", "ReadMcpResourceDirTool",
		"ReadMcpResourceTool", "ReadNotifications",
		"RemoteTrigger", "ReportFindings", "ScheduleWakeup", "SendFeedback", "SendMessage", "SendUserFile",
		"SendUserMessage", "SetGoal", "ShareOnboardingGuide", "ShowOnboardingRolePicker", "Skill",
		"SlashCommand", "StructuredOutput", "SubagentHandback", "TaskCreate", "TaskGet", "TaskList", "TaskOutput",
		"TaskStop", "TaskUpdate", "ToolSearch", "WaitForMcpServers", "Workflow",
	}
}

// OurRules converts rules to ours, with one name for the tool that starts a sub-agent. It returns rules for tools that
// only Claude Code has in without, unless known reports that they are supported.
func OurRules(rules []string, known func(rule string) bool) (ours, without []string) {
	for _, r := range rules {
		name, rest, brackets := strings.Cut(r, "(")
		switch {
		case slices.Contains(Foreign(), name) && !known(r):
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
