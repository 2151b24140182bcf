package command

import (
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/shim"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/redact"
)

// directCalls describes calls without a command, from the tables of the shim that carries them out.
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
		Differences: "A flag that an agent does not have is ignored with a warning (--strict: exit 2); deny, ask and " +
			"plan fail then. omniagent help agents has the table.",
		Detail: matrixHelp(drivers),
	}
	for _, f := range shim.Flags() {
		if f.Name == "help" || f.Name == "version" {
			continue // the commands answer these
		}
		p := contract.Param{
			Name: f.Name, Short: f.Short, Kind: contract.Bool, Help: f.Help, Default: f.Default, Value: f.Value,
			Common: f.Common, Optional: f.Optional(),
		}
		switch {
		case f.Name == "timeout":
			p.Kind = contract.Duration
		case f.Name == "output-schema-retries":
			p.Kind = contract.Int
		case slices.Contains([]string{"DIR", "FILE"}, f.Value):
			p.Kind = contract.File
		case f.Name == "web":
			p.Kind, p.Enum = contract.Enum, []string{"on", "off", "true", "false", "1", "0"}
		case f.Name == "permission-mode":
			p.Kind, p.Enum = contract.Enum, flags.PermissionModes()
		case len(f.Allowed) > 0:
			p.Kind, p.Enum = contract.Enum, f.Allowed
		case f.Value != "":
			p.Kind = contract.Text
		}
		d.Params = append(d.Params, p)
	}
	return d
}

// suggest returns the call that was probably meant by an unknown command: an agent's name, or a prompt of several
// words.
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
	return append(rows, [2]string{agent.Model, ""}, [2]string{agent.Web, "on"}, [2]string{agent.Web, "off"},
		[2]string{agent.Continue, ""}, [2]string{agent.Resume, ""}, [2]string{agent.Provider, ""},
		[2]string{agent.APIBase, ""})
}

// matrixHelp returns the text of omniagent help agents.
func matrixHelp(drivers []agent.Driver) string {
	return "A flag that an agent does not have is ignored with a warning, or is exit code 2 with --strict; deny, " +
		"ask and plan are never ignored. What each one does, with a prompt / in a session where the two differ:\n\n" +
		matrixText(drivers) +
		"\n+ it does, ~ something close to it, - it does not, and warns. omniagent agents show NAME tells what is sent."
}

// matrixText returns a line for each flag and value, with a mark for each agent.
func matrixText(drivers []agent.Driver) string {
	var b strings.Builder
	line := func(title string, cell func(agent.Driver) string) {
		row := fmt.Sprintf("  %-25s", title)
		for _, d := range drivers {
			row += fmt.Sprintf("  %-*s", max(len(d.Name()), len("+/+")), cell(d))
		}
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	line("", agent.Driver.Name)
	for _, row := range matrixRows() {
		line(strings.TrimSpace("--"+row[0]+" "+row[1]), func(d agent.Driver) string {
			m := d.Matrix("")
			once := mark(m.Cell(row[0], row[1], setting.OneShot).Level)
			if session := mark(m.Cell(row[0], row[1], setting.Interactive).Level); session != once {
				return once + "/" + session
			}
			return once
		})
	}
	return b.String()
}

// mark returns the sign for a level in matrixText.
func mark(l agent.Level) string {
	switch l {
	case agent.Full:
		return "+"
	case agent.Nearest:
		return "~"
	}
	return "-"
}
