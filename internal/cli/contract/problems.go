package contract

import (
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// ProblemOf returns an error about the value of a parameter as a problem that carries the whole fault. It returns nil
// for faults of other kinds than a wrong input: the command reports those when it runs.
func ProblemOf(param, value string, err error) []fault.Problem {
	if err == nil || fault.Of(err).Kind() != fault.Input {
		return nil
	}
	found := ProblemsOf(param, value, err)
	found[0].Fault = fault.Of(err)
	return found
}

// ProblemsOf returns an error about the value of a parameter as problems: those in the fault, or one for the parameter.
func ProblemsOf(param, value string, err error) []fault.Problem {
	if err == nil {
		return nil
	}
	f := fault.Of(err)
	if len(f.Problems) > 0 {
		return f.Problems
	}
	near, _ := f.Detail["did_you_mean"].(string)
	return []fault.Problem{{Param: param, Code: f.Code, Value: value, Message: f.Message, Corrected: near}}
}

// OrNil returns nil for an empty string, which is null in a result.
func OrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Ago returns how long ago something was, or nothing with --stable-output, where the moment itself is enough.
func Ago(c *Call, then time.Time) string {
	if c.Bool("stable-output") {
		return ""
	}
	return text.Age(time.Since(then))
}
