package modelserver

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// lookup is the tool that gives the model the description of deferred tools.
const lookup = "ToolSearch"

// names returns the agents' names of the tool for an action; the first one that is offered counts.
func names(do action) []string {
	return map[action][]string{
		shell: {
			"Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell", "container.exec",
			"local_shell",
		},
		write:  {"Write", "write", "write_file", "create", "create_file", "apply_patch"},
		read:   {"Read", "read", "read_file", "view"},
		web:    {"WebFetch", "web_fetch", "webfetch"},
		search: {"WebSearch", "google_web_search", "websearch", "web_search"},
		ask:    {"AskUserQuestion", "ask_user", "ask_user_question", "question", "request_user_input"},
	}[do]
}

// members returns the names of the member of a tool's input for a value of a step.
func members(of string) []string {
	return map[string][]string{
		"command":  {"command", "cmd", "script"},
		"path":     {"file_path", "filePath", "path", "absolute_path"},
		"content":  {"content", "file_text", "contents"},
		"patch":    {"input", "patch", "patchText"},
		"url":      {"url", "prompt"},
		"query":    {"query"},
		"question": {"question", "questions"},
	}[of]
}

// resolve finds the calls that a step makes with this agent's tools; none for text.
func (c *conversation) resolve(st step) []Call {
	switch st.do {
	case several:
		var out []Call
		for _, inner := range st.calls {
			out = append(out, c.resolve(inner)...)
		}
		return out
	case invoke:
		return []Call{c.invoke(st)}
	case answerJSON:
		if t, ok := c.structured(); ok {
			return []Call{t.call(st.input)}
		}
		return nil
	case shell, write, read, web, search, ask:
		if call, ok := c.own(st); ok {
			return []Call{call}
		}
	}
	return nil
}

// structured returns the tool that takes an answer in the requested form.
func (c *conversation) structured() (Tool, bool) {
	for _, t := range c.r.Tools {
		if t.Name == "StructuredOutput" || t.Name == c.r.Forced && t.Name != "" {
			return t, true
		}
	}
	return Tool{}, false
}

// hostedSearch reports whether the model's side searches.
func (c *conversation) hostedSearch() bool {
	return slices.ContainsFunc(c.r.Tools,
		func(t Tool) bool { return t.Hosted() && strings.HasPrefix(t.Kind, "web_search") })
}

func (c *conversation) find(name string) (Tool, bool) {
	for _, t := range c.r.Tools {
		if t.Name == name && !t.Hosted() {
			return t, true
		}
	}
	return Tool{}, false
}

// invoke returns a call by name.
func (c *conversation) invoke(st step) Call {
	t, ok := c.find(st.text)
	if !ok {
		if program, outer, found := c.nested(st.text); found {
			return outer.call(program.calling(st.text, st.input))
		}
		t = Tool{Name: st.text, Kind: "function"}
	}
	return t.call(st.input)
}

// own finds the agent's own tool for a step.
func (c *conversation) own(st step) (Call, bool) {
	for _, name := range names(st.do) {
		if t, ok := c.find(name); ok {
			if input, ok := c.fill(t, st); ok {
				return t.call(input), true
			}
		}
	}
	for _, name := range names(st.do) {
		if p, outer, ok := c.nested(name); ok {
			if input, ok := p.fill(st); ok {
				return outer.call(p.calling(name, input)), true
			}
		}
	}
	if call, ok := c.lookUpDeferred(st.do); ok {
		return call, true
	}
	return c.byShell(st)
}

// lookUpDeferred returns a call that asks for a tool whose description the agent defers.
func (c *conversation) lookUpDeferred(do action) (Call, bool) {
	t, ok := c.find(lookup)
	if !ok {
		return Call{}, false
	}
	for _, m := range c.r.Messages {
		for _, b := range m.Blocks {
			if b.Kind != Text || !strings.Contains(b.Text, "deferred tools") {
				continue
			}
			for _, name := range names(do) {
				asked := "select:" + name
				if strings.Contains(b.Text+"\n", "\n"+name+"\n") && !strings.Contains(c.lookups, asked+`"`) {
					return Call{Name: t.Name, Kind: t.Kind, Input: object("query", asked, "max_results", 1)}, true
				}
			}
		}
	}
	return Call{}, false
}

// byShell writes and reads with the shell, for agents that have no file tools and expect that.
func (c *conversation) byShell(st step) (Call, bool) {
	if c.r.Wire != Responses || st.do != read && st.do != write {
		return Call{}, false
	}
	fileTools := []string{"Read", "Write", "read_file", "write_file", "view", "create", "edit"}
	if slices.ContainsFunc(fileTools, func(name string) bool { _, ok := c.find(name); return ok }) {
		return Call{}, false
	}
	command := "cat -- " + quote(st.text)
	if st.do == write {
		command = "printf %s " + quote(st.content) + " > " + quote(st.text)
	}
	return c.own(step{do: shell, text: command})
}

