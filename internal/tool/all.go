package tool

// All returns the tools that env supports, in the order in which a model sees them.
func All(env *Env) []Tool {
	all := []Tool{Read(env), Write(env), Edit(env), MultiEdit(env), NotebookEdit(env), Glob(env), Grep(env), LS(env)}
	if env.Shell != nil {
		all = append(all, Bash(env), BashOutput(env), KillShell(env))
	}
	if env.Todos != nil {
		all = append(all, TodoWrite(env))
	}
	if env.Web != nil {
		all = append(all, WebFetch(env))
	}
	if env.Task != nil {
		all = append(all, HandOver(env))
	}
	if env.Person {
		all = append(all, AskUserQuestion(), ExitPlanMode())
	}
	return all
}
