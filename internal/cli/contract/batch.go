package contract

import (
	"cmp"

	"omniagent/internal/kit/fault"
)

// ErrorDetail is why one thing of a batch failed.
type ErrorDetail struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// BatchSummary counts the things of a batch.
type BatchSummary struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// Outcomes adds up what became of each thing of a batch.
type Outcomes struct {
	BatchSummary
	effect Effect
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
func (o *Outcomes) Result(data any, target map[string]any) (Result, error) {
	if o.Succeeded == 0 && o.first != nil {
		return Result{Data: data}, o.first
	}
	return Result{
		Data: data, Effect: cmp.Or(o.effect, Noop), Failed: o.Failed, Target: target,
	}, nil
}

// effectOfChange returns the effect of a change, or "".
func effectOfChange(change string) Effect {
	switch change {
	case "trusted", "allowed", "denied":
		return Created
	case "changed":
		return Updated
	case "forgotten", "removed":
		return Deleted
	}
	return ""
}