// shellWords returns the arguments for a tool without a member for a command line. Nothing here runs them: they are
// data for the agent.
func shellWords(command string) []string {
	const program = "bash"
	return []string{program, "-lc", command}
}

// quote quotes one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// absolute returns a path in the form that tools want.
func (c *conversation) absolute(name string) string {
	dir := c.dir()
	if dir == "" || strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':' {
		return name
	}
	if strings.Contains(dir, `\`) {
		return strings.TrimRight(dir, `\`) + `\` + strings.ReplaceAll(name, "/", `\`)
	}
	return path.Join(dir, name)
}

// patch returns a patch that adds a file, in the form of apply_patch.
func patch(name, content string) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n*** Add File: " + name + "\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(content, "\n"), "\n") {
		b.WriteString("+" + line + "\n")
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}

// values returns what a step gives to a tool, by the names of members.
func (c *conversation) values(t Tool, st step) map[string]any {
	switch st.do {
	case shell:
		return map[string]any{"command": st.text}
	case write:
		if t.Name == "apply_patch" {
			return map[string]any{"patch": patch(st.text, st.content)}
		}
		return map[string]any{"path": c.absolute(st.text), "content": st.content}
	case read:
		return map[string]any{"path": c.absolute(st.text)}
	case web:
		return map[string]any{"url": st.text}
	case search:
		return map[string]any{"query": st.text}
	default:
		return map[string]any{"question": st.text}
	}
}

// fill makes the input of a tool from its schema: what the step gives, and something for all else that is required. It
// fails where the schema has no place for what the step gives.
func (c *conversation) fill(t Tool, st step) (JSON, bool) {
	values := c.values(t, st)
	switch {
	case t.Kind == "custom":
		text, ok := values["patch"].(string)
		return encode(text), ok
	case t.Kind == "local_shell":
		return object("type", "exec", "command", shellWords(st.text), "env", object()), true
	}
	s := readSchema(t.Schema)
	input := map[string]any{}
	for what, value := range values {
		member, ok := s.member(members(what))
		if !ok {
			return nil, false
		}
		input[member] = s.Properties[member].hold(value, what)
	}
	for _, name := range s.Required {
		if _, ok := input[name]; !ok {
			input[name] = s.Properties[name].example(name, s)
		}
	}
	return encode(input), true
}

// program is a tool that takes a program, which calls the other tools: they are described in its own description.
type program struct{ section string }

// nested finds a tool that a program can call.
func (c *conversation) nested(name string) (program, Tool, bool) {
	for _, t := range c.r.Tools {
		if t.Kind != "custom" || !strings.Contains(t.Description, "await tools.") {
			continue
		}
		_, section, ok := strings.Cut(t.Description, "### `"+name+"`")
		if !ok {
			continue
		}
		section, _, _ = strings.Cut(section, "\n### ")
		return program{section}, t, true
	}
	return program{}, Tool{}, false
}

// fill makes the argument of a nested tool.
func (p program) fill(st step) (JSON, bool) {
	switch {
	case st.do == write && strings.Contains(p.section, "apply_patch(input: string)"):
		return encode(patch(st.text, st.content)), true
	case st.do == shell && strings.Contains(p.section, "cmd: string"):
		return object("cmd", st.text), true
	case st.do == shell && strings.Contains(p.section, "command: Array<string>"):
		return object("command", shellWords(st.text)), true
	case st.do == shell && strings.Contains(p.section, "command: string"):
		return object("command", st.text), true
	case st.do == search && strings.Contains(p.section, "query: string"):
		return object("query", st.text), true
	}
	return nil, false
}

// calling returns a program that calls one tool and prints its result.
func (program) calling(name string, input JSON) JSON {
	return encode("const r = await tools." + name + "(" + string(input) + ");\n" +
		`text(typeof r === "object" && r !== null && "output" in r ? r.output : r);` + "\n")
}

// schema is as much of a JSON schema as is needed to fill it.
type schema struct {
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Enum       []JSON             `json:"enum"`
	Const      JSON               `json:"const"`
	Any        []*schema          `json:"anyOf"`
	One        []*schema          `json:"oneOf"`
	All        []*schema          `json:"allOf"`
	Ref        string             `json:"$ref"`
	Defs       map[string]*schema `json:"$defs"`
	Old        map[string]*schema `json:"definitions"`
	Least      json.Number        `json:"minimum"`
	LeastItems int                `json:"minItems"`
}

// Offers reports whether the model could call an agent's own tool for a step of a script, such as "shell", "write",
// "web" or "search": at once, after asking for a tool that is kept back, from a program, or, of a search, on the
// model's side.
func (r *Request) Offers(step string) bool {
	c, do := converse(r), action(step)
	if do == search && c.hostedSearch() {
		return true
	}
	for _, name := range names(do) {
		if _, ok := c.find(name); ok {
			return true
		}
		if _, _, ok := c.nested(name); ok {
			return true
		}
	}
	c.lookups = "" // what was asked for already is offered too
	_, kept := c.lookUpDeferred(do)
	return kept
}
