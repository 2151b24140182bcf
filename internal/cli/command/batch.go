package command

import (
	"cmp"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
)

type errorDetail struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

type batchSummary struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// outcomes adds up what became of each thing of a batch.
type outcomes struct {
	batchSummary
	effect contract.Effect
	first  error // the reason of the first failure
}

// add counts a thing with its change, and returns what to report of its failure.
func (o *outcomes) add(change string, err error) *errorDetail {
	o.Total++
	if err == nil {
		o.Succeeded++
		o.effect = cmp.Or(effectOfChange(change), o.effect)
		return nil
	}
	o.Failed++
	o.first = cmp.Or(o.first, err)
	f := fault.Of(err)
	return &errorDetail{string(f.Code), f.Message, f.Retryable()}
}

// result returns the result of a batch. If nothing was done, it is the reason, not a partial failure.
func (o *outcomes) result(data any, target map[string]any) (contract.Result, error) {
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
