package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Settings are what Claude Code's settings say that can be meant here.
type Settings struct {
	Allow, Ask, Deny []string
	Dirs             []string
	Mode             string // Claude Code's word
	NoBypass         bool   // nothing may run in the mode bypassPermissions
	Walls            bool   // commands have to run behind walls
	Hosts            []string
	HostsGiven       bool // Hosts are all that commands may reach
	Model            string
	Ignored          []string
}

// ReadSettings reads them. The error names what limits something and would not be kept.
func ReadSettings(data []byte) (s Settings, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return s, fmt.Errorf("settings are no JSON object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if empty(all[name]) {
			continue
		}
		if err := s.member(name, all[name]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// cosmetic are members that change how things look, or what is noted of them, or what an agent does that is not ours.
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

func (s *Settings) member(name string, raw json.RawMessage) error {
	switch {
	case name == "permissions":
		return s.permissions(raw)
	case name == "sandbox":
		return s.sandbox(raw)
	case name == "model":
		if json.Unmarshal(raw, &s.Model) != nil {
			return fmt.Errorf("settings: model is no text")
		}
		return nil
	case name == "hooks":
		return s.hooks(raw)
	case slices.Contains(cosmetic(), name):
		s.Ignored = append(s.Ignored, name)
		return nil
	}
	return fmt.Errorf("settings: %s means nothing here, and may be a limit", clipped(name))
}

func (s *Settings) permissions(raw json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("settings: permissions is no object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		into := map[string]any{
			"allow": &s.Allow, "ask": &s.Ask, "deny": &s.Deny, "additionalDirectories": &s.Dirs,
			"defaultMode": &s.Mode,
		}[name]
		var word string
		switch {
		case empty(all[name]):
		case into != nil:
			if err := json.Unmarshal(all[name], into); err != nil {
				return fmt.Errorf("settings: permissions.%s is not what it should be: %w", name, err)
			}
		case name == "disableBypassPermissionsMode" && json.Unmarshal(all[name], &word) == nil && word == "disable":
			s.NoBypass = true
		case name == "disableAutoMode": // there is none
		default:
			return fmt.Errorf("settings: permissions.%s means nothing here, and may be a limit", clipped(name))
		}
	}
	if s.Mode == "auto" { // a default that is none here
		s.Mode, s.Ignored = "", append(s.Ignored, "permissions.defaultMode")
	}
	if s.Mode != "" {
		if _, why := ModeOf(s.Mode); why != "" {
			return fmt.Errorf("settings: permissions.defaultMode %s: %s", clipped(s.Mode), why)
		}
	}
	return nil
}

// hooks are programs of the user's. Those that only look on are not called here; one that may forbid something is
// refused.
func (s *Settings) hooks(raw json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("settings: hooks is no object: %w", err)
	}
	looks := append(onlookers(), "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd", "Stop",
		"SubagentStart", "SubagentStop", "PreCompact")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !empty(all[name]) && !slices.Contains(looks, name) {
			return fmt.Errorf("settings: hooks.%s may forbid something, and is not called here", clipped(name))
		}
		s.Ignored = append(s.Ignored, "hooks."+clipped(name))
	}
	return nil
}

// sandbox takes what walls hold in any case.
func (s *Settings) sandbox(raw json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("settings: sandbox is no object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := strings.TrimSpace(string(all[name]))
		switch {
		case name == "enabled":
			s.Walls = s.Walls || value == "true"
		case name == "network":
			var network map[string]json.RawMessage
			if json.Unmarshal(all[name], &network) != nil {
				return fmt.Errorf("settings: sandbox.network is no object")
			}
			for _, member := range slices.Sorted(maps.Keys(network)) {
				switch {
				case member == "allowedDomains" && json.Unmarshal(network[member], &s.Hosts) == nil:
					s.HostsGiven = true
				case member == "allowLocalBinding" || empty(network[member]): // what it opens stays closed
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
			s.Ignored = append(s.Ignored, "sandbox."+name) // what it opens stays closed
		case empty(all[name]):
		default:
			return fmt.Errorf("settings: sandbox.%s means nothing here, and may be a limit", clipped(name))
		}
	}
	if s.HostsGiven && !s.Walls {
		return fmt.Errorf("settings: sandbox.network limits nothing where sandbox.enabled is not true")
	}
	return nil
}

// Stricter is what of settings counts that come with a workspace, or that nobody handed over: what they forbid.
func (s Settings) Stricter() Settings {
	return Settings{Ask: s.Ask, Deny: s.Deny, NoBypass: s.NoBypass, Walls: s.Walls}
}

// foreign are tools that Claude Code has and we have not.
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

// OurRules are rules in our words: the tool that begins a sub-agent has one name, and one that is only Claude Code's is
// not here. Without are those; known says which are read here all the same.
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
