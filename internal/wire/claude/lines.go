package claude

import (
	"encoding/json"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// The lines, for writing and for reading. Members are in order, because people read them too.

// Init is the first line of a turn.
type Init struct {
	Type       string   `json:"type"`
	Subtype    string   `json:"subtype"`
	Dir        string   `json:"cwd"`
	Session    string   `json:"session_id"`
	Tools      []string `json:"tools"`
	Servers    []Server `json:"mcp_servers"`
	Model      string   `json:"model"`
	Mode       string   `json:"permissionMode"`
	Commands   []string `json:"slash_commands"`
	KeySource  string   `json:"apiKeySource"`
	Version    string   `json:"claude_code_version"`
	Style      string   `json:"output_style"`
	Helpers    []string `json:"agents"`
	Skills     []string `json:"skills"`
	Plugins    []string `json:"plugins"`
	Agent      string   `json:"agent,omitempty"` // our own member: the agent and its sandbox
	Provider   string   `json:"provider,omitempty"`
	Sandbox    any      `json:"sandbox,omitempty"`
	Identifier string   `json:"uuid"`
}

// Server is an MCP server and its status.
type Server struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// messageLine is a line with a message: a block of an answer, the result of a tool, or a repeated message of the host.
type messageLine struct {
	Type       string  `json:"type"`
	Message    any     `json:"message"`
	Parent     *string `json:"parent_tool_use_id"`
	Session    string  `json:"session_id"`
	Identifier string  `json:"uuid,omitempty"`
	Error      string  `json:"error,omitempty"`
	Replay     bool    `json:"isReplay,omitempty"`
	Aborted    bool    `json:"aborted,omitempty"`
}

type assistant struct {
	ID       string  `json:"id"`
	Type     string  `json:"type"`
	Role     string  `json:"role"`
	Model    string  `json:"model"`
	Content  []any   `json:"content"`
	Stop     *string `json:"stop_reason"`
	Sequence *string `json:"stop_sequence"`
	Usage    Tokens  `json:"usage"`
}

type userMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type callBlock struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type resultBlock struct {
	ID      string `json:"tool_use_id"`
	Type    string `json:"type"`
	Content string `json:"content"`
	Failed  bool   `json:"is_error"`
}

// Tokens are the tokens of an answer or a turn. The three kinds of input do not overlap.
type Tokens struct {
	Input   int64 `json:"input_tokens"`
	Written int64 `json:"cache_creation_input_tokens"`
	Cached  int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
	Details struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details,omitzero"`
}

// Usage converts the tokens to a usage.
func (t Tokens) Usage() *event.Usage {
	return &event.Usage{
		Input: t.Input + t.Written + t.Cached, Output: t.Output, Cached: t.Cached, Reasoning: t.Details.Thinking,
	}
}

// TurnTokens adds members that hosts expect for a turn.
type TurnTokens struct {
	Tokens
	Server  map[string]int64 `json:"server_tool_use"`
	Service string           `json:"service_tier"`
}

// ModelTokens is the usage of one model.
type ModelTokens struct {
	Input    int64    `json:"inputTokens"`
	Output   int64    `json:"outputTokens"`
	Thinking int64    `json:"thinkingTokens,omitempty"`
	Cached   int64    `json:"cacheReadInputTokens"`
	Written  int64    `json:"cacheCreationInputTokens"`
	Search   int64    `json:"webSearchRequests"`
	Cost     *float64 `json:"costUSD"`
	Window   int64    `json:"contextWindow"`
	Longest  int64    `json:"maxOutputTokens"`
}

// Denial is a call that was not allowed.
type Denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// Result is the line that ends a turn.
type Result struct {
	Type       string                 `json:"type"`
	Subtype    string                 `json:"subtype"`
	IsError    bool                   `json:"is_error"`
	Took       int64                  `json:"duration_ms"`
	Asking     int64                  `json:"duration_api_ms"`
	Turns      *int                   `json:"num_turns"`
	Result     *string                `json:"result,omitempty"`
	Errors     []string               `json:"errors,omitempty"`
	Stop       *string                `json:"stop_reason"`
	Ending     string                 `json:"terminal_reason,omitempty"` // not written by us
	Session    string                 `json:"session_id"`
	Cost       *float64               `json:"total_cost_usd"`
	Usage      *TurnTokens            `json:"usage"`
	Models     map[string]ModelTokens `json:"modelUsage"`
	Since      map[string]ModelTokens `json:"model_usage_since_last_result,omitempty"` // not written by us
	Estimated  bool                   `json:"usage_estimated,omitempty"`               // ours: not reported
	Denials    []Denial               `json:"permission_denials"`
	Structured json.RawMessage        `json:"structured_output,omitempty"`
	NotKept    []string               `json:"not_kept,omitempty"` // ours
	Status     *int                   `json:"api_error_status,omitempty"`
	Identifier string                 `json:"uuid"`
}

// system is a line of type system other than init.
type system struct {
	Type       string          `json:"type"`
	Subtype    string          `json:"subtype"`
	Compact    *compactLine    `json:"compact_metadata,omitempty"`
	Status     json.RawMessage `json:"status,omitempty"`
	Mode       string          `json:"permissionMode,omitempty"`
	Tool       string          `json:"tool_name,omitempty"`
	Call       string          `json:"tool_use_id,omitempty"`
	Message    string          `json:"message,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	Most       int             `json:"max_retries,omitempty"`
	Delay      *int64          `json:"retry_delay_ms,omitempty"`
	Code       *int            `json:"error_status,omitempty"`
	Error      string          `json:"error,omitempty"`
	Session    string          `json:"session_id"`
	Identifier string          `json:"uuid"`
}

type compactLine struct {
	Trigger string `json:"trigger"`
	Before  int64  `json:"pre_tokens"`
}

type streamEvent struct {
	Type       string  `json:"type"`
	Event      any     `json:"event"`
	Parent     *string `json:"parent_tool_use_id"`
	Session    string  `json:"session_id"`
	Identifier string  `json:"uuid"`
}

// piece is an event of the Messages API.
type piece struct {
	Type    string     `json:"type"`
	Message *assistant `json:"message,omitempty"`
	Index   *int       `json:"index,omitempty"`
	Block   any        `json:"content_block,omitempty"`
	Delta   any        `json:"delta,omitempty"`
	Usage   *Tokens    `json:"usage,omitempty"`
}

type delta struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`
	Thinking  *string `json:"thinking,omitempty"`
	Signature *string `json:"signature,omitempty"`
	Partial   *string `json:"partial_json,omitempty"`
}

type stopDelta struct {
	Reason   *string `json:"stop_reason"`
	Sequence *string `json:"stop_sequence"`
}

func encode(v any) []byte { return text.MustLine(v) }

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
