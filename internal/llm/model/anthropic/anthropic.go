// Package anthropic is a client of the Messages API, of Anthropic and of compatible servers.
//
// A conversation that began with another model, or was interrupted, is converted so that the API accepts it: every call
// has its result, nothing is empty, and everything is in its place. Opaque data goes back unchanged. The constant part
// of a conversation is cached. There is a complete answer or an error. The package does not run tools or keep
// conversations.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// Wire is the value of model.Block.Wire for this API's opaque data.
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

// New returns a client. It opens no connection. The client is an io.Closer that closes idle connections.
func New(o Options) model.Client {
	c := &client{model: o.Model, profile: o.Known(Wire)}
	c.api = wire.New(o, base(o.Base), "X-Api-Key", fault)
	credential := c.api.Header
	c.api.Header = func(ctx context.Context) (http.Header, error) {
		h, err := credential(ctx)
		if err == nil && len(h) == 0 && o.Base == "" { // other servers, such as those on this machine, may need no key
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
	given = cmp.Or(given, address)
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
		api: c.api, build: model.Builder{Emit: hear, Wire: Wire}, open: map[int]*part{}, queries: map[string]string{},
	}
	err := c.api.Stream(ctx, "/messages", c.request(q), r.event)
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

// Count asks the API, or estimates if there is no answer. The next Ask returns the error.
func (c *client) Count(ctx context.Context, q model.Request) (tokens int64, exact bool, err error) {
	q.NoCache = true
	r := c.request(q)
	r.MaxTokens, r.Stream = 0, false
	var counted struct {
		Tokens *int64 `json:"input_tokens"`
	}
	err = c.api.Call(ctx, "/messages/count_tokens", r, &counted)
	if e, is := errors.AsType[*model.Error](err); is && e.Trouble == model.Stopped {
		return 0, false, err
	}
	if err != nil || counted.Tokens == nil {
		return model.Estimate(q), false, nil
	}
	return *counted.Tokens, true, nil
}

// fault parses the body of an error. It leaves Trouble empty if the status decides.
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
