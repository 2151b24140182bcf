package session

import (
	"encoding/json"
	"fmt"
	"math"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
)

// fit replaces everything in a record that JSON cannot represent.
func fit(r Record) Record {
	switch r := r.(type) {
	case Message:
		r.Cost, r.Blocks = finite(r.Cost), fitBlocks(r.Blocks)
		return r
	case Compacted:
		r.Summary.Blocks = fitBlocks(r.Summary.Blocks)
		return r
	}
	return r
}

func finite(cost float64) float64 {
	if math.IsNaN(cost) || math.IsInf(cost, 0) {
		return 0
	}
	return cost
}

func fitBlocks(blocks []model.Block) []model.Block {
	var fixed []model.Block // a copy, made at the first repair: the caller's blocks must not change
	for i, b := range blocks {
		input, opaque := len(b.Input) == 0 || json.Valid(b.Input), len(b.Opaque) == 0 || json.Valid(b.Opaque)
		parts := fitBlocks(b.Parts)
		if input && opaque && (len(parts) == 0 || &parts[0] == &b.Parts[0]) {
			continue
		}
		if fixed == nil {
			fixed = append(fixed, blocks...)
		}
		if fixed[i].Parts = parts; !input {
			fixed[i].Input, fixed[i].Broken = json.RawMessage("{}"), string(b.Input)
		}
		if !opaque {
			fixed[i].Opaque, fixed[i].Wire = nil, ""
		}
	}
	if fixed == nil {
		return blocks
	}
	return fixed
}

// loggable returns an error if an event cannot be recorded by itself. Kinds that change the conversation's state have
// their own records, which contain more than the event.
func loggable(e *event.Event) error {
	if e == nil {
		return fault.New(fault.Internal, "a record of no event")
	}
	if k := known([]byte(e.Kind)); k != kindLogged && k != kindMark {
		return fault.New(fault.Internal, "an event of the kind %q cannot be a record by itself", string(e.Kind))
	}
	return nil
}

// fitEvent replaces everything in an event that JSON cannot represent.
func fitEvent(e *event.Event) *event.Event {
	fixed := *e
	if e.Answer != nil {
		answer := *e.Answer
		answer.Usage, fixed.Answer = fitUsage(answer.Usage), &answer
	}
	if e.End != nil {
		end := *e.End
		end.Usage, fixed.End = fitUsage(end.Usage), &end
	}
	if e.Fault != nil {
		f := *e.Fault
		f.Detail, fixed.Fault = map[string]any{}, &f
		for name, value := range e.Fault.Detail {
			if _, err := json.Marshal(value); err != nil {
				value = fmt.Sprint(value)
			}
			f.Detail[name] = value
		}
	}
	return &fixed
}

func fitUsage(u *event.Usage) *event.Usage {
	if u == nil || u.CostUSD == nil || finite(*u.CostUSD) == *u.CostUSD {
		return u
	}
	usage := *u
	usage.CostUSD = nil
	return &usage
}

// withEvent returns the record with its event replaced.
func withEvent(r Record, e *event.Event) Record {
	switch r := r.(type) {
	case Logged:
		return Logged{e}
	case End:
		r.Event = e
		return r
	case Denied:
		r.Event = e
		return r
	case Changed:
		r.Event = e
		return r
	}
	return r
}
