// Package runs has the commands that hand tasks to agents: run, answer and review. It also has the "runs" commands,
// which list, show, repeat and end these runs.
package runs

import (
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
)

// commands builds the commands of this package from the parts of the program.
type commands struct{ parts.Parts }

// Commands lists the commands of this package. Each is built only when it is needed.
func Commands(p parts.Parts) []contract.Registered {
	m := commands{p}
	return []contract.Registered{
		{Path: "answer", Make: m.answer},
		{Path: "review", Make: m.review},
		{Path: "run", Make: m.run},
		{Path: "runs apply", Make: m.runsApply},
		{Path: "runs cancel", Make: runsCancel},
		{Path: "runs continue", Make: m.runsContinue},
		{Path: "runs delete", Make: runsDelete},
		{Path: "runs diff", Make: runsDiff},
		{Path: "runs list", Make: runsList},
		{Path: "runs logs", Make: runsLogs},
		{Path: "runs retry", Make: m.runsRetry},
		{Path: "runs show", Make: runsShow},
		{Path: "runs status", Make: runsStatus},
		{Path: "runs watch", Make: runsWatch},
	}
}
