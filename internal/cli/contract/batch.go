package contract

import (
	"cmp"

	"omniagent/internal/kit/fault"
)

// ErrorDetail says why one item of a batch failed.
type ErrorDetail struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// BatchSummary counts the items of a batch.
type BatchSummary struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// Outcomes adds up the outcomes of the items of a batch.
type Outcomes struct {
	BatchSummary
	effect Effect
	first  error // the reason of the first failure
}

// Add counts an item. change is the word that the command reports for a success, such as "removed"; err is why the item
// failed, or nil. Add returns the error to report for the item, or nil.
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

// Result returns the result of a batch. If no item succeeded, it returns the error of the first one: that is not a
// partial failure.
func (o *Outcomes) Result(data any, target map[string]any) (Result, error) {
	if o.Succeeded == 0 && o.first != nil {
		return Result{Data: data}, o.first
	}
	return Result{
		Data: data, Effect: cmp.Or(o.effect, Noop), Failed: o.Failed, Target: target,
	}, nil
}

// effectOfChange returns the effect that a command's word for a change stands for, or "".
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
