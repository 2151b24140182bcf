package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// Translation is the result of translating the shared flags into an agent's own.
type Translation struct {
	Args     []string
	Env      []string // NAME=value
	Unset    []string // variables to remove
	Files    []agent.File
	Warnings []agent.Warning
	Policies []agent.Policy
}

// Translate translates the shared flags with the matrix, in a fixed order: approval, sandbox, output, model, web. It
// warns about a flag that a person typed and that the agent does not support. It drops an unsupported default silently,
// unless that leaves nothing between the model and the machine. A default model yields to one in the passthrough. PATH
// loses the directories that a repository could fill.
//
// It fails for a model or a session whose name begins with a dash, because the agent would take that for a flag.
func Translate(m agent.Matrix, s agent.Spec) (Translation, error) {
	var t Translation
	sh := s.Shared
	for _, named := range [][2]string{{"model", sh.Model.Value}, {"session", s.Resume}} {
		if strings.HasPrefix(named[1], "-") {
			return t, fault.New(fault.ArgError, "%q is not the name of a %s, because it begins with a dash",
				named[1], named[0]).Hint("flags of the agent go behind --")
		}
	}
	held := t.add(m, s, agent.Approval, string(sh.Approval.Value), sh.Approval.Origin)
	t.policy(agent.Approval, string(sh.Approval.Value), sh.Approval.Origin, held)
	held = t.add(m, s, agent.Sandbox, string(sh.Sandbox.Value), sh.Sandbox.Origin)
	t.policy(agent.Sandbox, string(sh.Sandbox.Value), sh.Sandbox.Origin, held)
	if sh.Approval.Value.Edits() && sh.Sandbox.Value == setting.WorkspaceWrite && !sh.Sandbox.Typed() &&
		held.Level != agent.Full {
		t.Warnings = append(t.Warnings, agent.Warning{
			Flag: "--approval", Value: string(sh.Approval.Value), Kind: agent.Unguarded,
			Message: "no sandbox holds what the agent does without asking" + parenthesis(held.Note),
		})
	}
	t.add(m, s, agent.Output, string(sh.Output.Value), sh.Output.Origin)
	if sh.Model.Value != "" {
		t.model(m, s)
	}
	web := setting.OnOff(sh.Web.Value)
	held = t.add(m, s, agent.Web, web, sh.Web.Origin)
	t.policy(agent.Web, web, sh.Web.Origin, held)
	for _, o := range [][2]string{{agent.Provider, s.Provider}, {agent.APIBase, s.Base}} {
		if o[1] != "" && t.offers(m, s, o[0], o[1]) {
			t.Args = append(t.Args, m.Cell(o[0], "", s.Mode).Args[0]+"="+o[1])
		}
	}
	if s.Resume != "" {
		t.offers(m, s, agent.Resume, s.Resume) // the driver adds the flag in the right place
	}
	if s.Newest {
		t.offers(m, s, agent.Continue, "")
	}
	t.path(s)
	return t, nil
}

// add adds the flags of a cell. It returns the cell as it applies on this machine.
func (t *Translation) add(m agent.Matrix, s agent.Spec, feature, value string, from setting.Origin) agent.Cell {
	cell := Here(m.Cell(feature, value, s.Mode), s.Machine)
	if from == setting.Typed && cell.Level != agent.Full {
		t.warn(feature, value, cell)
	}
	if cell.Level == agent.None {
		return cell
	}
	args := cell.Args
	if from < setting.Configured && cell.Weak != nil {
		args = cell.Weak
	}
	t.Args = append(t.Args, args...)
	t.Env = append(t.Env, cell.Env...)
	return cell
}

// offers reports whether the agent supports a flag that a person typed, and warns if not.
func (t *Translation) offers(m agent.Matrix, s agent.Spec, feature, value string) bool {
	cell := m.Cell(feature, "", s.Mode)
	if cell.Level != agent.Full {
		cell.Level = agent.None
		t.warn(feature, value, cell)
	}
	return cell.Level == agent.Full
}

func (t *Translation) model(m agent.Matrix, s agent.Spec) {
	cell := Here(m.Cell(agent.Model, "", s.Mode), s.Machine)
	if cell.Level == agent.None {
		if s.Shared.Model.Typed() {
			t.warn(agent.Model, s.Shared.Model.Value, cell)
		}
		return
	}
	if !s.Shared.Model.Typed() && Passed(s.Passthrough, modelFlags(cell.Args)...) {
		return // most agents refuse two models
	}
	t.Args = append(append(t.Args, cell.Args...), s.Shared.Model.Value)
}

