package openai

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/llm/model"
)

func delta(d string) string {
	return `{"id":"c","choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

// What servers write that speak Chat Completions more or less.
func TestChatOfOthers(t *testing.T) {
	stop, calls := finish("stop"), finish("tool_calls")
	for name, row := range map[string]struct {
		events []string
		want   string
	}{
		"no end mark":   {[]string{delta(`{"content":"hi"}`), stop}, `"hi" done`},
		"end mark only": {[]string{delta(`{"content":"hi"}`), "[DONE]"}, `"hi" done`},
		"empty":         {[]string{delta(`{"role":"assistant","content":null}`), stop, "[DONE]"}, `done`},
		"content in parts": {
			[]string{
				delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`),
				delta(`{"content":[{"type":"text","text":"hi"}]}`), stop,
			}, `(hm) "hi" done`,
		},
		"content is a number": {[]string{delta(`{"content":5}`), delta(`{"content":"hi"}`), stop}, `"hi" done`},
		"reasoning_content": {[]string{
			delta(`{"reasoning_content":"h"}`),
			delta(`{"reasoning_content":"m","content":null}`), delta(`{"content":"hi"}`), stop,
		}, `(hm) "hi" done`},
		"reasoning": {
			[]string{delta(`{"reasoning":"hm","content":""}`), delta(`{"content":"hi"}`), stop},
			`(hm) "hi" done`,
		},
		"both reasonings": {[]string{
			delta(`{"reasoning":"hm","reasoning_content":"hm"}`),
			delta(`{"content":"hi"}`), stop,
		}, `(hm) "hi" done`},
		"thinks again": {[]string{
			delta(`{"reasoning":"a"}`), delta(`{"content":"b"}`),
			delta(`{"reasoning":"c"}`), delta(`{"content":"d"}`), stop,
		}, `(a) "b" (c) "d" done`},
		"refusal": {
			[]string{delta(`{"refusal":"I can"}`), delta(`{"refusal":"not"}`), stop},
			`"I cannot" refused`,
		},
		"filter": {[]string{delta(`{"content":"hi"}`), finish("content_filter")}, `"hi" refused`},
		"length": {[]string{delta(`{"content":"hi"}`), finish("length")}, `"hi" length`},
		"length in a call": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":""}}]}`),
				finish("length"),
			}, `[a X {} broken (the answer was cut off here)] length`,
		},
		"length in arguments": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"{\"a"}}]}`),
				finish("length"),
			}, `[a X {} broken {"a] length`,
		},
		"stop with calls": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"{}"}}]}`),
				stop,
			}, `[a X {}] calls`,
		},
		"no ids": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"function":{"name":"X","arguments":"{"}},{"index":1,"function":{"name":"Y"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`), calls,
			}, `[call_openai_1 X {}] [call_openai_2 Y {}] calls`,
		},
		"one id for all": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X"}},{"index":1,"id":"a","function":{"name":"Y"}}]}`), calls,
			}, `[a X {}] [call_openai_2 Y {}] calls`,
		},
		"no index": {
			[]string{
				delta(`{"tool_calls":[{"id":"a","function":{"name":"X","arguments":"{\"n\":"}}]}`),
				delta(`{"tool_calls":[{"function":{"arguments":"1}"}}]}`),
				delta(`{"tool_calls":[{"id":"b","function":{"name":"Y","arguments":"{}"}}]}`), calls,
			},
			`[a X {"n":1}] [b Y {}] calls`,
		},
		"no index, no id": {
			[]string{
				delta(`{"tool_calls":[{"function":{"name":"X","arguments":"{\"n\":"}}]}`),
				delta(`{"tool_calls":[{"function":{"arguments":"1}"}}]}`),
				delta(`{"tool_calls":[{"function":{"name":"Y","arguments":"{}"}}]}`), calls,
			},
			`[call_openai_1 X {"n":1}] [call_openai_2 Y {}] calls`,
		},
		"no index, by id": {
			[]string{
				delta(`{"tool_calls":[{"id":"a","function":{"name":"X","arguments":"{\"n\":"}},{"id":"b","function":{"name":"Y","arguments":"{"}}]}`), delta(`{"tool_calls":[{"id":"a","function":{"arguments":"1}"}},{"id":"b","function":{"arguments":"}"}}]}`), calls,
			}, `[a X {"n":1}] [b Y {}] calls`,
		},
		"index always 0": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"{}"}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"Y","arguments":"{}"}}]}`), calls,
			},
			`[a X {}] [b Y {}] calls`,
		},
		"id in each piece": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"{"}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"}"}}]}`), calls,
			},
			`[a X {}] calls`,
		},
		"arguments an object": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":{"n":1}}}]}`),
				calls,
			}, `[a X {"n":1}] calls`,
		},
		"arguments a list": {
			[]string{
				delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"[1]"}}]}`),
				calls,
			}, `[a X {} broken [1]] calls`,
		},
		"function_call": {
			[]string{
				delta(`{"function_call":{"name":"X","arguments":"{\"n\""}}`),
				delta(`{"function_call":{"arguments":":1}"}}`), finish("function_call"),
			},
			`[call_openai_1 X {"n":1}] calls`,
		},
		"not streamed": {
			[]string{`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`},
			`"hi" done`,
		},
		"another choice": {[]string{
			delta(`{"content":"hi"}`),
			`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, stop,
		}, `"hi" done`},
		"a bad id and comment": {[]string{
			`{"id":7,"model":null,"choices":[{"index":0,"delta":{"content":"hi"}}]}`,
			stop,
		}, `"hi" done`},
		"an unknown reason": {[]string{delta(`{"content":"hi"}`), finish("eos")}, `"hi" done`},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answer(t, both()[0], events(row.events...))
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(a); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
			if !a.Usage.Estimated || a.Usage.Input < 1 || a.Usage.Output < 1 {
				t.Errorf("usage %+v", a.Usage)
			}
		})
	}
}

