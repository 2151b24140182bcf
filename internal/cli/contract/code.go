package contract

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"omniagent/internal/kit/fault"
)

// Code names an exit code. It is a string, so that a bare number does not compile. Registration refuses a name that is
// neither in the table nor declared by the command with Specific.
type Code string

// Exit codes that every tool of this kind has.
const (
	Success            Code = "SUCCESS"
	GeneralError       Code = "GENERAL_ERROR"
	ArgError           Code = "ARG_ERROR"
	PartialFailure     Code = "PARTIAL_FAILURE"
	PreconditionFailed Code = "PRECONDITION"
	NotFound           Code = "NOT_FOUND"
	Conflict           Code = "CONFLICT"
	PermissionDenied   Code = "PERMISSION_DENIED"
	AuthRequired       Code = "AUTH_REQUIRED"
	PaymentRequired    Code = "PAYMENT_REQUIRED"
	TimedOut           Code = "TIMEOUT"
	RateLimited        Code = "RATE_LIMITED"
	Unavailable        Code = "UNAVAILABLE"
	Redirected         Code = "REDIRECTED"
	Hangup             Code = "HANGUP"      // 129
	Interrupted        Code = "INTERRUPTED" // 130
	Quit               Code = "QUIT"        // 131
	Terminated         Code = "TERMINATED"  // 143
)

// Extent says how much was changed before the exit.
type Extent string

const (
	None     Extent = "none"
	Some     Extent = "partial"
	Complete Extent = "complete"
)

// Exit declares one exit code of a command.
type Exit struct {
	Code      Code
	When      string // present tense, no final period, at most 120 characters
	Retryable bool   // the same call may succeed later; only if nothing was changed
	Changed   Extent // empty: the default of the table
	number    int    // set by Specific; 0: the number is in the table
}

// Specific declares a code of one command, from 79 to 125.
func Specific(number int, code Code, when string) Exit {
	return Exit{Code: code, When: when, number: number}
}

type standard struct {
	code    Code
	number  int
	changed Extent
	kind    fault.Kind
	means   string
}

// SharedExit is an exit code with the same meaning in every command that declares it.
type SharedExit struct {
	Number int
	Code   Code
	Means  string
}

// SharedExits returns the shared exit codes in the order of their numbers.
func SharedExits() []SharedExit {
	list := []SharedExit{}
	for _, s := range standards() {
		list = append(list, SharedExit{s.number, s.code, s.means})
	}
	return list
}

// standards returns the table of the shared codes. Some kinds have several exits: those of signals depend on the
// signal.
func standards() []standard {
	return []standard{
		{Success, 0, Complete, "", "done"},
		{GeneralError, 1, Some, fault.General, "something failed that has no code of its own"},
		{ArgError, 2, None, fault.Input, "the input is wrong; nothing was done"},
		{PartialFailure, 3, Some, fault.Partial, "part was done, part failed"},
		{PreconditionFailed, 4, None, fault.Precondition, "something that must hold does not"},
		{NotFound, 5, None, fault.NotFound, "what was named does not exist"},
		{Conflict, 6, None, fault.Conflict, "another change is in the way"},
		{PermissionDenied, 7, None, fault.Denied, "the system refuses"},
		{AuthRequired, 8, None, fault.Auth, "credentials or rights are missing"},
		{PaymentRequired, 9, None, fault.Payment, "a service wants to be paid"},
		{TimedOut, 10, Some, fault.Timeout, "the time limit passed"},
		{RateLimited, 11, None, fault.RateLimited, "a service wants to be called less often"},
		{Unavailable, 12, None, fault.Unavailable, "a service does not answer"},
		{Redirected, 13, None, fault.Redirected, "the command has another name now"},
		{Hangup, 129, Some, fault.Cancelled, "SIGHUP ended it"},
		{Interrupted, 130, Some, fault.Cancelled, "SIGINT ended it"},
		{Quit, 131, Some, fault.Cancelled, "SIGQUIT ended it"},
		{Terminated, 143, Some, fault.Cancelled, "SIGTERM ended it"},
	}
}

