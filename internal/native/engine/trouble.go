package engine

import (
	"cmp"
	"errors"

	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
)

// stop is the error of a turn that ends without success.
type stop struct {
	reason string
	fault  *fault.Fault // nil: the reason says it all
}

func (s *stop) Error() string {
	if s.fault != nil {
		return s.fault.Message
	}
	return s.reason
}

// faultOf turns an error of a model's API into a fault.
func faultOf(err error) *fault.Fault {
	if s, is := errors.AsType[*stop](err); is {
		return s.fault
	}
	e, is := errors.AsType[*model.Error](err)
	if !is {
		return fault.Of(err)
	}
	f := fault.New(codeOf(e.Trouble), "%s", e.Error()).With("trouble", string(e.Trouble))
	if e.Status != 0 {
		f = f.With("status", e.Status)
	}
	if e.After > 0 {
		f = f.After(e.After)
	}
	if e.Next != "" {
		f = f.Hint("%s", e.Next)
	}
	switch e.Trouble {
	case model.Overflow:
		f = f.Hint("begin a new session, or shorten this one")
	case model.Forbidden, model.Unknown:
		if e.Next == "" {
			f = f.Hint("name another --model, or use a key that may have it. The models: omniagent models list")
		}
	case model.Quota:
		f = f.Hint("use another key, or top up the account of this one; waiting does not help")
	case model.Expired:
		f = f.Hint("the credential was accepted once and has expired: log in again, or set a new key")
		if login, is := errors.AsType[*fault.Fault](e.Cause); is {
			f = f.FixBy(login.Fix, login.FixCommand)
		}
	}
	return f
}

func codeOf(t model.Trouble) fault.Code {
	return cmp.Or(map[model.Trouble]fault.Code{
		model.NoLogin:    fault.AuthRequired,
		model.Expired:    fault.CredentialsExpired,
		model.Forbidden:  fault.PermissionDenied,
		model.Unknown:    fault.NotFoundCode,
		model.Overflow:   fault.ContextFull,
		model.Limited:    fault.TooManyRequests,
		model.Quota:      fault.QuotaExhausted,
		model.Overloaded: fault.ServiceDown,
		model.Offline:    fault.ServiceDown,
		model.Stalled:    fault.TimedOut,
		model.Stopped:    fault.Interrupted,
	}[t], fault.APIError)
}
