// Package anthropic is the Messages API from the client's side, at Anthropic and at everybody who speaks it.
//
// It promises that a conversation that began with another model, or was interrupted, is one that this API takes: every
// call has its result, nothing is empty, nothing stands where it must not; that what the API wants back unchanged comes
// back unchanged; that what stays the same of a conversation is cached; and that an answer is whole or an error. It
// refuses to run the tools and to keep the conversation.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"omniagent/internal/model"
	"omniagent/internal/model/wire"
)

// Wire is the value of model.Block.Wire for what this API wants back.
const Wire = "anthropic"

const (
	address = "https://api.anthropic.com"
	version = "2023-06-01"
)

// Options configure a client.
type Options = model.Options

// client is a model.Client.
type client struct {
	api     *wire.API
	model   string
	profile model.Profile
}

// New returns a client. It opens no connection. It is an io.Closer, which drops idle connections.
func New(o Options) model.Client {
	c := &client{model: o.Model, profile: o.Known(Wire)}
	c.api = wire.New(o, base(o.Base), "X-Api-Key", fault)
	credential := c.api.Header
	c.api.Header = func(ctx context.Context) (http.Header, error) {
		h, err := credential(ctx)
		if err == nil && len(h) == 0 && o.Base == "" { // elsewhere, such as on this machine, there may be no key at all
			err = &model.Error{Trouble: model.NoLogin, Message: "there is no API key for Anthropic"}
		}
		if err != nil {
			return nil, err
		}
		h.Set("Anthropic-Version", version)
		return h, nil
	}
	return c
}

// base returns the address with the API's version: /v1, unless its path has a version.
func base(given string) string {
	if given == "" {
		given = address
	}
	given = strings.TrimRight(given, "/")
	_, path, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(given, "https://"), "http://"), "/")
	for part := range strings.SplitSeq(path, "/") {
		if digits, ok := strings.CutPrefix(part, "v"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return given
		}
	}
	return given + "/v1"
}

func (c *client) Profile() model.Profile { return c.profile }

func (c *client) Close() error { return c.api.Close() }

func (c *client) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	r := reader{
		api: c.api, build: model.Builder{Hear: hear, Wire: Wire}, open: map[int]*part{}, queries: map[string]string{},
	}
	_, err := c.api.Stream(ctx, "/messages", c.request(q), r.event)
	var a *model.Answer
	if err == nil {
		a, err = r.answer()
	}
	if err != nil {
		return nil, r.failure(err)
	}
	a.Complete(q, "call")
	return a, nil
}

// Count asks the API. If the API does not answer, it estimates; the next Ask returns the error.
func (c *client) Count(ctx context.Context, q model.Request) (tokens int64, exact bool, err error) {
	q.NoCache = true
	r := c.request(q)
	r.MaxTokens, r.Stream = 0, false
	var counted struct {
		Tokens *int64 `json:"input_tokens"`
	}
	_, err = c.api.Call(ctx, "/messages/count_tokens", r, &counted)
	if e := (*model.Error)(nil); errors.As(err, &e) && e.Trouble == model.Stopped {
		return 0, false, err
	}
	if err != nil || counted.Tokens == nil {
		return model.Estimate(q), false, nil
	}
	return *counted.Tokens, true, nil
}

// fault parses an error's body. The status decides what it leaves open.
func fault(status int, _ http.Header, body []byte) *model.Error {
	var it struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		Request string `json:"request_id"`
	}
	if json.Unmarshal(body, &it) != nil {
		return nil
	}
	e := &model.Error{Code: it.Error.Type, Message: it.Error.Message, Request: it.Request}
	switch it.Error.Type {
	case "invalid_request_error":
		switch {
		case wire.Mentions(it.Error.Message, "prompt is too long", "context limit", "context window",
			"too many total text bytes"):
			e.Trouble = model.Overflow
		case wire.Mentions(it.Error.Message, "credit balance", "usage limits"):
			e.Trouble = model.Quota
		case status == http.StatusOK:
			e.Trouble = model.Rejected
		}
	case "authentication_error":
		e.Trouble = model.NoLogin
	case "billing_error":
		e.Trouble = model.Quota
	case "permission_error":
		e.Trouble = model.Forbidden
	case "not_found_error":
		e.Trouble = model.Unknown
	case "request_too_large":
		e.Trouble = model.Overflow
	case "rate_limit_error":
		if status == http.StatusOK {
			e.Trouble = model.Limited
		}
	case "overloaded_error":
		e.Trouble = model.Overloaded
	}
	return e
}
