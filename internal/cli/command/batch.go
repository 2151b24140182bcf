package command

import (
	"cmp"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
)

type ErrorDetail struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

type BatchSummary struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// Outcomes adds up what became of each thing of a batch.
type Outcomes struct {
	BatchSummary
	effect contract.Effect
	first  error // the reason of the first failure
}

// Add counts a thing with its change, and returns what to report of its failure.
func (o *Outcomes) Add(change string, err error) *ErrorDetail {
	o.Total++
	if err == nil {
		o.Succeeded++
		o.effect = cmp.Or(effectOfChange(change), o.effect)
		return nil
	}
	o.Failed++
	o.first = cmp.Or(o.first, err)
	f := fault.Of(err)
	return &ErrorDetail{string(f.Code), f.Message, f.Retryable()}
}

// Result returns the result of a batch. If nothing was done, it is the reason, not a partial failure.
func (o *Outcomes) Result(data any, target map[string]any) (contract.Result, error) {
	if o.Succeeded == 0 && o.first != nil {
		return contract.Result{Data: data}, o.first
	}
	return contract.Result{
		Data: data, Effect: cmp.Or(o.effect, contract.Noop), Failed: o.Failed, Target: target,
	}, nil
}

// effectOfChange returns the effect of a change, or "".
func effectOfChange(change string) contract.Effect {
	switch change {
	case "trusted", "allowed", "denied":
		return contract.Created
	case "changed":
		return contract.Updated
	case "forgotten", "removed":
		return contract.Deleted
	}
	return ""
}
