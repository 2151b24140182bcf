package command

import (
	"context"
	"os"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
)

func help() *contract.Command {
	return &contract.Command{
		Path: "help", Summary: "print the help of a command or about a topic, as text", Class: contract.Printout,
		Danger: contract.Safe, Version: "1.0.0", Scopes: []string{}, NoConfig: true, Quiet: true,
		Detail: "Text on standard output, in a pipe as well. The topics are agents, script, flags, environment and " +
			"exit-codes. On a terminal a long text is shown in $PAGER, or in less.",
		Params: []contract.Param{{
			Name: "about", Kind: contract.Text, MaxLen: 128, Position: 1, Variadic: true,
			Help: "a command, a group of commands or a topic",
		}, flags.Where()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the text is printed"},
			{Code: contract.GeneralError, When: "standard output cannot be used"},
			{Code: contract.ArgError, When: "there is no such command or topic"},
		},
		Examples: []contract.Example{
			{Description: "What there is", Command: "omniagent help"},
			{Description: "One command", Command: "omniagent help session list"},
			{Description: "How agents differ", Command: "omniagent help agents"},
		},
		Serve: func(_ context.Context, c *contract.Call, _ <-chan os.Signal) (int, error) {
			return 0, c.ShowHelp(c.Strings("about"))
		},
	}
}

// tasks groups the commands by purpose, for the help of the program.
func tasks() []contract.Task {
	return []contract.Task{
		{Title: "Get started:", Words: []string{"demo", "doctor", "agents", "login", "models"}},
		{Title: "Talk, or hand over a task:", Words: []string{"chat", "session", "run", "runs", "answer", "review"}},
		{Title: "For programs, editors and other agents:", Words: []string{"start", "acp", "mcp"}},
		{Title: "Stay safe:", Words: []string{"undo", "sandbox", "trust", "audit-log"}},
		{Title: "Settings and maintenance:", Words: []string{"config", "usage", "status"}},
	}
}
