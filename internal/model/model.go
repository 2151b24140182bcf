// Package model is a language model behind any API: what is asked, what is answered, what can go wrong.
//
// It promises one form for every vendor's wire, so that whoever holds a conversation knows none of them; that an answer
// is whole or an error, never half a tool call; and that an error says whether asking again makes sense. It refuses to
// run tools, to keep a conversation, and to know where a key comes from.
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
	// Ask sends a conversation and reads the answer. hear is told of text and thinking as they come, in order, before
	// Ask returns; nil where nobody listens. The answer is complete; an error is a *Error. A client asks once: Retrying
	// asks again.
	Ask(ctx context.Context, q Request, hear func(Piece)) (*Answer, error)
	// Count tells how many tokens the request has, asking the API where it can count and estimating where it cannot.
	Count(ctx context.Context, q Request) (tokens int64, exact bool, err error)
	// Profile is what is known of the model.
	Profile() Profile
}

// Profile is what is known of a model. Zero values are unknown.
type Profile struct {
	Provider string // anthropic, openai, codex, gemini
	Model    string
	Window   int64   // tokens of the context
	Output   int64   // tokens of the longest answer
	Compact  float64 // share of the window at which a conversation is better shortened
	Prices   *Prices
	Search   bool // the API's own web search can be asked for
}

// Prices are USD for a million tokens.
type Prices struct{ Input, Output, CacheRead, CacheWrite float64 }

// Cost is what the tokens cost.
func (p Prices) Cost(u Usage) float64 {
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite) / 1e6
}

// Request is a conversation that waits for the model.
type Request struct {
	System    []string // each part stays as it is while the conversation goes on, so that it can be cached
	Messages  []Message
	Tools     []toolspec.Tool
	MaxOutput int64 // 0: the API's own, or Profile.Output where the API wants one
	Think     int64 // tokens that the model may think with; 0: as the API does by itself
	Search    bool  // offer the API's own web search, where Profile.Search
	NoCache   bool  // the conversation is asked about once: caching it would only cost
}

// Role says whose message it is.
type Role string

// The roles. What tools answered are blocks of a user's message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is what one side said until it was the other's turn.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Kind says what a block is.
type Kind string

// The kinds of blocks. The comment names the members that matter.
const (
	Text     Kind = "text"     // Text
	Thinking Kind = "thinking" // Text, Opaque
	Call     Kind = "call"     // ID, Name, Input, Opaque
	Result   Kind = "result"   // ID, Name, Text, Failed
	Image    Kind = "image"    // Media, Data; in a result's Parts too
	File     Kind = "file"     // Media, Data, Name: a document such as PDF
)

// Block is a part of a message.
type Block struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text,omitempty"`
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// an object. Of a call whose arguments were no object: {}, with Broken
	Input  json.RawMessage `json:"input,omitempty"`
	Broken string          `json:"broken,omitempty"` // what came instead of a JSON object
	Failed bool            `json:"failed,omitempty"`
	Media  string          `json:"media,omitempty"` // such as image/png
	Data   []byte          `json:"data,omitempty"`
	Parts  []Block         `json:"parts,omitempty"` // of a result, beside its text: images
	// Opaque is what the API wants back unchanged: the signature of thinking, an encrypted chain of thought, a
	// thought's mark on a call. It belongs to the wire that Wire names; another wire leaves it out, and leaves thinking
	// out with it.
	Opaque json.RawMessage `json:"opaque,omitempty"`
	Wire   string          `json:"wire,omitempty"`
}

// CutOff is the Broken of a call whose arguments did not come before the answer was cut off.
const CutOff = "(the answer was cut off here)"

// Piece is something that the model is saying right now.
type Piece struct {
	Kind Kind // Text or Thinking
	Text string
}

// Stop says why the model stopped.
type Stop string

// The reasons.
const (
	Done    Stop = "done"
	Calls   Stop = "calls"   // it waits for tools
	Length  Stop = "length"  // the answer was as long as it may be
	Full    Stop = "full"    // the context is full
	Refused Stop = "refused" // the API's filter, or the model, would not answer
	Paused  Stop = "paused"  // it wants to go on: send the answer back as it is
)

// Answer is what the model said.
type Answer struct {
	ID     string
	Model  string // as the API calls it
	Blocks []Block
	Stop   Stop
	Reason string // the API's own word for Stop
	Usage  Usage
}

// Text is what it said, without thinking and calls.
func (a Answer) Text() string {
	var b strings.Builder
	for _, block := range a.Blocks {
		if block.Kind == Text {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// Calls are the tools that it called, in order.
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
	Estimated  bool  `json:"estimated,omitempty"` // the API did not tell
}

// Add is the sum; an estimate in it makes it one.
func (u Usage) Add(o Usage) Usage {
	return Usage{
		Input: u.Input + o.Input, CacheRead: u.CacheRead + o.CacheRead, CacheWrite: u.CacheWrite +
			o.CacheWrite, Output: u.Output + o.Output,
		Reasoning: u.Reasoning + o.Reasoning, Searches: u.Searches + o.Searches, Estimated: u.Estimated || o.Estimated,
	}
}

// Context is how many tokens the model had in front of it.
func (u Usage) Context() int64 { return u.Input + u.CacheRead + u.CacheWrite }
