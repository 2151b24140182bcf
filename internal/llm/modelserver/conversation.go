package modelserver

import (
	"regexp"
	"slices"
	"strings"
)

// conversation has what a script reads from a request.
type conversation struct {
	r           *Request
	position    int    // answers since the last message of the user
	users       int    // messages of the user
	input       string // the last of them, without what the agent put in
	result      string // what the last tool answered
	lookups     string // the inputs of calls that looked up deferred tools
	hasText     bool   // this answer has text already
	separate    bool   // whose last part has a line of its own
	calledTools map[string]bool
}

// converse finds the place in a conversation.
func converse(r *Request) *conversation {
	c := &conversation{r: r, calledTools: map[string]bool{}}
	for _, m := range r.Messages {
		switch m.Role {
		case Assistant:
			c.assistantMessage(m)
		case User:
			c.userMessage(m)
		}
	}
	return c
}

func (c *conversation) assistantMessage(m Message) {
	lookups, others := 0, 0
	for _, b := range m.Blocks {
		switch {
		case b.Kind == Calling && b.Name == lookup:
			lookups++
			c.lookups += string(b.Input)
		case b.Kind == Calling:
			c.calledTools[b.Name] = true
			others++
		case b.Kind != Thinking:
			others++
		}
	}
	if lookups == 0 || others > 0 { // looking up a deferred tool does not count as a step of a script
		c.position++
	}
}

func (c *conversation) userMessage(m Message) {
	texts := []string{}
	for _, b := range m.Blocks {
		switch b.Kind {
		case Result:
			c.result = b.Text
		case Text:
			if own := ownWords(b.Text); own != "" {
				texts = append(texts, own)
			}
		case Image:
			texts = append(texts, "")
		}
	}
	if len(texts) == 0 {
		return
	}
	c.position, c.lookups, c.calledTools = 0, "", map[string]bool{}
	c.users++
	c.input = strings.Trim(strings.Join(texts, "\n"), "\n")
}

// injectedTags wrap what agents put into messages of the user.
func injectedTags() []string {
	return []string{
		"system-reminder", "environment_context", "session_context", "user_instructions", "current_datetime",
		"skills_instructions",
		"permissions instructions", "collaboration_mode", "turn_aborted", "task-notification", "reminder",
		"system_reminder",
		"system_notification", "hook_context", "context", "INSTRUCTIONS", "local-command-stdout",
		"local-command-caveat", "command-name",
		"command-message", "command-args", "multi_agent_mode", "multi_agent_role", "subagent_notification",
		"user_shell_command",
		"plan_mode", "tagged_files", "ide_context", "available_skills", "todo_status",
	}
}

// injectedBeginnings begin other texts that no user wrote.
func injectedBeginnings() []string {
	return []string{
		"# AGENTS.md instructions", "[Request interrupted by user", "Please continue.", "Caveat: The messages below",
		"System: Please continue.", "Tool loaded.", "Continue if you have next steps, or stop and ask",
		"!unquote_start\n<tool_resp", "tool_call error: ", // what tools answered to calls in XNL
	}
}

// ownWords returns what the user wrote, without the blocks that the agent put before and after it.
func ownWords(text string) string {
	text = strings.TrimSpace(text)
	for again := true; again && text != ""; {
		again = false
		for _, tag := range injectedTags() {
			first, last := "<"+tag+">", "</"+tag+">"
			if strings.HasPrefix(text, first) {
				end := strings.Index(text, last)
				if end < 0 {
					return ""
				}
				text, again = strings.TrimSpace(text[end+len(last):]), true
			}
			if strings.HasSuffix(text, last) {
				if begin := strings.LastIndex(text, first); begin >= 0 {
					text, again = strings.TrimSpace(text[:begin]), true
				}
			}
		}
	}
	if slices.ContainsFunc(injectedBeginnings(), func(b string) bool { return strings.HasPrefix(text, b) }) {
		return ""
	}
	return text
}

// isKnownErrand reports whether a request without tools is known not to belong to the conversation, such as one for a
// title.
func (c *conversation) isKnownErrand() bool {
	if !absent(c.r.Schema) {
		return true
	}
	const beginning = 400 // an agent's own text may name such things further on
	system := c.r.System[:min(len(c.r.System), beginning)]
	signs := []string{
		"title generator", "Task Routing AI", "conversation topic", "concise", "summariz", "compress",
	}
	return c.input == "quota" ||
		slices.ContainsFunc(signs, func(words string) bool { return strings.Contains(system, words) })
}

// hasCalled reports whether a tool was called since the last message of the user.
func (c *conversation) hasCalled(name string) bool { return c.calledTools[name] }

// dir returns the working directory that the agent told the model, or "".
func (c *conversation) dir() string {
	named := regexp.MustCompile(
		`(?m)(?:[Ww]orking directory: |<cwd>|\*\*Workspace Directories:\*\*\n\s*- )(/[^\n<]*|[A-Za-z]:\\[^\n<]*)`)
	texts := []string{c.r.System}
	for _, m := range c.r.Messages {
		if m.Role == Assistant {
			continue
		}
		for _, b := range m.Blocks {
			if b.Kind == Text {
				texts = append(texts, b.Text)
			}
		}
	}
	for _, text := range texts {
		if found := named.FindStringSubmatch(text); found != nil {
			return strings.TrimSpace(found[1])
		}
	}
	return ""
}
