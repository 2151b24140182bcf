package command

import (
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/contract"
	"omniagent/internal/redact"
	"omniagent/internal/setting"
	"omniagent/internal/shim"
)

// directCalls describes calls without a command, from the lists that carry them out.
func directCalls(drivers []agent.Driver) *contract.Direct {
	d := &contract.Direct{
		Suggest: func(word string) string { return suggest(drivers, word) },
		Usage:   "[-p TEXT] [--agent NAME] [flags] [-- the agent's own flags]",
		Summary: "without a command, start a coding agent: one prompt from -p or a pipe, or else a session in this " +
			"terminal",
		Exits: []contract.DirectExit{
			{Number: "0", Name: "SUCCESS", When: "the agent did it", Effect: "complete"},
			{Number: "1", Name: "GENERAL_ERROR", When: "the agent failed or took too long", Effect: "partial"},
			{Number: "2", Name: "ARG_ERROR", When: "wrong call", Effect: "none"},
			{Number: "3", Name: "BLOCKED_BY_POLICY", When: "policy denied a tool", Effect: "partial"},
			{Number: "129", Name: "HANGUP", When: "SIGHUP", Effect: "partial"},
			{Number: "130", Name: "INTERRUPTED", When: "SIGINT", Effect: "partial"},
			{Number: "131", Name: "QUIT", When: "SIGQUIT", Effect: "partial"},
			{Number: "143", Name: "TERMINATED", When: "SIGTERM", Effect: "partial"},
		},
		Detail: "A flag that an agent does not have is ignored with a warning, or exit code 2 with --strict. What " +
			"each one does:\n\n" + matrixText(drivers) +
			"\n+ it does, ~ something close to it, - it does not, and warns. omniagent agents show NAME tells what " +
			"is sent.",
	}
	for _, f := range shim.Flags() {
		if f.Name == "help" || f.Name == "version" {
			continue // a question about the program
		}
		p := contract.Param{Name: f.Name, Short: f.Short, Kind: contract.Bool, Help: f.Help, Default: f.Default}
		switch {
		case f.Name == "timeout":
			p.Kind = contract.Duration
		case f.Name == "output-schema-retries":
			p.Kind = contract.Int
		case slices.Contains([]string{"DIR", "FILE"}, f.Value):
			p.Kind = contract.File
		case f.Name == "web":
			p.Kind, p.Enum = contract.Enum, []string{"on", "off"}
		case len(f.Allowed) > 0:
			p.Kind, p.Enum = contract.Enum, f.Allowed
		case f.Value != "":
			p.Kind = contract.Text
		}
		d.Params = append(d.Params, p)
	}
	return d
}

// suggest takes a single word for the name of an agent, and several for a prompt.
func suggest(drivers []agent.Driver, word string) string {
	word = strings.Join(strings.Fields(redact.String(word)), " ")
	for _, d := range drivers {
		if strings.EqualFold(word, d.Name()) {
			return "omniagent --agent " + d.Name()
		}
	}
	if strings.Contains(word, " ") {
		return fmt.Sprintf("omniagent -p %q", word)
	}
	return ""
}

// matrixRows returns the shared flags with their values, in the order of the help.
func matrixRows() [][2]string {
	rows := [][2]string{}
	for _, v := range setting.Approvals() {
		rows = append(rows, [2]string{agent.Approval, string(v)})
	}
	for _, v := range setting.Sandboxes() {
		rows = append(rows, [2]string{agent.Sandbox, string(v)})
	}
	for _, v := range setting.Outputs() {
		rows = append(rows, [2]string{agent.Output, string(v)})
	}
	return append(rows, [2]string{agent.Model, ""}, [2]string{agent.Web, "on"}, [2]string{agent.Web, "off"})
}

// matrixText returns one line for each flag and value: what each agent does with it, with a prompt and in a session.
func matrixText(drivers []agent.Driver) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-26s", "one-shot/interactive")
	for _, d := range drivers {
		fmt.Fprintf(&b, " %-9s", d.Name())
	}
	b.WriteString("\n")
	for _, row := range matrixRows() {
		fmt.Fprintf(&b, "  %-26s", strings.TrimSpace("--"+row[0]+" "+row[1]))
		for _, d := range drivers {
			m := d.Matrix("")
			fmt.Fprintf(&b, " %-9s", mark(m.Cell(row[0], row[1], setting.OneShot).Level)+"/"+
				mark(m.Cell(row[0], row[1], setting.Interactive).Level))
		}
		b.WriteString("\n")
	}
	return trimLines(b.String())
}

func mark(l agent.Level) string {
	switch l {
	case agent.Full:
		return "+"
	case agent.Nearest:
		return "~"
	}
	return "-"
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