func TestChatUsage(t *testing.T) {
	for written, want := range map[string]model.Usage{
		`{"prompt_tokens":10,"completion_tokens":4}`: {Input: 10, Output: 4},
		`{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":6},"completion_tokens_details":{"reasoning_tokens":3}}`: {Input: 4, CacheRead: 6, Output: 4, Reasoning: 3},
		`{"prompt_tokens":10,"completion_tokens":4,"prompt_cache_hit_tokens":10,"prompt_cache_miss_tokens":0}`:                                      {CacheRead: 10, Output: 4},
		`{"prompt_tokens":10.0,"completion_tokens":4e0,"prompt_tokens_details":null}`:                                                               {Input: 10, Output: 4},
		`{"prompt_tokens":1,"completion_tokens":-4,"prompt_tokens_details":{"cached_tokens":6}}`:                                                    {CacheRead: 1, Output: 1, Estimated: true},
	} {
		for _, list := range [][]string{
			{delta(`{"content":"x"}`), finish("stop"), `{"choices":[],"usage":` + written + `}`, "[DONE]"},
			{delta(`{"content":"x"}`), `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":` + written + `}`},
		} {
			a, err := answer(t, both()[0], events(list...))
			if err != nil || a.Usage != want {
				t.Errorf("%s: %v %+v", written, err, a)
			}
		}
	}
}

// What follows the reason for the end may be missing, even where the connection stays open.
func TestChatStallsAfterItsEnd(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	go func() { _, _ = w.Write(events(delta(`{"content":"hi"}`), finish("stop"))) }()
	c := NewChat(Options{
		Base: "http://api.test", Model: "m", Idle: 50 * time.Millisecond,
		HTTP: &http.Client{Transport: stalled{r}},
	})
	a, err := c.Ask(t.Context(), hello(), nil)
	if err != nil || shown(a) != `"hi" done` {
		t.Fatal(a, err)
	}
}

// stalled is a response whose body ends with the request's context.
type stalled struct{ body *io.PipeReader }