// number returns the exit status of a code that the command declared or the table has.
func (c *Command) number(code Code) (int, bool) {
	for _, e := range c.Exits {
		if e.Code == code && e.number != 0 {
			return e.number, true
		}
	}
	for _, s := range standards() {
		if s.code == code {
			return s.number, true
		}
	}
	return 0, false
}

// codeFor returns the exit code of a fault.
func codeFor(f *fault.Fault) Code {
	if f == nil {
		return Success
	}
	if f.Kind() == fault.Cancelled {
		switch f.Detail["signal"] {
		case "SIGINT":
			return Interrupted
		case "SIGHUP":
			return Hangup
		case "SIGQUIT":
			return Quit
		}
		if f.Detail["cancelled_by"] != nil { // by a command, as Ctrl-C would
			return Interrupted
		}
		return Terminated
	}
	for _, s := range standards() {
		if s.kind == f.Kind() && s.code != Success {
			return s.code
		}
	}
	return GeneralError
}

// ExitOfFault returns the exit status of a call that failed with a fault, or 0 for none.
func ExitOfFault(f *fault.Fault) int {
	n, _ := (&Command{}).number(codeFor(f))
	return n
}

// ExitFor returns the exit status of a kind of failure.
func ExitFor(kind fault.Kind) int {
	for _, s := range slices.Backward(standards()) { // of the exits for signals, the last one, that of SIGTERM
		if s.kind == kind && s.code != Success {
			return s.number
		}
	}
	return 1
}

// ExitOf returns the exit status of a command that a signal ended.
func ExitOf(s os.Signal) int {
	number, _ := s.(syscall.Signal)
	return 128 + int(number)
}

// DocsFor returns the place in the documentation that explains a code.
func DocsFor(code fault.Code) string { return "docs/errors.md#" + strings.ToLower(string(code)) }

// exits returns the exit codes of the command and those that every command has, by number.
func (c *Command) exits() map[string]exitEntry {
	all := map[string]exitEntry{}
	for _, e := range append(unavoidableExits(c), c.Exits...) {
		n, _ := c.number(e.Code)
		all[strconv.Itoa(n)] = e.entry(c)
	}
	return all
}

// unavoidableExits returns the exits that the framework itself can cause: an internal error, a wrong argument, a
// signal, and those that follow from the declaration, such as a timeout. A command's own declaration of one of them
// wins, because it is more precise.
func unavoidableExits(c *Command) []Exit {
	list := []Exit{
		{Code: GeneralError, When: "something failed that has no code of its own"},
		{Code: ArgError, When: "the input is wrong; nothing was done"},
		{Code: Hangup, When: "SIGHUP ended it"},
		{Code: Interrupted, When: "SIGINT ended it"},
		{Code: Quit, When: "SIGQUIT ended it"},
		{Code: Terminated, When: "SIGTERM ended it"},
	}
	if len(c.Scopes) > 0 {
		list = append(list, Exit{Code: AuthRequired, When: "the configured rights do not cover it; nothing was done"})
	}
	if c.Stdin != nil || slices.ContainsFunc(c.Params, func(p Param) bool { return p.Stdin }) {
		list = append(list, Exit{Code: PreconditionFailed, When: "what it reads is missing"})
	}
	if c.Class.enveloped() {
		list = append(list, Exit{Code: TimedOut, When: "the time limit passed", Retryable: c.Danger == Safe})
	}
	return list
}

// exitEntry is an Exit on the wire.
type exitEntry struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description"`
	Retryable   bool   `json:"retryable"`
	SideEffects Extent `json:"side_effects"`
}

// entry fills in the extent if the declaration leaves it out.
func (e Exit) entry(c *Command) exitEntry {
	out := exitEntry{Name: string(e.Code), Description: e.When, Retryable: e.Retryable, SideEffects: e.Changed}
	if out.SideEffects == "" {
		out.SideEffects = Some
		for _, s := range standards() {
			if s.code == e.Code {
				out.SideEffects = s.changed
			}
		}
		// A command that changes nothing leaves nothing half done.
		if c.Danger == Safe {
			out.SideEffects = None
		}
	}
	return out
}
