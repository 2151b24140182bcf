package launch

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
)

// WithheldDetail is the member of a fault's detail with the variables that an agent's message names, but that it did
// not get.
const WithheldDetail = "withheld_variables"

// outOfReach is the hint for an agent behind walls that finds no login.
const outOfReach = "A login in a keyring is out of reach behind walls: put it into the environment, or use " +
	"--sandbox off."

// advised returns the fault of an agent with a hint for this machine. If the agent's message names a variable that it
// did not get, the hint is about that variable. If it finds no login, the hint is about what hides the login: its
// settings or the walls.
func (e Env) advised(d agent.Driver, s agent.Spec, f *fault.Fault) *fault.Fault {
	out := *f
	if names := e.withheld(s, f.Message); len(names) > 0 {
		more := slices.Concat(e.Gate(Agent{Driver: d}, s.Dir).More, names)
		set := text.Shell("omniagent", "config", "set", "agents.env", strings.Join(more, ","), "--global")
		out.With(WithheldDetail, names).FixBy("Agents get only listed variables of the environment. "+
			strings.Join(names, ", ")+" is set and is not listed.", set)
		return out.Hint("%s It is passed on after: %s", out.Fix, out.FixCommand)
	}
	if f.Kind() != fault.Auth || f.Detail[agent.Variable] != nil {
		return f
	}
	asked := s
	asked.Mode = setting.OneShot
	if l, _, err := d.Command(asked); err == nil {
		for _, r := range l.Refusals {
			if r.Login {
				out.FixBy(r.Reason, r.Command)
				return out.Hint("%s %s", r.Reason, r.Fix)
			}
		}
	}
	if finder, ok := d.(agent.LoginFinder); !s.Walled || ok && finder.Login(agent.Env{
		Lookup: process.In(s.Env),
		Dir:    s.Dir,
	}).There == agent.Yes {
		return f
	}
	step := cmp.Or(f.Suggestion, f.FixCommand)
	if step != "" && !strings.HasSuffix(step, ".") {
		step += "."
	}
	return out.Hint("%s", strings.TrimSpace(step+" "+outOfReach))
}

// withheld returns the variables of our environment that an agent's message names, but that it did not get.
func (e Env) withheld(s agent.Spec, words string) (names []string) {
	for _, name := range regexp.MustCompile(`\b[A-Z][A-Z0-9_]+\b`).FindAllString(words, -1) {
		_, ours := process.Value(e.Environ, name)
		_, theirs := process.Value(s.Env, name)
		if ours && !theirs && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
