// Package fault defines what can go wrong.
//
// Every failure that a user can meet has a stable code, a kind that decides the exit code, a sentence that names the
// thing and the reason, and a next step. New reports a code that the catalogue does not contain as INTERNAL_ERROR, and
// a test finds it.
//
// A fault does not know exit codes: the code that ends a process maps kinds to numbers.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of a failure. It decides the exit code and what a caller may do next.
type Kind string

const (
	General      Kind = "general"      // nothing more specific fits
	Input        Kind = "input"        // an argument is wrong; nothing was done
	Partial      Kind = "partial"      // some of it was done
	Precondition Kind = "precondition" // something must be true first; nothing was done
	NotFound     Kind = "not-found"
	Conflict     Kind = "conflict"
	Denied       Kind = "denied" // known, but not allowed
	Auth         Kind = "auth"   // credentials are missing, wrong or expired
	Payment      Kind = "payment"
	Timeout      Kind = "timeout"
	RateLimited  Kind = "rate-limited"
	Unavailable  Kind = "unavailable"
	Redirected   Kind = "redirected" // it has moved; the fault names the new place
	Cancelled    Kind = "cancelled"  // a signal ended it
)

// Phase says how far a call had come.
type Phase string

const (
	Validation Phase = "validation" // guarantees that nothing was changed
	Execution  Phase = "execution"
	Cleanup    Phase = "cleanup"
)

// Fault is one failure. The zero values of all fields but Code and Message mean "as the catalogue says".
type Fault struct {
	Code       Code
	Message    string         // one full sentence: the thing and the reason
	Sort       Kind           // overrides the catalogue
	Phase      Phase          // empty: Validation for Input, else Execution
	Retry      *bool          // overrides the catalogue
	RetryAfter time.Duration  // known wait before a retry
	Fix        string         // the condition that the caller must correct
	FixCommand string         // one command that corrects it: complete, and harmless when repeated
	Suggestion string         // next step in words
	Ways       []string       // further next steps, a line each, for a person in front of a terminal
	Redirect   string         // with kind Redirected: the command to run instead
	Detail     map[string]any // further members of the error object
	Problems   []Problem      // all that is wrong with the arguments, at once
	Cause      error
}

// Problem is one thing wrong with one argument.
type Problem struct {
	Param     string `json:"param"`               // its name without dashes, or a place such as file:line:column
	Code      Code   `json:"code"`                // why, in one word
	Message   string `json:"message"`             //
	Value     string `json:"value"`               // as given
	Pattern   string `json:"pattern,omitempty"`   // what it must match
	Corrected string `json:"corrected,omitempty"` // the form that would be accepted
	// Fault is the whole error, which is reported if this is the only problem. It is set where the result depends on
	// the configuration.
	Fault *Fault `json:"-"`
}

// New makes a fault; the message is a format.
func New(code Code, format string, args ...any) *Fault {
	return &Fault{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Login returns the code of a refused login. Only the text of the refusal tells an expired credential from a wrong one:
// no API and no agent has a code for it.
func Login(words string) Code {
	if strings.Contains(strings.ToLower(words), "expired") {
		return CredentialsExpired
	}
	return AuthRequired
}

// Hint adds the next step in words.
func (f *Fault) Hint(format string, args ...any) *Fault {
	f.Suggestion = fmt.Sprintf(format, args...)
	return f
}

// Also adds another next step, which stands on a line of its own.
func (f *Fault) Also(format string, args ...any) *Fault {
	f.Ways = append(slices.Clip(f.Ways), fmt.Sprintf(format, args...))
	return f
}

// HintAny sets the next steps: one of these, of which a program that reads only one gets the first.
func (f *Fault) HintAny(steps []string) *Fault {
	f.Suggestion, f.Ways = steps[0], steps[1:]
	return f
}

// FixBy names the condition to correct and, unless empty, the one command that does.
func (f *Fault) FixBy(condition, command string) *Fault {
	f.Fix, f.FixCommand = condition, command
	return f
}

// With adds a member to the error object.
func (f *Fault) With(name string, value any) *Fault {
	if f.Detail == nil {
		f.Detail = map[string]any{}
	}
	f.Detail[name] = value
	return f
}

// After sets the time after which a retry may succeed.
func (f *Fault) After(d time.Duration) *Fault {
	yes := true
	f.Retry, f.RetryAfter = &yes, d
	return f
}

// Because records the underlying error.
func (f *Fault) Because(err error) *Fault {
	f.Cause = err
	return f
}

func (f *Fault) Error() string {
	if f.Cause == nil || strings.HasSuffix(f.Message, f.Cause.Error()) { // the message tells it already
		return f.Message
	}
	return f.Message + ": " + f.Cause.Error()
}

// Hints returns the next steps for a person: the suggestion, and the command if the suggestion does not have it.
func (f *Fault) Hints() (steps []string) {
	if f.Suggestion != "" {
		steps = append(steps, f.Suggestion)
	}
	if !strings.Contains(f.Suggestion, f.FixCommand) {
		steps = append(steps, f.FixCommand)
	}
	return steps
}

func (f *Fault) Unwrap() error { return f.Cause }

// Is makes errors.Is(err, fault.ConfigInvalid) work: a Code is an error that every fault of that code matches.
func (f *Fault) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == f.Code
}

// Kind returns the kind of the fault, which is mostly what the catalogue says of its code.
func (f *Fault) Kind() Kind {
	if f.Sort != "" {
		return f.Sort
	}
	return f.Code.Entry().Kind
}

// Retryable reports whether the same call, unchanged, may succeed later.
func (f *Fault) Retryable() bool {
	if f.Retry != nil {
		return *f.Retry
	}
	return f.Code.Entry().Retryable
}

// usualWait is a harmless wait if the server has not named one.
const usualWait = time.Second

// Wait returns how long to wait before a retry, or 0 if unknown. A retryable refusal always has a wait.
func (f *Fault) Wait() time.Duration {
	if f.RetryAfter == 0 && f.Retryable() && (f.Code == TooManyRequests || f.Code == LockHeld) {
		return usualWait
	}
	return f.RetryAfter
}

// In returns how far the call had come when it failed.
func (f *Fault) In() Phase {
	switch {
	case f.Phase != "":
		return f.Phase
	case f.Kind() == Input:
		return Validation
	}
	return Execution
}

// Sentence returns the fault in one line, with what to do.
func (f *Fault) Sentence() string {
	s := f.Message
	if f.Suggestion != "" {
		s += " (" + f.Suggestion + ")"
	}
	return strings.Join(strings.Fields(s), " ")
}

// Of finds the fault in err. An error that carries none becomes INTERNAL_ERROR, with its words as the message and
// itself as the cause.
func Of(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return New(Internal, "%s", err.Error()).Because(err)
}

// InJSON describes an error of encoding/json to somebody who sees the JSON and not our types.
func InJSON(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.Field != "":
		return fmt.Errorf("%s cannot be %s", wrong.Field, article(wrong.Value))
	case slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map}, wrong.Type.Kind()):
		return fmt.Errorf("%s stands where an object belongs", article(wrong.Value))
	}
	return fmt.Errorf("%s stands where something else belongs", article(wrong.Value))
}

// article returns a word of encoding/json for a kind of value with its article.
func article(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// Bare returns an error without the operation and the paths of the system call that failed, for a sentence that names
// them already.
func Bare(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	case errors.As(err, &call):
		return call.Err
	}
	return err
}