func (s stalled) RoundTrip(q *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, q.Body)
	go func() {
		<-q.Context().Done()
		_ = s.body.CloseWithError(q.Context().Err())
	}()
	return &http.Response{StatusCode: http.StatusOK, Request: q, Header: http.Header{}, Body: s.body}, nil
}

func TestErrorsWithin(t *testing.T) {
	chat, responses := both()[0], both()[1]
	said := delta(`{"content":"half"}`)
	for name, row := range map[string]struct {
		w      wireOf
		events []string
		want   model.Trouble
		code   string
	}{
		"object": {
			chat,
			[]string{said, `{"error":{"message":"busy","type":"server_error","code":"server_is_overloaded"}}`},
			model.Overloaded, "server_is_overloaded",
		},
		"number": {
			chat,
			[]string{
				said,
				`{"error":{"message":"slow","code":429},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`,
			},
			model.Limited, "",
		},
		"text": {chat, []string{`{"error":"boom"}`}, model.Broken, ""},
		"flat": {
			chat,
			[]string{
				`{"object":"error","message":"This model's maximum context length is 10 tokens.","type":"BadRequestError","param":null,"code":400}`,
			},
			model.Overflow, "BadRequestError",
		},
		"lm studio": {
			chat,
			[]string{
				`{"error":{"message":"Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens"}}`,
			},
			model.Overflow, "",
		},
		"finish":      {chat, []string{said, finish("error")}, model.Overloaded, "error"},
		"garbage":     {chat, []string{said, `{"choices":`}, model.Garbage, ""},
		"no answer":   {chat, []string{"[DONE]"}, model.Garbage, ""},
		"other shape": {chat, []string{`{"choices":{"a":1}}`}, model.Garbage, ""},
		"event": {
			responses,
			[]string{
				`{"type":"error","code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 1.5s. Visit","param":null}`,
			},
			model.Limited, "rate_limit_exceeded",
		},
		"nested": {
			responses,
			[]string{
				`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window"}}`,
			},
			model.Overflow, "context_length_exceeded",
		},
		"failed": {
			responses,
			[]string{
				`{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"insufficient_quota","message":"pay"}}}`,
			},
			model.Quota, "insufficient_quota",
		},
		"failed, server": {
			responses,
			[]string{
				`{"type":"response.failed","response":{"error":{"code":"server_error","message":"oh"},"usage":{"input_tokens":7,"output_tokens":1}}}`,
			},
			model.Broken, "server_error",
		},
		"failed, silent": {
			responses,
			[]string{`{"type":"response.failed","response":{"error":null}}`},
			model.Broken,
			"response.failed",
		},
		"failed in end": {
			responses,
			[]string{
				`{"type":"response.completed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}}`,
			},
			model.Rejected, "invalid_prompt",
		},
		"untyped": {responses, []string{`{"error":{"message":"oh","code":503}}`}, model.Overloaded, ""},
		"no end": {responses, []string{
			`{"type":"response.output_text.delta","output_index":0,"delta":"half"}`,
			"[DONE]",
		}, model.Cut, ""},
	} {
		_, err := answer(t, row.w, events(row.events...))
		e := trouble(t, err)
		if e.Trouble != row.want || e.Code != row.code {
			t.Errorf("%s: %+v", name, e)
		}
		if half := strings.Contains(row.events[0], "half"); e.Emitted != half || half &&
			(len(e.Partial) != 1 || e.Partial[0].Text != "half") {
			t.Errorf("%s: heard %v, partial %+v", name, e.Emitted, e.Partial)
		}
		if name == "event" && e.After != 1500*time.Millisecond {
			t.Errorf("%s: after %s", name, e.After)
		}
		if name == "failed, server" && (e.Usage != model.Usage{Input: 7, Output: 1}) {
			t.Errorf("%s: usage %+v", name, e.Usage)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		status int
		body   string
		want   model.Trouble
	}{
		{400, `{"error":{"message":"bad","type":"invalid_request_error","code":null}}`, model.Rejected},
		{400, `{"error":{"message":"x","code":"context_length_exceeded"}}`, model.Overflow},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":512}}`, model.Overflow},
		{400, `{"object":"error","message":"This model's maximum context length is 6048 tokens. However, you requested 6616 tokens","type":"BadRequestError","param":null,"code":400}`, model.Overflow},
		{400, `{"error":{"message":"max_tokens is too large: 50000. This model supports at most 16384 completion tokens","type":"invalid_request_error","code":"invalid_value"}}`, model.Rejected},
		{500, `{"error":{"message":"maximum context length"}}`, model.Broken},
		{401, `{"error":{"message":"Incorrect API key provided: sk-abc","type":"invalid_request_error","code":"invalid_api_key"}}`, model.NoLogin},
		{401, `{"error":{"message":"no","type":"invalid_request_error","code":null}}`, model.NoLogin},
		{
			402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`,
			model.Quota,
		},
		{
			403, `{"error":{"message":"no","type":"invalid_request_error","code":"unsupported_country_region_territory"}}`,
			model.Forbidden,
		},
		{404, `{"error":{"message":"The model x does not exist","type":"invalid_request_error","code":"model_not_found"}}`, model.Unknown},
		{404, `{"error":"model \"x\" not found, try pulling it first"}`, model.Unknown},
		{404, `404 page not found`, model.Unknown},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, model.Quota},
		{429, `{"error":{"message":"Rate limit reached for x. Please try again in 20ms.","type":"tokens","code":"rate_limit_exceeded"}}`, model.Limited},
		{429, `{"error":{"message":"Request too large for x on tokens per min (TPM): Limit 30000, Requested 40000.","type":"tokens","code":"rate_limit_exceeded"}}`, model.Overflow},
		{429, `[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`, model.Limited},
		{422, `{"detail":[{"loc":["body"],"msg":"extra"}]}`, model.Rejected},
		{500, `<html>oh</html>`, model.Broken},
		{503, `{"error":{"message":"Service Unavailable."}}`, model.Overloaded},
		{529, ``, model.Overloaded},
	} {
		for _, w := range both() {
			_, err := canned{status: row.status, body: []byte(row.body)}.client(w).Ask(t.Context(), hello(), nil)
			if e := trouble(t, err); e.Trouble != row.want || e.Status != row.status {
				t.Errorf("%s: %d %s: %+v", w.name, row.status, row.body, e)
			} else if strings.Contains(row.body, "20ms") && e.After != 20*time.Millisecond {
				t.Errorf("after %s", e.After)
			}
		}
	}
}

// Servers that speak Responses more or less.
func TestResponsesOfOthers(t *testing.T) {
	call := `{"type":"function_call","id":"fc","call_id":"a","name":"X","arguments":"{\"n\":1}"}`
	end := `{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":[],"usage":null}}`
	for name, row := range map[string]struct {
		events []string
		want   string
	}{
		"items only": {
			[]string{
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hi"}]}}`, `{"type":"response.output_item.done","output_index":1,"item":` + call + `}`, end,
			}, `"hi" [a X {"n":1}] calls`,
		},
		"the end only": {
			[]string{
				`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]},` + call + `]}}`,
			}, `"hi" [a X {"n":1}] calls`,
		},
		"deltas only": {[]string{`{"type":"response.output_text.delta","delta":"hi"}`, end}, `"hi" done`},
		"no output index": {
			[]string{
				`{"type":"response.output_item.added","item":{"type":"function_call","id":"f1","call_id":"a","name":"X"}}`, `{"type":"response.output_item.added","item":{"type":"function_call","id":"f2","call_id":"b","name":"Y"}}`, `{"type":"response.function_call_arguments.delta","item_id":"f2","delta":"{\"m\":2}"}`, `{"type":"response.function_call_arguments.delta","item_id":"f1","delta":"{}"}`, end,
			}, `[a X {}] [b Y {"m":2}] calls`,
		},
		"done wins": {
			[]string{
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"X"}}`, `{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"n"}`, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"n\":1}"}`, end,
			}, `[a X {"n":1}] calls`,
		},
		"bad arguments": {
			[]string{
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"X","arguments":"{\"n"}}`, end,
			}, `[a X {} broken {"n] calls`,
		},
		"refusal": {
			[]string{`{"type":"response.refusal.delta","output_index":0,"delta":"no"}`, end},
			`"no" refused`,
		},
		"length": {[]string{
			`{"type":"response.output_text.delta","output_index":0,"delta":"hi"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`,
		}, `"hi" length`},
		"length, call": {
			[]string{
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"X"}}`, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`,
			}, `[a X {} broken (the answer was cut off here)] length`,
		},
		"filter": {
			[]string{`{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}`},
			`refused`,
		},
		"summaries": {
			[]string{
				`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"a"}`,
				`{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"b"}`,
				`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}}`, end,
			}, "(a\n\nb) done",
		},
		"raw reasoning": {[]string{
			`{"type":"response.reasoning_text.delta","output_index":0,"delta":"hm"}`,
			`{"type":"response.output_text.delta","output_index":1,"delta":"hi"}`, end,
		}, `(hm) "hi" done`},
		"unknown events": {[]string{
			`{"type":"response.queued"}`, `{"type":"keepalive","sequence_number":3}`,
			`{"type":"response.output_text.delta","output_index":1,"delta":"hi"}`, end,
		}, `"hi" done`},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answer(t, both()[1], events(row.events...))
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(a); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
			if !a.Usage.Estimated {
				t.Errorf("usage %+v", a.Usage)
			}
		})
	}
}