// modelFlags returns the spellings of the flag that chooses the model.
func modelFlags(args []string) []string {
	var flags []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			flags = append(flags, strings.TrimSuffix(arg, "="))
		}
	}
	usual := []string{"--model", "-m"}
	if slices.ContainsFunc(flags, func(f string) bool { return slices.Contains(usual, f) }) {
		flags = append(flags, usual...)
	}
	return flags
}

func (t *Translation) warn(feature, value string, cell agent.Cell) {
	w := agent.Warning{Flag: "--" + feature, Value: value, Kind: agent.Unsupported}
	switch cell.Level {
	case agent.None:
		w.Message = strings.TrimSpace("--"+feature+" "+value) + " is ignored" + parenthesis(cell.Note)
	case agent.Nearest, agent.Full:
		w.Kind = agent.Closest
		w.Message = fmt.Sprintf("--%s %s becomes the closest that there is", feature, value) + parenthesis(cell.Note)
	}
	t.Warnings = append(t.Warnings, w)
}

func (t *Translation) policy(feature, value string, from setting.Origin, held agent.Cell) {
	t.Policies = append(t.Policies, agent.Policy{
		Feature: feature, Wanted: value, Origin: from.String(), Enforced: held.Level, Note: held.Note,
	})
}

func parenthesis(note string) string {
	if note == "" {
		return ""
	}
	return ": " + note
}

// Here returns the cell as it applies on this machine, which may lack a program that the cell needs. An unspecified
// cell becomes None.
func Here(c agent.Cell, m agent.Machine) agent.Cell {
	c.Level = cmp.Or(c.Level, agent.None)
	missing := Missing(c.Needs, m)
	if len(missing) == 0 {
		return c
	}
	return agent.Cell{Level: agent.None, Needs: c.Needs, Note: "it needs " + strings.Join(missing, " and ") +
		", not found in PATH"}
}

// Missing lists the needed programs that are not installed. "docker|podman" means one of the two.
func Missing(needs []string, m agent.Machine) []string {
	var missing []string
	for _, need := range needs {
		one := strings.Split(need, "|")
		if m.Has == nil || !slices.ContainsFunc(one, m.Has) {
			missing = append(missing, strings.Join(one, " or "))
		}
	}
	return missing
}

// Passed reports whether one of the flags is in the passthrough, alone or with "=value"; -mNAME is -m with the value
// NAME.
func Passed(passthrough []string, flags ...string) bool {
	return len(PassedValues(passthrough, flags...)) > 0
}

// PassedValue returns the last value that the passthrough gives to any of these flags.
func PassedValue(passthrough []string, flags ...string) (value string, ok bool) {
	values := PassedValues(passthrough, flags...)
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

// PassedValues returns the values of these flags in the passthrough, in order: what follows "=", or the next argument.
func PassedValues(passthrough []string, flags ...string) (values []string) {
	for i, arg := range passthrough {
		if arg == "--" {
			break
		}
		for _, flag := range flags {
			switch {
			case arg == flag && i+1 < len(passthrough):
				values = append(values, passthrough[i+1])
			case arg == flag:
				values = append(values, "")
			case strings.HasPrefix(arg, flag+"="):
				values = append(values, arg[len(flag)+1:])
			case len(flag) == 2 && flag[1] != '-' && strings.HasPrefix(arg, flag) && len(arg) > 2:
				values = append(values, arg[2:])
			}
		}
	}
	return values
}

// Environ returns base with the assignments added and the names removed. The last value of a name wins.
func Environ(base, set []string, unset ...string) []string {
	out := make([]string, 0, len(base)+len(set))
	for _, entry := range base {
		if name, _, ok := strings.Cut(entry, "="); !ok || name == "" || !slices.Contains(unset, name) &&
			!assigns(set, name) {
			out = append(out, entry)
		}
	}
	for i, entry := range set { // a C program reads the first of several values, so leave only one
		if name, _, _ := strings.Cut(entry, "="); !assigns(set[i+1:], name) {
			out = append(out, entry)
		}
	}
	return out
}

func assigns(set []string, name string) bool {
	return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
}
