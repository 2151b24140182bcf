package claude

import (
	"cmp"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/kit/fault"
	wire "omniagent/internal/wire/claude"
)

// apiFailure is a request that failed for good, in the words of the CLI and the API.
type apiFailure struct {
	Word    string // error: authentication_failed, rate_limit, …
	Status  int    // the HTTP status; 0 without a response
	Type    string // the API's error type: rate_limit_error, …
	Detail  string // the API's message, if the CLI recorded it
	Network string // connection_failed and the like
	Ending  string // terminal_reason, if any
	Text    string // the sentence shown to a person
	Stop    string // the stop reason in the message that reports the failure
}

// fault returns the fault of a failure.
func (a apiFailure) fault() *fault.Fault {
	text := cmp.Or(strings.TrimSuffix(cli.FirstLine(a.Text), "."), "the model's API answered with an error")
	var f *fault.Fault
	switch {
	case a.Stop == wire.Declined:
		f = fault.New(fault.ModelRefused, "%s", text)
	case a.full():
		f = fault.New(fault.ContextFull, "%s", text)
	case a.Word == "authentication_failed" && a.Status == 0:
		f = fault.New(fault.Login(text), "%s", text).FixBy("Log in.", "claude auth login").
			Hint("log in with claude auth login, or set ANTHROPIC_API_KEY")
	case a.Word == "authentication_failed", a.Word == "oauth_org_not_allowed", a.Word == "cloud_credential_error",
		a.Status == 401, a.Status == 403:
		f = fault.New(fault.Login(text+a.Detail), "%s", text).
			Hint("the credentials were not accepted: claude auth status shows which are used")
	case a.Word == "billing_error", a.Status == 402:
		f = fault.New(fault.QuotaExhausted, "%s", text)
	case a.Word == "rate_limit", a.Status == 429:
		f = fault.New(fault.TooManyRequests, "%s", text)
	case a.Network != "":
		f = fault.New(fault.APIError, "%s", text).With("network", a.Network)
	default:
		f = fault.New(fault.APIError, "%s", text)
	}
	if a.Status != 0 {
		f.With("status", a.Status)
	}
	if a.Type != "" {
		f.With("type", a.Type)
	}
	return f
}

// full reports whether the conversation is longer than the model can read, judging by the CLI's reason or the API's
// message. If the CLI itself finds a prompt too long, it does not send it, and reports invalid_request without a
// status.
func (a apiFailure) full() bool {
	switch {
	case a.Ending == "prompt_too_long", a.Ending == "blocking_limit":
		return true
	case a.Word != "invalid_request":
		return false
	}
	return a.Status == 413 || a.Status == 0 && a.Network == "" || a.Status == 400 &&
		strings.Contains(a.Detail, `"prompt is too long`)
}

// ended returns the fault of a turn that failed for another reason than a request.
func ended(subtype, reason string, errors []string) *fault.Fault {
	text := "the agent ended its turn with " + cmp.Or(reason, subtype)
	if len(errors) > 0 && !strings.HasPrefix(errors[0], "[") {
		text = cli.FirstLine(errors[0])
	}
	switch {
	case strings.HasPrefix(reason, "aborted"):
		return fault.New(fault.Interrupted, "the agent's turn was interrupted").With("reason", reason)
	case subtype == "error_max_structured_output_retries":
		return fault.New(fault.SchemaUnmet, "%s", text)
	}
	return fault.New(fault.AgentFailed, "%s", text).With("reason", cmp.Or(reason, subtype))
}
