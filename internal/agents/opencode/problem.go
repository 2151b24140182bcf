package opencode

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"omniagent/internal/kit/fault"
)

// problem is an error as the CLI prints and stores it.
type problem struct {
	Name string `json:"name"`
	Data struct {
		Message         string          `json:"message"`
		StatusCode      int             `json:"statusCode"`
		ResponseHeaders json.RawMessage `json:"responseHeaders"`
	} `json:"data"`
}

func (p problem) message() string {
	return cmp.Or(p.Data.Message, p.Name)
}

func (p problem) fault() *fault.Fault {
	status := p.Data.StatusCode
	switch {
	case p.Name == "ContextOverflowError":
		return contextFull()
	case p.Name == "ProviderAuthError" || status == http.StatusUnauthorized:
		f := fault.New(fault.Login(p.message()), "the model's provider does not accept the credentials: %s",
			p.message()).FixBy("log in to the provider", "opencode auth login")
		return with(f, status)
	case status == http.StatusPaymentRequired:
		return with(fault.New(fault.QuotaExhausted, "the account with the model's provider is used up: %s",
			p.message()), status)
	case status == http.StatusTooManyRequests:
		f := fault.New(fault.TooManyRequests, "the model's provider asks to be called less often: %s", p.message())
		if wait := p.wait(); wait > 0 {
			f.After(wait)
		}
		return with(f, status)
	case p.Name == "ProviderModelNotFoundError":
		return fault.New(fault.AgentRefused, "there is no such model: %s", p.message()).
			FixBy("name an existing model", "opencode models")
	case p.Name == "APIError":
		return with(fault.New(fault.APIError, "the model answered with an error: %s", p.message()), status)
	}
	return fault.New(fault.AgentFailed, "the agent failed: %s", p.message()).With("agent_error", p.Name)
}

func with(f *fault.Fault, status int) *fault.Fault {
	if status != 0 {
		f.With("status", status)
	}
	return f
}

// wait returns how long the provider asks to wait. It ignores a date, because that would compare two clocks.
func (p problem) wait() time.Duration {
	var h map[string]any
	if json.Unmarshal(p.Data.ResponseHeaders, &h) != nil {
		return 0
	}
	for _, header := range []struct {
		name string
		unit time.Duration
	}{{"retry-after-ms", time.Millisecond}, {"retry-after", time.Second}} {
		text, _ := h[header.name].(string)
		if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < 1e9 {
			return time.Duration(n * float64(header.unit))
		}
	}
	return 0
}
