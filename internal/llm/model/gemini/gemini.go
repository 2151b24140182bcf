// Package gemini is a client of Google's Gemini API, with the method generateContent.
//
// Thought signatures go back on the part that they came with, as the API requires. A call has an id even if the API
// gives none, and the same one when the conversation is resumed. An answer is complete if the API gave a reason for its
// end. Errors distinguish a spent quota from a short excess of requests.
//
// The caller passes a key or a token. The package uploads no files, and has no cache, because the API caches by itself.
package gemini

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// Options configure a client.
type Options = model.Options

const (
	official = "https://generativelanguage.googleapis.com"
	wireName = "gemini" // the value of Block.Wire
)

// New returns a model behind the Gemini API.
func New(o Options) model.Client {
	o.Base = cmp.Or(o.Base, official)
	c := &client{name: strings.TrimPrefix(o.Model, "models/"), profile: o.Known("gemini")}
	base := strings.TrimRight(o.Base, "/")
	if !strings.HasSuffix(base, "/v1beta") && !strings.HasSuffix(base, "/v1") && !strings.HasSuffix(base, "/v1alpha") {
		base += "/v1beta"
	}
	c.api = wire.New(o, base, "X-Goog-Api-Key", fault)
	return c
}

type client struct {
	api     *wire.API
	name    string // the model, without models/
	profile model.Profile
}

// Profile returns what is known about the model.
func (c *client) Profile() model.Profile { return c.profile }

// path returns the path of a method of the model. A name with a slash, such as that of a tuned model, is not in
// models/.
func (c *client) path(method string) string {
	return "/" + strings.ReplaceAll(url.PathEscape(c.whole()), "%2F", "/") + ":" + method
}

func (c *client) whole() string {
	if strings.Contains(c.name, "/") {
		return c.name
	}
	return "models/" + c.name
}

// Ask sends one request.
func (c *client) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	r := &reader{client: c, b: &model.Builder{Emit: hear, Wire: wireName}}
	err := c.api.Stream(ctx, c.path("streamGenerateContent")+"?alt=sse", c.request(q), r.event)
	a, err := r.end(err)
	if err != nil {
		return nil, err
	}
	a.Complete(q, "call_gemini")
	return a, nil
}

// Count asks the API, or estimates if the server has no such method.
func (c *client) Count(ctx context.Context, q model.Request) (int64, bool, error) {
	ask := struct {
		Request counted `json:"generateContentRequest"`
	}{counted{c.whole(), c.request(q)}}
	var answer struct {
		Total wire.Count `json:"totalTokens"`
	}
	err := c.api.Call(ctx, c.path("countTokens"), ask, &answer)
	if e, is := errors.AsType[*model.Error](err); is && (e.Trouble == model.Unknown || e.Trouble == model.Rejected) ||
		err == nil && answer.Total == 0 {
		return max(1, model.Estimate(q)), false, nil
	}
	return int64(answer.Total), err == nil, err
}

// generation returns the version in a name: 2.5 for gemini-2.5-pro. A name without one, such as gemini-flash-latest, is
// the newest. 0 means that it is not a Gemini model.
func (c *client) generation() float64 {
	rest, ok := strings.CutPrefix(c.name, "gemini-")
	if !ok {
		return 0
	}
	said, _, _ := strings.Cut(rest, "-")
	if n, err := strconv.ParseFloat(said, 64); err == nil && n > 0 {
		return n
	}
	return newest
}

const newest = 1000