// Reasoning that came without its cipher is nowhere: the API does not store it, and would not find it.
func TestReasoningWithoutACipherStaysHere(t *testing.T) {
	a, err := answer(t, both()[1],
		events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":null}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"hi"}]}}`, `{"type":"response.completed"}`))
	if err != nil || shown(a) != `(hm) "hi" done` || a.Blocks[0].Opaque != nil {
		t.Fatal(err, a)
	}
	q := hello()
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks})
	_, body := sent(t, both()[1], Options{Base: "http://h", Model: "m"}, q)
	if strings.Contains(body, "hm") ||
		!strings.Contains(body, `"content":[{"type":"output_text","text":"hi"}],"phase":"commentary"`) {
		t.Error(body)
	}
}

func FuzzEvents(f *testing.F) {
	for _, w := range both() {
		for line := range strings.Lines(string(golden(f, w.name+"-stream.txt"))) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
				f.Add(data, data)
			}
		}
	}
	f.Add(delta(`{"tool_calls":[{"function":{"arguments":{"a":[]}}}],"function_call":{"name":""}}`), `{"error":[]}`)
	f.Add(`{"type":"response.completed","response":{"output":[null,{"type":"reasoning","encrypted_content":"x"}]}}`,
		`{"type":"error","code":429}`)
	f.Fuzz(func(t *testing.T, one, two string) {
		if strings.ContainsAny(one+two, "\r\n") {
			return
		}
		for _, w := range both() {
			for _, end := range []string{finish("stop"), `{"type":"response.completed"}`} {
				c := canned{body: events(one, two, one, end)}.client(w)
				a, err := c.Ask(t.Context(), hello(), func(model.Piece) {})
				if err != nil {
					var e *model.Error
					if !errors.As(err, &e) || e.Trouble == "" || e.Message == "" {
						t.Fatalf("%s: %#v", w.name, err)
					}
					continue
				}
				q := hello()
				q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Blocks: a.Blocks})
				var ids []string
				for _, b := range a.Calls() {
					if !json.Valid(b.Input) || b.Input[0] != '{' || b.ID == "" || slices.Contains(ids, b.ID) {
						t.Fatalf("%s: %+v", w.name, b)
					}
					ids = append(ids, b.ID)
				}
				// What came must be something that can be sent again.
				if _, err := c.Ask(t.Context(), q, nil); err != nil &&
					strings.Contains(err.Error(), "cannot be written") {
					t.Fatal(err)
				}
			}
		}
	})
}
