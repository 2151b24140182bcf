package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// Classify judges by the events, by stderr, which has more details of a failed request, and finally by the exit code.
func (d driver) Classify(x agent.Exit, events []event.Event) *fault.Fault {
	e := cli.EvidenceOf(events)
	if x.Code != 0 {
		if f := stderrFault(x.Stderr); f != nil {
			e.Fault = f
		} else if f := codeFault(x.Code, true); f != nil && vague(e.Fault) {
			e.Fault = f
		}
	}
	return cli.ProcessFault(x, e, d.UsageCodes...)
}

// vague reports whether a fault has neither a status nor a cause.
func vague(f *fault.Fault) bool {
	if f == nil {
		return true
	}
	_, known := f.Detail["status"]
	return f.Code == fault.APIError && !known
}

// codeFault returns the fault for an exit code. With JSON output, the code is the low byte of an HTTP status: 401
// becomes 145.
func codeFault(code int, program bool) *fault.Fault {
	switch code {
	case exitAuth:
		return fault.New(fault.AuthRequired, "Gemini CLI has no way to sign in.").
			Hint("start gemini and choose one, or set GEMINI_API_KEY")
	case exitSandbox:
		return fault.New(fault.AgentRefused, "Gemini CLI cannot start its sandbox.").
			Hint("see what it printed, or give --sandbox off")
	case exitConfig:
		return fault.New(fault.AgentRefused, "Gemini CLI does not accept its configuration.").
			Hint("correct the file that it named")
	case exitTurns:
		return fault.New(fault.AgentFailed, "Gemini CLI used up the turns that model.maxSessionTurns allows.").Hint(
			"raise it in the settings of Gemini CLI")
	case exitTool:
		return fault.New(fault.AgentFailed,
			"A tool of Gemini CLI failed in a way that ends the run, such as on a full disk.")
	case exitUntrusted:
		return fault.New(fault.AgentRefused,
			"Gemini CLI does not run unattended in an untrusted directory.").
			Hint("if its contents may be trusted, add -- --skip-trust; or start gemini there once and trust the " +
				"directory")
	}
	if status := code + 256; program && status >= 400 && status < 512 {
		return failure("", status)
	}
	return nil
}

// failure returns the fault for a message from the model's API or about it. If status is 0, it is taken from the
// message.
func failure(message string, status int) *fault.Fault {
	text := message
	if inner, ok := strings.CutPrefix(message, "[API Error: "); ok {
		text = inner
		if end := strings.LastIndexByte(inner, ']'); end >= 0 {
			text = inner[:end] // cut off the advice that follows
		}
	}
	var api struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if begin := strings.IndexByte(text, '{'); begin >= 0 {
		// Use a decoder, because hints may follow the object.
		if json.NewDecoder(strings.NewReader(text[begin:])).Decode(&api) == nil && api.Error.Message != "" {
			text = api.Error.Message
			status = cmp.Or(status, api.Error.Code)
		}
	}
	return apiFault(text, status)
}

// apiFault chooses the code of a fault. The text comes from outside, so it is only quoted in a detail.
func apiFault(text string, status int) *fault.Fault {
	var f *fault.Fault
	switch {
	case status == 401:
		f = fault.New(fault.Login(text), "The API refused the credentials of Gemini CLI (status 401).").Hint(
			"start gemini and sign in again, or set another GEMINI_API_KEY")
	case status == 402:
		f = fault.New(fault.QuotaExhausted, "The account of Gemini CLI with the API is used up (status 402).")
	case status == 429:
		f = fault.New(fault.TooManyRequests,
			"The API asks Gemini CLI to call less often, or its quota is used up (status 429).")
	case (status == 400 || status == 413 || status == 0) && tooLong(text):
		f = fault.New(fault.ContextFull, "The conversation of Gemini CLI is longer than the model can read.").Hint(
			"begin a new session, or shorten the prompt")
	case status >= 400:
		f = fault.New(fault.APIError, "The API answered Gemini CLI with status %d.", status)
	default:
		f = fault.New(fault.APIError, "The model behind Gemini CLI did not answer.")
	}
	if status >= 400 {
		f.With("status", status)
	}
	if text = strings.TrimSpace(text); text != "" {
		f.With("agent_message", text)
	}
	return f
}

// tooLong recognises the API's message, because there is no code for this.
func tooLong(text string) bool {
	return strings.Contains(text, "token count") && strings.Contains(text, "exceeds the maximum number of tokens")
}

// stderrFault reads what the CLI prints about a failed request, which its records do not contain:
//
//	Error when talking to Gemini API Full report available at: FILE _ApiError: {"error":{"code":401,…}}
//	    at …
//	  retryDelayMs: 34000,
//	  status: 429
//	}
func stderrFault(stderr []byte) *fault.Fault {
	const begin, report = "Error when talking to Gemini API", "Full report available at: "
	if i := bytes.LastIndex(stderr, []byte("FatalSandboxError: ")); i >= 0 && (i == 0 || stderr[i-1] == '\n') {
		return codeFault(exitSandbox, false)
	}
	i := bytes.LastIndex(stderr, []byte(begin))
	if i < 0 || i > 0 && stderr[i-1] != '\n' {
		return nil
	}
	first, rest, _ := strings.Cut(string(stderr[i+len(begin):]), "\n")
	if _, after, ok := strings.Cut(first, report); ok {
		if _, after, ok = strings.Cut(after, ".json "); ok {
			first = after
		}
	}
	_, message, _ := strings.Cut(first, ": ")
	status, wait := 0, 0
	for text := range strings.Lines(rest) {
		text = strings.TrimRight(text, "\n")
		if text == "}" || text == "" {
			break
		}
		for name, to := range map[string]*int{"  status: ": &status, "  code: ": &status, "  retryDelayMs: ": &wait} {
			if value, ok := strings.CutPrefix(text, name); ok {
				if n, err := strconv.Atoi(strings.TrimSuffix(value, ",")); err == nil {
					*to = n
				}
			}
		}
	}
	f := failure(message, status)
	if wait > 0 && f.Code == fault.TooManyRequests {
		f.After(time.Duration(wait) * time.Millisecond)
	}
	return f
}
