package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// form is the JSON form of a Fault, in which journals keep it.
type form struct {
	Code       Code           `json:"code"`
	Message    string         `json:"message"`
	Sort       Kind           `json:"kind,omitempty"`
	Phase      Phase          `json:"phase,omitempty"`
	Retry      *bool          `json:"retryable,omitempty"`
	RetryAfter time.Duration  `json:"retry_after_ns,omitempty"`
	Fix        string         `json:"fix,omitempty"`
	FixCommand string         `json:"fix_command,omitempty"`
	Suggestion string         `json:"hint,omitempty"`
	Ways       []string       `json:"ways,omitempty"`
	Redirect   string         `json:"redirect,omitempty"`
	Detail     map[string]any `json:"detail,omitempty"`
	Problems   []Problem      `json:"problems,omitempty"`
	Cause      string         `json:"cause,omitempty"`
}

// MarshalJSON returns the JSON form. Of the cause it keeps the words.
func (f *Fault) MarshalJSON() ([]byte, error) {
	kept := form{
		f.Code, f.Message, f.Sort, f.Phase, f.Retry, f.RetryAfter, f.Fix, f.FixCommand, f.Suggestion, f.Ways,
		f.Redirect, f.Detail, f.Problems, "",
	}
	if f.Cause != nil {
		kept.Cause = f.Cause.Error()
	}
	return json.Marshal(kept)
}

// UnmarshalJSON reads that form.
func (f *Fault) UnmarshalJSON(data []byte) error {
	var kept form
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // a number of the detail stays the number it is
	if err := decoder.Decode(&kept); err != nil {
		return err
	}
	*f = Fault{
		kept.Code, kept.Message, kept.Sort, kept.Phase, kept.Retry, kept.RetryAfter, kept.Fix, kept.FixCommand,
		kept.Suggestion, kept.Ways, kept.Redirect, kept.Detail, kept.Problems, nil,
	}
	if kept.Cause != "" {
		f.Cause = errors.New(kept.Cause)
	}
	return nil
}
