package wire

import (
	"io"
	"log"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"omniagent/internal/llm/model"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(d time.Duration, layout string) string { return time.Now().UTC().Add(d).Format(layout) }
		for i, c := range []struct {
			header map[string]string
			status int
			want   time.Duration
		}{
			{map[string]string{}, 429, 0},
			{map[string]string{"Retry-After": "3"}, 500, 3 * time.Second},
			{map[string]string{"Retry-After": " 0.5 "}, 500, 500 * time.Millisecond},
			{map[string]string{"Retry-After": "-1"}, 500, 0},
			{map[string]string{"Retry-After": "NaN"}, 500, 0},
			{map[string]string{"Retry-After": "1e300"}, 500, 365 * 24 * time.Hour},
			{map[string]string{"Retry-After": "soon"}, 500, 0},
			{map[string]string{"Retry-After": in(90*time.Second, http.TimeFormat)}, 503, 90 * time.Second},
			{map[string]string{"Retry-After": in(-90*time.Second, http.TimeFormat)}, 503, 0},
			{map[string]string{"Retry-After": "9", "Retry-After-Ms": "20"}, 429, 20 * time.Millisecond},
			{
				map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "6m0s"},
				429,
				6 * time.Minute,
			},
			{map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "6m0s"}, 500, 0},
			{map[string]string{"X-Ratelimit-Remaining-Requests": "1", "X-Ratelimit-Reset-Requests": "6m0s"}, 429, 0},
			{
				map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "12"},
				429,
				12 * time.Second,
			},
			{map[string]string{
				"Anthropic-Ratelimit-Input-Tokens-Remaining": "0",
				"Anthropic-Ratelimit-Input-Tokens-Reset":     in(40*time.Second, time.RFC3339),
			}, 429, 40 * time.Second},
		} {
			h := http.Header{}
			for k, v := range c.header {
				h.Set(k, v)
			}
			if e := (&API{}).Refused(c.status, h, nil); e.After != c.want {
				t.Errorf("%d: %s, want %s", i, e.After, c.want)
			}
		}
	})
}

func TestShouldRetry(t *testing.T) {
	for _, c := range []struct {
		status int
		again  string
		want   model.Trouble
	}{
		{429, "false", model.Quota},
		{429, "true", model.Limited},
		{409, "true", model.Overloaded},
		{400, "false", model.Rejected},
		{401, "true", model.NoLogin},
	} {
		if e := (&API{}).Refused(c.status, http.Header{"X-Should-Retry": {c.again}}, nil); e.Trouble != c.want {
			t.Errorf("%d %s: %s", c.status, c.again, e.Trouble)
		}
	}
}
