package tool

import (
	"omniagent/internal/core/event"
)

// Entry is one tool of a list.
type Entry struct {
	Make func(*Env) Tool
	Open func(*Env) bool // reports whether Env has what the tool needs; nil if it only needs Files
}

// List has the tools of a program, in the order in which a model sees them.
type List []Entry

// Ours returns the tools of this program. Add new tools here.
func Ours() List {
	commands := func(env *Env) bool { return env.Shell != nil }
	person := func(env *Env) bool { return env.Person }
	return List{
		{Make: Read},
		{Make: Write},
		{Make: Edit},
		{Make: MultiEdit},
		{Make: NotebookEdit},
		{Make: Glob},
		{Make: Grep},
		{Make: LS},
		{Bash, commands},
		{BashOutput, commands},
		{TaskOutput, commands},
		{KillShell, commands},
		{TodoWrite, func(env *Env) bool { return env.Todos != nil }},
		{WebFetch, func(env *Env) bool { return env.Web != nil }},
		{UseSkill, func(env *Env) bool { return len(env.Skills) > 0 }},
		{HandOver, func(env *Env) bool { return env.Task != nil }},
		{Delegate, func(env *Env) bool { return env.Agents != nil && len(env.Agents.Names()) > 0 }},
		{func(*Env) Tool { return AskUserQuestion() }, person},
		{func(*Env) Tool { return ExitPlanMode() }, person},
	}
}

// In returns the tools that work in env.
func (l List) In(env *Env) (all []Tool) {
	for _, e := range l {
		if e.Open == nil || e.Open(env) {
			all = append(all, e.Make(env))
		}
	}
	return all
}

// SearchName is the search tool of a model API. It is not one of ours, but rules can name it.
const SearchName = "WebSearch"

// Specs describes the tools, for reading rules and showing calls.
func (l List) Specs() (all []event.ToolSpec) {
	for _, e := range l {
		all = append(all, e.Make(&Env{}).ToolSpec)
	}
	return append(all, event.ToolSpec{Name: SearchName, Kind: event.Web})
}
