package setup

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch/allow"
	"omniagent/internal/work/rehearsal"
)

type rehearsalData struct {
	Agent    string              `json:"agent"`
	State    string              `json:"state" enum:"never,other-version,other-program,other-tool,other-machine,fresh" doc:"of the record that is kept: fresh, or what is another since"`
	Version  *string             `json:"version" doc:"that was tried"`
	Date     *string             `json:"date"`
	TookMS   int64               `json:"took_ms"`
	Holds    int                 `json:"holds"`
	Differs  int                 `json:"differs"`
	Untried  int                 `json:"cannot_be_tried"`
	Unknown  int                 `json:"unknown"`
	Program  []allow.File        `json:"program"`
	Findings []rehearsal.Finding `json:"findings" doc:"claim beside observation; empty without --rehearse"`
}

// rehearsals returns the store of earlier rehearsals.
func rehearsals(c *contract.Call) rehearsal.Store {
	return rehearsal.Store{State: c.Paths.State, Tool: parts.Version}
}

func rehearsalFiles() []contract.FileEffect {
	return []contract.FileEffect{
		{Path: "~/.local/state/omniagent/rehearsals", Type: "state"},
		{Path: "~/.local/state/omniagent/rehearsal", Type: "temp", ClearableWith: "omniagent cleanup --scope temp"},
	}
}

// rehearsalCalls declares the calls of agents in a rehearsal.
func rehearsalCalls(drivers []agent.Driver) []contract.Subprocess {
	var all []contract.Subprocess
	for _, d := range drivers {
		all = append(all, contract.Subprocess{Binary: d.Describe().Binary})
	}
	return all
}

func rehearseParams() []contract.Param {
	return []contract.Param{
		{
			Name: "rehearse", Kind: contract.Bool,
			Help: "run each agent on a scripted model, and compare it with what is claimed",
		},
		{
			Name: "agent", Kind: contract.ID, Position: 1, Variadic: true, Stdin: true,
			Help: "with --rehearse: only these",
		},
	}
}

// rehearseRules returns the validation of the names of agents, which need --rehearse.
func rehearseRules(drivers []agent.Driver) func(*contract.Call) []fault.Problem {
	return func(c *contract.Call) []fault.Problem {
		var problems []fault.Problem
		for _, name := range c.Strings("agent") {
			_, known := agent.Find(drivers, name)
			switch {
			case !c.Bool("rehearse"):
				problems = append(problems,
					contract.Wrong("agent", fault.ArgError, name, "an agent is named only with --rehearse"))
			case !known:
				problems = append(problems, contract.Wrong("agent", fault.ArgError, name,
					"there is no agent %s to rehearse; there are %s", name, strings.Join(parts.NamesOf(drivers), ", ")))
			}
		}
		return problems
	}
}

// checkRehearsals reports whether each installed agent has a fresh rehearsal. With --rehearse it makes one first.
func checkRehearsals(ctx context.Context, c *contract.Call, drivers []agent.Driver) ([]rehearsalData, []check) {
	var named []string
	for _, name := range c.Strings("agent") {
		if d, ok := agent.Find(drivers, name); ok {
			named = append(named, d.Name())
		}
	}
	var data []rehearsalData
	var checks []check
	var subjects []rehearsal.Subject
	for _, d := range drivers {
		if len(named) > 0 && !slices.Contains(named, d.Name()) {
			continue
		}
		install, err := d.Locate(agent.Env{Lookup: c.Host.Lookup, Dir: c.Dir(), Printed: stores.Versions(c.Paths).Of})
		theirs := parts.WorkspaceOf(c)
		switch {
		case err != nil && len(named) > 0:
			checks = append(checks, failed(check{Name: "rehearsal:" + d.Name(), Required: true},
				fault.New(fault.NotInstalled, "%s is not installed", d.Describe().Title), d.Describe().InstallCommand))
		case err != nil: // checkAgents reports this
		case installedIn(theirs, install):
			checks = append(checks, failed(check{Name: "rehearsal:" + d.Name(), Required: len(named) > 0},
				fault.New(fault.Unsafe, "%s comes with the workspace, so it was not tried", install.Path),
				"cd to another directory"))
		default:
			subjects = append(subjects, rehearsal.Subject{Driver: d, Install: install})
		}
	}
	if c.Bool("rehearse") {
		if err := rehearseAll(ctx, c, drivers, subjects); err != nil {
			checks = append(checks, failed(check{Name: "rehearsal", Required: true}, err, ""))
		}
	}
	for _, s := range subjects {
		row, k := describeRehearsal(c, s)
		data, checks = append(data, row), append(checks, k)
	}
	return data, checks
}

// rehearseAll rehearses the agents and stores the results.
func rehearseAll(
	ctx context.Context, c *contract.Call, drivers []agent.Driver, subjects []rehearsal.Subject,
) error {
	if c.Paths.State == "" {
		return fault.New(fault.NoHome, "there is no place for the homes of a rehearsal").
			Hint("set HOME or XDG_STATE_HOME")
	}
	temp, err := c.ShortTemp()
	if err != nil {
		return err
	}
	if c.Host.StderrTerminal && !c.Bool("quiet") {
		parts.LogLine(c, "each of %s works on a scripted model six or seven times; that takes a minute or two",
			text.Plural(len(subjects), "agent"))
	}
	path, _ := os.Executable()
	records := rehearsal.Run(ctx, subjects, rehearsal.Options{
		Env: os.Environ(), State: c.Paths.State, Temp: temp, Self: path, Tool: parts.Version, Agents: drivers,
		Grace: min(c.Config.Duration("grace"), 2*time.Second),
		Tell:  func(p rehearsal.Progress) { printRehearsal(c, p) },
	})
	if ctx.Err() != nil { // an incomplete result is not stored
		return context.Cause(ctx)
	}
	for _, r := range records {
		if err := rehearsals(c).Save(r); err != nil {
			return err
		}
	}
	return nil
}

