// Package model defines the interface of language models: requests, answers and errors.
//
// It has one form for all vendors, so that a conversation does not depend on any of them. There is a complete answer or
// an error, never half a tool call. An error says whether a retry makes sense. The package does not run tools, keep
// conversations, or find keys.
package model

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/core/event"
)

// Client is one model of one API with one account. It is safe for concurrent use.
type Client interface {
	// Ask sends a conversation and reads the answer. hear, unless it is nil, gets text and thinking as they come, in
	// order, before Ask returns. An error is an *Error. Ask sends one request; use Retrying to retry.
	Ask(ctx context.Context, q Request, hear func(Piece)) (*Answer, error)
	// Count returns the number of tokens of a request. It estimates if the API cannot count.
	Count(ctx context.Context, q Request) (tokens int64, exact bool, err error)
	// Profile returns what is known about the model.
	Profile() Profile
}

// Profile describes a model. Zero values mean unknown.
type Profile struct {
	Provider string // anthropic, openai, codex, gemini
	Model    string
	Window   int64   // tokens of the context
	Output   int64   // tokens of the longest answer
	Limit    int64   // most tokens of an answer, from the user's profile; 0 if not set
	Compact  float64 // share of the window at which to shorten a conversation
	Prices   *Prices
	Search   bool // the API has its own web search
}

// Prices are USD for a million tokens.
type Prices struct{ Input, Output, CacheRead, CacheWrite float64 }

// Cost returns the price of the tokens.
func (p Prices) Cost(u Usage) float64 {
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite) / 1e6
}

// Request is a conversation for the model to answer.
type Request struct {
	System   []string // each part stays the same during the conversation, so that it can be cached
	Messages []Message
	Tools    []event.ToolSpec
	Search   bool // offer the API's own web search, if Profile.Search
	NoCache  bool // the conversation is sent only once, so caching would only cost
}

// Role is the sender of a message.
type Role string

// The roles. Results of tools are blocks of a user's message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is everything that one side says in its turn.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Joined returns the messages in such a way that the sides alternate, and each has content.
func Joined(messages []Message) []Message {
	all := make([]Message, 0, len(messages))
	for _, m := range messages {
		all = Join(all, m)
	}
	return all
}

// Join adds a message, and merges it with the last one if both are of the same side. One without content adds nothing.
func Join(all []Message, m Message) []Message {
	n := len(all)
	switch {
	case len(m.Blocks) == 0:
		return all
	case n > 0 && all[n-1].Role == m.Role:
		all[n-1].Blocks = slices.Concat(all[n-1].Blocks, m.Blocks) // does not change the caller's slice
		return all
	}
	return append(all, m)
}

// Kind is the kind of a block.
type Kind string

// The kinds of blocks, with the fields that they use.
const (
	Text     Kind = "text"     // Text
	Thinking Kind = "thinking" // Text, Opaque
	Call     Kind = "call"     // ID, Name, Input, Opaque
	Result   Kind = "result"   // ID, Name, Text, Failed
	Image    Kind = "image"    // Media, Data; in a result's Parts too
	File     Kind = "file"     // Media, Data, Name: a document such as PDF
	Searched Kind = "searched" // in a Piece only
)

// Block is a part of a message.
type Block struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text,omitempty"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// an object; {} if Broken is set
	Input  json.RawMessage `json:"input,omitempty"`
	Broken string          `json:"broken,omitempty"` // the arguments, if they were not a JSON object
	Failed bool            `json:"failed,omitempty"`
	Media  string          `json:"media,omitempty"` // such as image/png
	Data   []byte          `json:"data,omitempty"`
	Parts  []Block         `json:"parts,omitempty"` // further parts of a result: images
	// Opaque is data that must go back to the API unchanged: the signature of thinking, an encrypted chain of thought,
	// the thought signature of a call. It belongs to the wire that Wire names. Other wires leave it out, together with
	// the thinking.
	Opaque json.RawMessage `json:"opaque,omitempty"`
	Wire   string          `json:"wire,omitempty"`
}

// CutOff is the Broken of a call whose arguments were missing when the answer was cut off.
const CutOff = "(the answer was cut off here)"

// Piece is a piece of an answer, as it comes.
type Piece struct {
	Kind   Kind // Text, Thinking or Searched
	Text   string
	Search *Search // with Searched
}

// Search is a web search that an API made itself. It is reported when it is over.
type Search struct {
	ID     string // the API's id, or empty
	Query  string
	Found  []string // one line for each result; nil if the API does not report them
	Failed string   // the API's word for the failure, or empty
}

// Stop says why the model stopped.
type Stop string

// The reasons.
const (
	Done    Stop = "done"
	Calls   Stop = "calls"   // it waits for tools
	Length  Stop = "length"  // the answer reached its maximum length
	Full    Stop = "full"    // the context is full
	Refused Stop = "refused" // the API's filter, or the model, refused to answer
	Paused  Stop = "paused"  // it wants to continue: send the answer back unchanged
)

// Answer is a complete answer of a model.
type Answer struct {
	ID     string
	Model  string // the API's name for the model
	Blocks []Block
	Stop   Stop
	Reason string // the API's own value of Stop
	Usage  Usage
}

// Text returns the text, without thinking and calls.
func (a Answer) Text() string {
	var b strings.Builder
	for _, block := range a.Blocks {
		if block.Kind == Text {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// Calls returns the tool calls, in order.
func (a Answer) Calls() []Block {
	return slices.DeleteFunc(slices.Clone(a.Blocks), func(b Block) bool { return b.Kind != Call })
}

// Usage counts tokens. The three kinds of input do not overlap; Output includes Reasoning.
type Usage struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	Searches   int64 `json:"searches,omitempty"`
	Estimated  bool  `json:"estimated,omitempty"` // the API did not report it
}

// Add returns the sum, which is an estimate if either part is.
func (u Usage) Add(o Usage) Usage {
	return Usage{
		Input: u.Input + o.Input, CacheRead: u.CacheRead + o.CacheRead, CacheWrite: u.CacheWrite +
			o.CacheWrite, Output: u.Output + o.Output,
		Reasoning: u.Reasoning + o.Reasoning, Searches: u.Searches + o.Searches, Estimated: u.Estimated || o.Estimated,
	}
}

// Context returns the number of tokens that the model received.
func (u Usage) Context() int64 { return u.Input + u.CacheRead + u.CacheWrite }
