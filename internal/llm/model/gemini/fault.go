package gemini

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// problem is an error in the form of Google's APIs.
type problem struct {
	Code    wire.Count        `json:"code"`
	Message wire.Word         `json:"message"`
	Status  wire.Word         `json:"status"`
	Details []json.RawMessage `json:"details"`
}

// detail is one detail of an error. Which members it has depends on its type.
type detail struct {
	Reason     wire.Word `json:"reason"`     // ErrorInfo
	Delay      wire.Word `json:"retryDelay"` // RetryInfo
	Violations []struct {
		ID wire.Word `json:"quotaId"`
	} `json:"violations"` // QuotaFailure
}

func readProblem(body []byte) problem {
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	var p problem
	_ = json.Unmarshal(wire.First(body), &outer)
	if len(outer.Error) > 0 && json.Unmarshal(outer.Error, &p) != nil {
		_ = json.Unmarshal(outer.Error, &p.Message)
	}
	return p
}

// within returns the error in an event of a stream. The event contains the status.
func (c *client) within(data []byte) error {
	status := http.StatusOK
	if code := readProblem(data).Code; code >= 400 && code <= 599 {
		status = int(code)
	}
	return c.api.Refused(status, nil, data)
}

// fault parses an error. It leaves Trouble empty if the status decides.
func fault(status int, _ http.Header, body []byte) *model.Error {
	p := readProblem(body)
	e := &model.Error{Code: string(p.Status), Message: string(p.Message)}
	for _, raw := range p.Details {
		var d detail
		if json.Unmarshal(raw, &d) != nil {
			continue
		}
		if after, ok := seconds(string(d.Delay)); ok {
			e.After = after
		}
		if strings.HasPrefix(string(d.Reason), "API_KEY_") && d.Reason != "API_KEY_SERVICE_BLOCKED" {
			e.Trouble = model.NoLogin // with status 400
		}
		for _, v := range d.Violations {
			if wire.Mentions(string(v.ID), "perday", "permonth") { // the quota will not recover soon
				e.Trouble = model.Quota
			}
		}
	}
	switch {
	case e.Trouble != "":
	case status == http.StatusBadRequest &&
		wire.Mentions(e.Message, "exceeds the maximum number of tokens", "maximum context length", "context window"):
		e.Trouble = model.Overflow
	case status == http.StatusTooManyRequests && wire.Mentions(e.Message, "credits are depleted"):
		e.Trouble = model.Quota
	case status == http.StatusOK:
		e.Trouble = named(string(p.Status))
	}
	return e
}

// named returns the meaning of the name of a status, for errors without its number.
func named(status string) model.Trouble {
	switch status {
	case "UNAUTHENTICATED":
		return model.NoLogin
	case "PERMISSION_DENIED":
		return model.Forbidden
	case "NOT_FOUND":
		return model.Unknown
	case "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED":
		return model.Rejected
	case "RESOURCE_EXHAUSTED":
		return model.Limited
	case "UNAVAILABLE":
		return model.Overloaded
	}
	return ""
}

// seconds parses a duration in the form of Google's APIs: 34.07s.
func seconds(said string) (time.Duration, bool) {
	d, err := time.ParseDuration(said)
	return d, err == nil && d >= 0 && strings.HasSuffix(said, "s")
}
