// Package model is a language model behind any API: requests, answers and errors.
//
// It promises one form for all vendors, so that a conversation depends on none of them; an answer is whole or an error,
// never half a tool call; and an error says whether a retry makes sense. It does not run tools, keep conversations, or
// find keys.
package model

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/toolspec"
)

// Client is one model behind one API with one account. Its methods may be called from several goroutines.
type Client interface {
	// Ask sends a conversation and reads the answer. hear, unless it is nil, gets text and thinking as they come, in
	// order, before Ask returns. The answer is complete; an error is a *Error. A client sends one request: Retrying
	// retries.
	Ask(ctx context.Context, q Request, hear func(Piece)) (*Answer, error)
	// Count returns how many tokens the request has. It asks the API if that can count, and estimates otherwise.
	Count(ctx context.Context, q Request) (tokens int64, exact bool, err error)
	// Profile returns what is known about the model.
	Profile() Profile
}

// Profile is what is known about a model. Zero values are unknown.
type Profile struct {
	Provider string // anthropic, openai, codex, gemini
	Model    string
	Window   int64   // tokens of the context
	Output   int64   // tokens of the longest answer
	Limit    int64   // tokens of an answer at most, as the user's profile says; 0: it does not say
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
	System    []string // each part stays the same during the conversation, so that it can be cached
	Messages  []Message
	Tools     []toolspec.Tool
	MaxOutput int64 // 0: Profile.Limit, or the default of the API, or Profile.Output if the API requires one
	Think     int64 // tokens for thinking; 0: the default of the API
	Search    bool  // offer the API's own web search, if Profile.Search
	NoCache   bool  // the conversation is sent only once: caching would only cost
}

// Role is the sender of a message.
type Role string

// The roles. What tools answered are blocks of a user's message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is what one side said before the other side's turn.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Kind is the kind of a block.
type Kind string

// The kinds of blocks. The comment names the members that matter.
const (
	Text     Kind = "text"     // Text
	Thinking Kind = "thinking" // Text, Opaque
	Call     Kind = "call"     // ID, Name, Input, Opaque
	Result   Kind = "result"   // ID, Name, Text, Failed
	Image    Kind = "image"    // Media, Data; in a result's Parts too
	File     Kind = "file"     // Media, Data, Name: a document such as PDF
	Searched Kind = "searched" // of a Piece only
)

// Block is a part of a message.
type Block struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text,omitempty"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// an object. {} with Broken, if the arguments of a call were not an object
	Input  json.RawMessage `json:"input,omitempty"`
	Broken string          `json:"broken,omitempty"` // the arguments, if they were not a JSON object
	Failed bool            `json:"failed,omitempty"`
	Media  string          `json:"media,omitempty"` // such as image/png
	Data   []byte          `json:"data,omitempty"`
	Parts  []Block         `json:"parts,omitempty"` // further parts of a result: images
	// Opaque is what the API wants back unchanged: the signature of thinking, an encrypted chain of thought, the
	// thought signature of a call. It belongs to the wire that Wire names; another wire leaves it out, and thinking
	// with it.
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

// Search is a search of the web that an API made by itself. It is told when it is over.
type Search struct {
	ID     string // the API's own; empty: it has none
	Query  string
	Found  []string // a line each, as far as the API tells; nil: it does not
	Failed string   // the API's word for the failure; empty: it did not fail
}

// Stop is why the model stopped.
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

// Answer is what the model said.
type Answer struct {
	ID     string
	Model  string // the API's name
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

// Calls returns the calls of tools, in order.
func (a Answer) Calls() []Block {
	return slices.DeleteFunc(slices.Clone(a.Blocks), func(b Block) bool { return b.Kind != Call })
}

// Usage counts tokens. The three sorts of input exclude each other; Reasoning is a part of Output.
type Usage struct {
	Input      int64 `json:"input"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	Searches   int64 `json:"searches,omitempty"`
	Estimated  bool  `json:"estimated,omitempty"` // the API did not report it
}

// Add returns the sum; an estimate in it makes it one.
func (u Usage) Add(o Usage) Usage {
	return Usage{
		Input: u.Input + o.Input, CacheRead: u.CacheRead + o.CacheRead, CacheWrite: u.CacheWrite +
			o.CacheWrite, Output: u.Output + o.Output,
		Reasoning: u.Reasoning + o.Reasoning, Searches: u.Searches + o.Searches, Estimated: u.Estimated || o.Estimated,
	}
}

// Context returns how many tokens the model received.
func (u Usage) Context() int64 { return u.Input + u.CacheRead + u.CacheWrite }
