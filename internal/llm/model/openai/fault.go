package openai

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// problem is an error in OpenAI's form.
type problem struct {
	Message wire.Word `json:"message"`
	Type    wire.Word `json:"type"`
	Code    wire.Word `json:"code"`
}

// readProblem finds the error in a body or in an event of a stream.
func readProblem(body []byte) problem {
	var outer struct {
		problem
		Error    json.RawMessage `json:"error"`
		Detail   wire.Word       `json:"detail"`
		Response struct {
			Error json.RawMessage `json:"error"`
		} `json:"response"`
	}
	_ = json.Unmarshal(wire.First(body), &outer)
	p := outer.problem
	for _, raw := range []json.RawMessage{outer.Error, outer.Response.Error} {
		if wire.Absent(raw) {
			continue
		}
		p = problem{}
		if json.Unmarshal(raw, &p) != nil {
			_ = json.Unmarshal(raw, &p.Message) // the error is a string
		}
		break
	}
	p.Message = cmp.Or(p.Message, outer.Detail)
	if p.Type == "error" { // the type of the event, not of the error
		p.Type = ""
	}
	return p
}

// status returns the HTTP status that an error in a stream may have as its code, or 200.
func (p problem) status() int {
	if n, err := strconv.Atoi(string(p.Code)); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return http.StatusOK
}

// fault parses an error. It leaves Trouble empty if the status decides.
func fault(status int, header http.Header, body []byte) *model.Error {
	p := readProblem(body)
	trouble := cmp.Or(sort(string(p.Code)), sort(string(p.Type)))
	e := &model.Error{Code: string(p.Code), Message: string(p.Message), Trouble: trouble}
	if _, err := strconv.Atoi(e.Code); err == nil || e.Code == "" {
		e.Code = string(p.Type)
	}
	if tooLong(status, e.Trouble, e.Message) {
		e.Trouble = model.Overflow
	}
	if e.Trouble == model.Rejected && status != http.StatusOK {
		e.Trouble = "" // 401, 403 and 404 have that type too; the status says more
	}
	if header.Get("Retry-After") == "" && header.Get("Retry-After-Ms") == "" {
		e.After = again(e.Message)
	}
	return e
}

// sort returns the meaning of a code or a type, or "" if the status decides.
func sort(code string) model.Trouble {
	switch code {
	case "context_length_exceeded", "exceed_context_size_error":
		return model.Overflow
	case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "usage_limit_reached",
		"usage_not_included", "quota_exceeded":
		return model.Quota
	case "rate_limit_exceeded", "rate_limit_error", "too_many_requests":
		return model.Limited
	case "server_is_overloaded", "slow_down", "overloaded_error", "engine_overloaded", "service_unavailable":
		return model.Overloaded
	case "invalid_api_key", "authentication_error":
		return model.NoLogin
	case "model_not_found":
		return model.Unknown
	case "invalid_request_error", "invalid_prompt", "content_policy_violation", "BadRequestError":
		return model.Rejected
	}
	return ""
}

// tooLong reports whether the request is longer than the model's context, for servers without a code for that. Only a
// refusal of the request, or an error in a stream without a status, can mean it. OpenAI also uses that message with
// status 429: a request above the limit of tokens a minute never succeeds.
func tooLong(status int, sort model.Trouble, message string) bool {
	if status == http.StatusTooManyRequests {
		return sort != model.Quota && strings.HasPrefix(message, "Request too large")
	}
	if status != http.StatusBadRequest && status != http.StatusOK || sort != "" && sort != model.Rejected {
		return false
	}
	return wire.Mentions(message, "maximum context length", "maximum prompt length", "context length exceeded",
		"context length of only", "context window", "context size", "exceeds the maximum number of tokens",
		"prompt is too long", "input is too long", "reduce the length of the messages")
}

// again returns the time in "Please try again in 1.5s".
func again(message string) time.Duration {
	_, rest, ok := strings.Cut(message, "try again in ")
	if !ok {
		return 0
	}
	said, _, _ := strings.Cut(rest, " ")
	d, err := time.ParseDuration(strings.TrimRight(said, "."))
	if err != nil || d < 0 {
		return 0
	}
	return d
}

// within returns the error in an event of a stream.
func (c *client) within(data []byte) error {
	return c.api.Refused(readProblem(data).status(), nil, data)
}