// printRehearsal prints the progress: a line for each agent, and with --verbose a line for each run.
func printRehearsal(c *contract.Call, p rehearsal.Progress) {
	took := p.Took.Round(100 * time.Millisecond)
	switch {
	case p.Record == nil:
		c.Progress("%s: %s took %s; %d of %d runs", p.Agent, p.Run, took, p.Done, p.Runs)
	case c.Host.StderrTerminal && !c.Bool("quiet"):
		parts.LogLine(c, "%s: %s, in %s", p.Agent, verdictCounts(p.Record.Counts()), took)
	default:
		c.Progress("%s: %s, in %s", p.Agent, verdictCounts(p.Record.Counts()), took)
	}
}

func verdictCounts(n map[rehearsal.Verdict]int) string {
	var parts []string
	for _, v := range []struct {
		verdict   rehearsal.Verdict
		one, many string
	}{
		{rehearsal.Holds, "holds", "hold"},
		{rehearsal.Differs, "differs", "differ"},
		{rehearsal.Untried, "cannot be tried", "cannot be tried"},
		{rehearsal.Unknown, "is unknown", "are unknown"},
	} {
		switch n[v.verdict] {
		case 0:
		case 1:
			parts = append(parts, "1 "+v.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n[v.verdict], v.many))
		}
	}
	return strings.Join(parts, ", ")
}

// describeRehearsal returns the row and the check of one agent. The check is required only if this call rehearses.
func describeRehearsal(c *contract.Call, s rehearsal.Subject) (rehearsalData, check) {
	name := s.Driver.Name()
	record, state := rehearsals(c).Load(name, s.Install)
	k := check{Name: "rehearsal:" + name, OK: state == rehearsal.Fresh, Version: contract.OrNil(record.Version)}
	row := rehearsalData{Agent: name, State: string(state)}
	again := "omniagent doctor --rehearse " + name
	if state == rehearsal.Never {
		k.Detail, k.Fix = contract.OrNil("never tried on this machine"), &again
		return row, k
	}
	n := record.Counts()
	date := record.Date.Format("2006-01-02T15:04:05Z")
	row.Version, row.Date, row.TookMS = contract.OrNil(record.Version), &date, record.TookMS
	row.Holds, row.Differs, row.Untried, row.Unknown = n[rehearsal.Holds], n[rehearsal.Differs], n[rehearsal.Untried],
		n[rehearsal.Unknown]
	k.Detail = contract.OrNil(date[:10] + ": " + verdictCounts(n))
	if state != rehearsal.Fresh {
		k = failed(k, fault.New(fault.PreflightFailed, "%s", staleReason(state)), again)
	}
	if bad := record.Failed(); len(bad) > 0 {
		why, fix := failureSummary(bad, len(record.Findings)), again
		switch {
		case n[rehearsal.Differs] == 0:
			fix = "omniagent --agent " + name + " --rehearse -p hello" // shows why nothing is known
		case s.Driver.Matrix(record.Version).Measured != record.Version:
			fix = s.Driver.Describe().InstallCommand
		}
		k = failed(k, fault.New(fault.PreflightFailed, "%s", why), fix)
	}
	if c.Bool("rehearse") {
		k.Required = true
		row.Program, row.Findings = record.Program, record.Findings
	}
	return row, k
}

// failureSummary names the claims that failed, and those that are unknown, with the first reason.
func failureSummary(bad []rehearsal.Finding, all int) string {
	var differs, unknown []string
	why := ""
	for _, f := range bad {
		name := strings.TrimSpace(f.Feature + " " + f.Value)
		if f.Verdict == rehearsal.Differs {
			differs = append(differs, name)
			continue
		}
		if unknown = append(unknown, name); why == "" {
			why = f.Observed
		}
	}
	var parts []string
	if len(differs) > 0 {
		parts = append(parts, "not as claimed: "+strings.Join(differs, ", "))
	}
	switch {
	case len(unknown) > all/2:
		parts = append(parts, "next to nothing is known: "+why)
	case len(unknown) > 0:
		parts = append(parts, "not known: "+strings.Join(unknown, ", ")+": "+why)
	}
	return strings.Join(parts, "; ")
}

// staleReason says why a record is no longer valid.
func staleReason(f rehearsal.Freshness) string {
	switch f {
	case rehearsal.OtherVersion:
		return "another version was tried"
	case rehearsal.OtherProgram:
		return "the program is another than the one that was tried"
	case rehearsal.OtherTool:
		return "it was tried by another version of omniagent"
	}
	return "it was tried under another kernel, or by another user"
}

// table prints the rehearsal for people: a line for each claim, and below a difference what it means.
func (d rehearsalData) table(b *strings.Builder) {
	version := ""
	if d.Version != nil {
		version = " " + *d.Version
	}
	fmt.Fprintf(b, "\n%s%s, tried in %.1f s\n", d.Agent, version, float64(d.TookMS)/1000)
	for _, f := range d.Findings {
		level, rest, _ := strings.Cut(f.Claim, ": ")
		if f.Feature == rehearsal.PromptSize {
			level, rest = "", f.Claim
		}
		fmt.Fprintf(b, "  %-15s  %-23s  %-7s  %s\n", strings.ReplaceAll(string(f.Verdict), "-", " "),
			strings.TrimSpace(f.Feature+" "+f.Value), level, f.Observed)
		if f.Verdict == rehearsal.Differs {
			fmt.Fprintf(b, "%19sclaimed: %s\n%19smeans: %s\n", "", strings.Trim(level+": "+rest, ": "), "", f.Means)
		}
	}
}
