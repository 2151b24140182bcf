// Package openai is a client of OpenAI's two model APIs: Chat Completions, which many other servers speak too, and
// Responses.
//
// A conversation means the same on both. An encrypted chain of thought goes back unchanged, and to no other API. An
// answer is complete even from servers that omit ids, the index of a call, the usage or the end mark. An error has the
// right Trouble, whether the API reports it in the status, in the body or in a stream.
//
// The package stores nothing at the API, does not change a tool's schema, and does not guess what a server supports. It
// only learns the spelling of two members, from the error that names them.
package openai

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// Options configure a client.
type Options = model.Options

const official = "https://api.openai.com/v1"

// client is shared by both wires.
type client struct {
	api     *wire.API
	model   string
	query   string // of the address, with the question mark
	host    string
	profile model.Profile
}

func newClient(o Options) client {
	o.Base = cmp.Or(o.Base, official)
	base, query, found := strings.Cut(o.Base, "?")
	if found {
		query = "?" + query
	}
	c := client{model: o.Model, query: query, profile: o.Known("openai")}
	if at, err := url.Parse(base); err == nil {
		c.host = at.Hostname()
	}
	keyHeader := ""
	if c.azure() {
		keyHeader = "Api-Key"
	}
	c.api = wire.New(o, base, keyHeader, fault)
	c.api.Whole = hasChoices
	return c
}

func (c *client) azure() bool { return strings.HasSuffix(c.host, ".azure.com") }

// vendor reports whether OpenAI's own models answer, with everything that OpenAI documents.
func (c *client) vendor() bool {
	return c.host == "api.openai.com" || strings.HasSuffix(c.host, ".api.openai.com") || c.azure()
}

// documents reports whether the server is known to accept PDF. Other servers refuse a request with one.
func (c *client) documents() bool { return c.vendor() || c.host == "openrouter.ai" }

// Profile returns what is known about the model.
func (c *client) Profile() model.Profile { return c.profile }

// Count estimates, because not all servers can count.
func (c *client) Count(_ context.Context, q model.Request) (int64, bool, error) {
	return model.Estimate(q), false, nil
}

// reasons reports whether a model thinks before it answers, as all newer models do. Older models refuse members about
// thinking.
func reasons(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	old := []string{"gpt-3", "gpt-4", "chatgpt-4"}
	if slices.ContainsFunc(old, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return false
	}
	return !strings.HasPrefix(name, "gpt-") || !strings.Contains(name, "-chat")
}

// picture reports whether the API accepts an image of that type.
func picture(b model.Block) bool {
	return len(b.Data) > 0 && slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.Media)
}

func dataURL(b model.Block) string {
	return "data:" + b.Media + ";base64," + base64.StdEncoding.EncodeToString(b.Data)
}

// fileName returns a document's name, which the API requires.
func fileName(b model.Block) string {
	return cmp.Or(b.Name, "document.pdf")
}

// system returns the system prompt as one text, because templates of other models accept only one.
func system(q model.Request) string { return strings.Join(q.System, "\n\n") }
