package codex

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
)

// faultOf returns the fault for an error. info is Codex's own classification, which only the transcript has: a word, or
// an object with one word and a status. Without it, the message is recognised by its text.
func faultOf(message string, info json.RawMessage) *fault.Fault {
	message = cmp.Or(message, "codex failed without a reason")
	word, status := readInfo(info)
	status = cmp.Or(status, statusIn(message))
	if word == "" || word == "other" {
		word = cmp.Or(wordIn(message), word)
	}
	f := fault.New(codeFor(word, status), "%s", message)
	if status != 0 {
		f.With("status", status)
	}
	if word != "" {
		f.With("codex_error", word)
	}
	if name := missingVariable(message); name != "" {
		return f.With(agent.Variable, name).
			Hint("set %s: the configuration of Codex names it as the key of this provider", name)
	}
	if f.Code == fault.AuthRequired {
		f.Code = fault.Login(message)
		f.FixBy("Log in to Codex.", login)
	}
	if f.Code == fault.ContextFull {
		f.Hint("begin a new session")
	}
	return f
}

// missingVariable returns the unset variable from which Codex should read a key, as its configuration says, or "".
func missingVariable(message string) string {
	m := regexp.MustCompile("^Missing environment variable: `([^`]+)`").FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return m[1]
}

func codeFor(word string, status int) fault.Code {
	switch word {
	case "context_window_exceeded":
		return fault.ContextFull
	case "usage_limit_exceeded":
		return fault.QuotaExhausted
	case "rate_limit_exceeded":
		return fault.TooManyRequests
	case "unauthorized":
		return fault.AuthRequired
	}
	switch status {
	case 401:
		return fault.AuthRequired
	case 402:
		return fault.QuotaExhausted
	case 429:
		return fault.TooManyRequests
	}
	if (word == "" || word == "other") && status == 0 {
		return fault.AgentFailed
	}
	return fault.APIError
}

// readInfo reads "word" or {"word":{"http_status_code":401}}.
func readInfo(info json.RawMessage) (word string, status int) {
	if len(info) == 0 || json.Unmarshal(info, &word) == nil {
		if word == "internal_server_error" {
			status = 500 // only observed with that status
		}
		return word, status
	}
	var object map[string]struct {
		Status int `json:"http_status_code"`
	}
	if json.Unmarshal(info, &object) == nil {
		for w, o := range object { // it has one member
			word, status = w, o.Status
		}
	}
	return word, status
}

// statusIn returns the HTTP status in a message that begins with one of Codex's own sentences.
func statusIn(message string) int {
	m := regexp.MustCompile(`^(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b`).FindStringSubmatch(
		message)
	if m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	if wordIn(message) == "bad_request" {
		return 400
	}
	return 0
}

// wordIn classifies an error by its message.
func wordIn(message string) string {
	for _, s := range []struct{ begin, word string }{
		{"Codex ran out of room in the model's context window", "context_window_exceeded"},
		{"You’ve hit your usage limit", "usage_limit_exceeded"},
		{"You've hit your usage limit", "usage_limit_exceeded"},
		{"Quota exceeded.", "usage_limit_exceeded"},
		{"To use Codex with your ChatGPT plan", "usage_limit_exceeded"},
		{"rate limit exceeded", "rate_limit_exceeded"},
		{"We’re currently experiencing high demand", "internal_server_error"},
		{"Selected model is at capacity", "server_overloaded"},
		{"Missing environment variable:", "unauthorized"},
		{"stream disconnected before completion", "stream_disconnected"},
		{"Incomplete response returned", "incomplete_response"},
	} {
		if strings.HasPrefix(message, s.begin) {
			return s.word
		}
	}
	// The message may be the body of a response with status 400.
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if strings.HasPrefix(message, "{") && json.Unmarshal([]byte(message), &body) == nil && body.Error != nil {
		return "bad_request"
	}
	return ""
}
