package shim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/term/terminal"
)

// person reports whether somebody at a terminal can be asked.
func (c *shimCall) person() bool {
	for _, name := range []string{"CI", "GITHUB_ACTIONS", "JENKINS_URL"} {
		if v, _ := c.host.lookup(name); v != "" {
			return false
		}
	}
	return term.IsTerminal(int(c.host.Stdin.Fd())) && term.IsTerminal(int(c.host.Stderr.Fd()))
}

// asked prints a question and returns the line that is typed.
func (c *shimCall) asked(question string) (string, error) {
	fmt.Fprint(c.host.Stderr, question)
	line, err := terminal.ReadLine(interruptible{c.host.Stdin, c})
	if err != nil {
		fmt.Fprintln(c.host.Stderr)
	}
	if f := fault.Of(err); f != nil && f.Code == fault.Interrupted {
		return "", f
	}
	return strings.TrimSpace(text.Flat(line)), nil
}

// pick lets a person choose an installed agent, and stores the choice if they want that. It returns "" for an empty
// answer.
func (c *shimCall) pick(installed []string) (name string, err error) {
	if i := slices.IndexFunc(c.known(), func(d agent.Driver) bool { return d.Describe().BuiltIn }); i >= 0 {
		installed = append(slices.Clip(installed), c.known()[i].Name()) // it only needs a model
	}
	fmt.Fprintln(c.host.Stderr, "No agent is chosen. Installed here:")
	for i, name := range installed {
		fmt.Fprintf(c.host.Stderr, "  %d  %s\n", i+1, name)
	}
	typed, err := c.asked("Which one? A number or a name; Enter for none: ")
	if err != nil || typed == "" {
		return "", err
	}
	name = strings.ToLower(typed)
	if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(installed) {
		name = installed[n-1]
	}
	if !slices.Contains(c.names(), name) {
		return "", c.unknown(typed, "typed")
	}
	typed, err = c.asked("Use " + name + " from now on? [y/N] ")
	if err != nil {
		return "", err
	}
	if answer := strings.ToLower(typed); (answer == "y" || answer == "yes") && c.shim.Remember != nil {
		if c.shim.Remember(name) == 0 {
			c.note("remembered; omniagent config unset agent --global forgets it")
		}
	}
	return name, nil
}

// ways returns commands to begin with if no agent is installed.
func (c *shimCall) ways() []string {
	rows := [][2]string{{"omniagent demo", "a look at it, without a key"}}
	for _, d := range c.shim.Drivers {
		if about := d.Describe(); !about.BuiltIn && about.InstallCommand != "" {
			rows = append(rows, [2]string{about.InstallCommand, about.Title})
		}
	}
	rows = append(rows,
		[2]string{"omniagent chat --rehearse", "the built-in agent, no key"},
		[2]string{"omniagent login anthropic", "a key for it, then chat"})
	width, lines := 0, []string{}
	for _, row := range rows {
		width = max(width, len(row[0]))
	}
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("%-*s  %s", width, row[0], row[1]))
	}
	return lines
}

// installedAgents returns the agents that are found on this machine, except the built-in one.
func (c *shimCall) installedAgents() []string {
	var installed []string
	for _, d := range c.known() {
		if d.Describe().BuiltIn {
			continue
		}
		if _, err := d.Locate(agent.Env{Lookup: c.host.lookup, Dir: c.dir}); err == nil {
			installed = append(installed, d.Name())
		}
	}
	return installed
}
