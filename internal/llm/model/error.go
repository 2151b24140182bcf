package model

import (
	"errors"
	"fmt"
	"time"
)

// Trouble is the kind of a failure.
type Trouble string

// The kinds of failures.
const (
	NoLogin    Trouble = "not-logged-in" // 401, or no key at all
	Expired    Trouble = "expired"       // 401: the credential was valid before
	Forbidden  Trouble = "forbidden"     // 403: not allowed with this key
	Unknown    Trouble = "not-found"     // 404: no such model, or a wrong address
	Rejected   Trouble = "rejected"      // 400 and other refusals of the request itself
	Overflow   Trouble = "context-full"  // longer than the context of the model
	Limited    Trouble = "rate-limited"  // 429
	Quota      Trouble = "quota"         // 429 or 403, where waiting does not help: the account is used up
	Overloaded Trouble = "overloaded"    // 503, 529
	Broken     Trouble = "server-error"  // other 5xx, or an error in the stream
	Offline    Trouble = "unreachable"   // no connection: a problem with the name, the network, or a certificate
	Cut        Trouble = "cut"           // the connection ended before the answer
	Stalled    Trouble = "stalled"       // nothing came for too long
	Garbage    Trouble = "garbage"       // the response does not follow the protocol
	TooLarge   Trouble = "too-large"     // an event or an answer above our limits
	Stopped    Trouble = "stopped"       // ctx ended
)

// Error says why there is no answer.
type Error struct {
	Trouble Trouble
	Status  int           // of HTTP; 0 without a response
	Code    string        // the API's own code or type
	Message string        // one line for people, by the API or by us; it has no secrets
	Next    string        // what to do about it, or empty
	Request string        // the API's id of the request
	After   time.Duration // when to retry, according to the API; 0 if unknown
	// Emitted is set if text or thinking was passed to hear before the failure. Partial is the answer up to then,
	// without calls.
	Emitted bool
	Partial []Block
	Usage   Usage // as far as the API reported it
	Cause   error
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (HTTP %d)", e.Message, e.Status)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Cause }

// Ended reports whether the connection broke or fell silent, which does not matter once an answer is complete.
func Ended(err error) bool {
	e, is := errors.AsType[*Error](err)
	return is && (e.Trouble == Cut || e.Trouble == Stalled)
}

// Again reports whether the same request may succeed later.
func (e *Error) Again() bool {
	switch e.Trouble {
	case Limited, Overloaded, Broken, Offline, Cut, Stalled:
		return true
	}
	return false
}
