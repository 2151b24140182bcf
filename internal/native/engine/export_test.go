package engine

import (
	"omniagent/internal/kit/setting"
	"omniagent/internal/native/tool"
	"omniagent/internal/walls/guard"
)

// OutcomeHeard is Outcome where a hook has had its word before.
func OutcomeHeard(host string, mode setting.Approval, rules guard.Judge, walls Walls, name string, a tool.Action,
	canAsk bool,
) string {
	v := policy{mode, rules, walls}.judge(Described(name, a), a, host)
	switch {
	case v.decision == guard.Allow || v.run && !canAsk:
		return Runs
	case v.decision == guard.Deny:
		return Denied
	}
	return Asks
}
